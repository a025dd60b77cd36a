"""Both evaluators have the same interface, and agree on every port in every cycle."""

import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from amaranth.hdl import Assert, Assume, Elaboratable, Format, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Model, Program, ReferenceModel, StorageAccess, StoragePort
from cppsim.errors import BatchError, SimulationError
from cppsim.model.interface import AnyModel
from cppsim.netlist.design import from_words
from support.evaluated import READS, STORAGE, Chain, Comparer, Inverter, Keeper, Mixer, Ripple
from support.processes import succeed
from support.seeds import slow
from support.waveforms import seen
from support.zoo import Registers

Maker = Callable[..., AnyModel]


@pytest.fixture(params=[ReferenceModel, Model])
def make(request: pytest.FixtureRequest) -> Iterator[Maker]:
    made: list[AnyModel] = []

    def maker(*arguments: object, **options: object) -> AnyModel:
        made.append(request.param(*arguments, **options))
        return made[-1]

    yield maker
    for evaluator in made:
        evaluator.close()


@pytest.fixture
def mixer(make: Maker) -> AnyModel:
    return make(Mixer(), storage=STORAGE, buffers={"ram": ram()})


def ram(data_width: int = 64, words: int = 16) -> np.ndarray:
    return np.random.default_rng(data_width).integers(0, 256, words * data_width // 8, np.uint8)


@pytest.mark.parametrize(
    ("data_width", "words"), [(64, 16), slow(32, 11), (512, 4), slow(8, 16), slow(24, 5)]
)
def test_evaluators_agree_on_every_port_in_every_cycle(data_width: int, words: int) -> None:
    circuits = []
    for evaluator in (ReferenceModel, Model):
        buffer = ram(data_width, words)
        mixer = Mixer(data_width, words)
        circuits.append((evaluator(mixer, storage=STORAGE, buffers={"ram": buffer}), buffer))
    (slow, slow_ram), (fast, fast_ram) = circuits
    assert slow.widths == fast.widths
    before = slow_ram.copy()
    choose = random.Random(data_width)
    for cycle in range(150):
        for port in ("go", "salt", "wide", "rst"):
            value = choose.getrandbits(slow.widths[port]) & -(port != "rst" or cycle % 50 == 49)
            slow.set(port, value)
            fast.set(port, value)
        for moment in ("before", "after"):
            shown = {port: slow.get(port) for port in slow.widths}
            assert {port: fast.get(port) for port in fast.widths} == shown, (cycle, moment)
            if moment == "before":
                slow.step()
                fast.step()
        assert (slow_ram == fast_ram).all(), cycle
    assert (slow_ram != before).any()
    assert slow.cycles == fast.cycles == 150


def test_get_shows_what_set_changed_without_a_clock_edge(mixer: AnyModel) -> None:
    for value in (0, 3, (1 << 100) - 1):
        mixer.set("wide", value)
        assert mixer.get("wide") == value
        assert mixer.get("echo") == value * 5 % (1 << 100)
    assert mixer.get("constant") == 0x12_3456_789A
    assert mixer.cycles == 0


def test_what_a_get_computes_leaves_no_trace(make: Maker) -> None:
    model = make(Keeper())
    start = Program().set("store", 1).set("value", 7).get("kept")
    model.run(start.set("store", 0).step())
    assert model.get("kept") == 0
    model.run(Program().set("store", 1).get("kept").set("value", 9).step())
    assert model.get("kept") == 9


def test_until_includes_the_edge_at_which_the_condition_was_high(mixer: AnyModel) -> None:
    mixer.set("go", 1)
    assert mixer.until("rare", 1000)
    assert (mixer.cycles, mixer.get("count"), mixer.get("rare")) == (22, 22, 0)
    assert not mixer.until("rare", 31)
    assert mixer.cycles == 53
    assert mixer.until("rare", 1)
    assert not mixer.until("rare", 0)
    assert mixer.cycles == 54


def test_a_program_does_what_single_calls_do(mixer: AnyModel) -> None:
    wide = (1 << 99) + 12345
    program = Program().get("count", "first").set("go", 1).set("wide", wide).get("echo")
    program.step(3).get("echo", "later").until("rare", 30).set("go", 0).step(10).get("count")
    assert mixer.run(program) == {
        "first": 0,
        "echo": wide * 5 % (1 << 100),
        "later": (wide * 5 + 3) % (1 << 100),
        "rare": 19,
        "count": 22,
    }
    assert mixer.cycles == 32
    assert mixer.run(Program()) == {}


def test_repeats_take_a_value_and_give_a_result_each_time(mixer: AnyModel) -> None:
    program = Program()
    with program.repeat(2):
        program.set("go", [[1, 0]])
        with program.repeat(3):
            program.step().get("count")
    assert mixer.run(program)["count"].tolist() == [[1, 2, 3], [3, 3, 3]]


def test_a_prepared_program_is_run_with_other_columns(mixer: AnyModel) -> None:
    wide = (1 << 99) + 12345
    program = Program().set("wide", wide).get("echo").set("go", [0]).step(3)
    run = mixer.prepare(program.get("echo", "later").get("count"))
    low = wide * 5 % (1 << 64)
    high = wide * 5 % (1 << 100) >> 64
    assert run([0]) == [low, high, low, high, 0]
    assert run([1]) == [low, high, low + 3, high, 3]
    assert run([0]) == [low + 3, high, low + 3, high, 3]
    with pytest.raises(BatchError, match="columns: 0; expected 1, as the program sets"):
        run([])


def test_a_wide_port_takes_words_or_whole_numbers_in_a_repeat(mixer: AnyModel) -> None:
    program = Program()
    with program.repeat(3):
        program.set("wide", np.array([[5, 7]], np.uint64)).get("wide")
    assert mixer.run(program)["wide"].tolist() == [[5, 7]] * 3
    large = (1 << 63) + 1
    assert mixer.run(Program().set("wide", [large]).get("wide")) == {"wide": large}


def test_a_list_may_have_small_numbers_beside_large_ones(make: Maker) -> None:
    model = make(Echo())
    program = Program()
    with program.repeat(2):
        program.set("i", [[1, (1 << 63) + 1]]).get("o")
    assert model.run(program)["o"].tolist() == [1, (1 << 63) + 1]


def test_signed_ports_have_signed_values(make: Maker) -> None:
    model = make(Echo())
    model.set("i", 3)
    assert model.get("negative") == -3
    assert model.run(Program().get("negative")) == {"negative": -3}


class Framed(wiring.Component):
    """A stream of structures, of which ``n`` is added up."""

    i: In(stream.Signature(data.StructLayout({"n": 4, "last": 1})))
    sum: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        with m.If(self.i.valid):
            m.d.sync += self.sum.eq(self.sum + self.i.payload.n)
        return m


def test_single_calls_take_signals_like_programs(make: Maker) -> None:
    framed = Framed()
    model = make(framed)
    model.set(framed.i.payload, 3)
    model.set(framed.i.valid, 1)
    model.step(2)
    assert model.get(framed.sum) == model.get("sum") == 6
    assert model.get(framed.i.payload) == 3
    assert model.until(framed.i.ready, 4)
    assert model.cycles == 3
    for call in (lambda x: model.set(x, 1), model.get, lambda x: model.until(x, 1)):
        with pytest.raises(BatchError, match=r"is not a port; there are: i__payload, .*sum"):
            call(Framed().sum)
        with pytest.raises(BatchError, match="port: 3; expected a string"):
            call(3)


def test_an_error_refers_fields_of_a_model_to_a_batch(make: Maker) -> None:
    framed = Framed()
    model = make(framed)
    answer = "^.?no port 'i__payload.n'; fields are ports of a Batch only"
    with pytest.raises(KeyError, match=answer):
        model.set("i__payload.n", 1)
    with pytest.raises(BatchError, match=answer):
        model.run(Program().set("i__payload.n", 1))
    answer = "is not a port but a part of 'i__payload'; fields are ports of a Batch only"
    for call in (lambda x: model.set(x, 1), model.get, lambda x: model.run(Program().get(x, "n"))):
        with pytest.raises(BatchError, match=answer):
            call(framed.i.payload.n)


def test_numbers_of_cycles_are_not_negative_and_fit_63_bits(mixer: AnyModel) -> None:
    for cycles in (-1, 1 << 63):
        message = f"cycles: {cycles}; expected 0 to "
        with pytest.raises(ValueError, match=message):
            mixer.step(cycles)
        with pytest.raises(ValueError, match=message):
            mixer.until("rare", cycles)
    mixer.set("go", np.uint8(1))
    mixer.step()
    with pytest.raises(TypeError):
        mixer.set("go", 0.5)  # type: ignore[arg-type]
    assert mixer.get("count") == 1


def test_results_have_different_names(mixer: AnyModel) -> None:
    with pytest.raises(BatchError, match="two results are called 'count'"):
        mixer.run(Program().get("count").get("count"))
    with pytest.raises(BatchError, match="run takes a Program, not 'count'"):
        mixer.run("count")  # type: ignore[arg-type]


def test_results_that_no_memory_holds_are_refused() -> None:
    program = Program()
    with program.repeat(1 << 32):
        program.get("o")
    with pytest.raises(BatchError, match="the program takes more memory than there is"):
        Model(Inverter()).run(program)


def test_a_wait_in_vain_is_0_and_the_program_goes_on(mixer: AnyModel) -> None:
    assert mixer.run(Program().until("rare", 12).step(100).get("go")) == {"rare": 0, "go": 0}
    assert mixer.cycles == 112


def test_a_program_that_does_not_fit_does_nothing(mixer: AnyModel) -> None:
    for program, message in (
        (Program().step().get("q"), "no port 'q'"),
        (Program().step().set("go", 2), "'go': 2 does not fit 1 bits"),
        (Program().step().set("count", 1), "'count' is driven by the design"),
        (Program().step().set("go", [0, 1]), "shape"),
    ):
        with pytest.raises(BatchError, match=message):
            mixer.run(program)
    assert mixer.cycles == 0


def test_reset_returns_to_power_on_and_keeps_the_storage(make: Maker) -> None:
    buffer = ram()
    evaluator = make(Mixer(), storage=STORAGE, buffers={"ram": buffer})

    def history() -> list[int]:
        evaluator.set("go", 1)
        values = []
        for _ in range(40):
            evaluator.step()
            values += [evaluator.get(port) for port in ("count", "read_word", "write_word")]
        return values

    first = history()
    stored = buffer.copy()
    evaluator.reset()
    assert evaluator.cycles == 0
    assert [evaluator.get(port) for port in ("go", "count", "read_data")] == [0, 0, 0]
    assert (buffer == stored).all()
    assert history() == first


def test_failed_assertion_of_the_circuit_raises_with_its_message(make: Maker) -> None:
    evaluator = make(Comparer())
    evaluator.set("value", 6)
    evaluator.step(5)
    evaluator.set("value", 7)
    with pytest.raises(SimulationError, match="seven is not allowed"):
        evaluator.step(5)


class WithoutMessage(wiring.Component):
    """A check without a message, or an assumption."""

    i: In(1)

    def __init__(self, check: Any) -> None:
        super().__init__()
        self._check = check

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self._check(~self.i)
        return m


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (Assert, "Assertion violated"),
        (Assume, "Assumption violated"),
        (lambda x: Assert(x, Format("{} is 0", x)), "Assertion violated: 0 is 0"),
        (lambda x: Assume(x, "no"), "Assumption violated: no"),
    ],
)
def test_a_failed_check_has_the_words_of_a_batch(make: Maker, check: Any, line: str) -> None:
    model, batch = make(WithoutMessage(check)), Batch(WithoutMessage(check), 1, "threads")
    for one in (model, batch):
        one.set("i", 1)
    batch.step()
    assert batch.failures()[0][0] == line
    with pytest.raises(SimulationError, match=f"^cycle 1: {line}$"):
        model.step()


def test_a_failed_check_lasts_until_reset_in_the_reference() -> None:
    model = ReferenceModel(Comparer())
    model.set("value", 7)
    for call in (model.step, lambda: model.get("value"), model.step):
        with pytest.raises(SimulationError, match=r"cycle 1: .*seven is not allowed"):
            call()
    model.reset()
    model.step(3)
    assert model.cycles == 3


def test_an_interrupted_run_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ReferenceModel(Comparer())
    advance, turns = model._simulator.advance, iter(range(100))

    def interrupted() -> bool:
        if next(turns) == 20:
            raise KeyboardInterrupt
        return bool(advance())

    monkeypatch.setattr(model._simulator, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.step(1 << 40)
    model.set("value", 5)
    model.step()
    assert model.get("value") == 5


def test_a_closed_model_says_so() -> None:
    model = Model(Comparer())
    model.close()
    for call in (lambda: model.get("value"), lambda: model.set("value", 1), model.step):
        with pytest.raises(SimulationError, match="the model is closed"):
            call()


def test_a_closed_model_releases_its_memory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, released = Model(Comparer()), []
    handle, destroy = model._model, model._calls.model_destroy

    def count(of: int) -> None:
        released.append(of)
        destroy(of)

    monkeypatch.setattr(model._calls, "model_destroy", count)
    model.close()
    model.close()
    assert released == [handle]


def test_circuit_without_registers_runs(make: Maker) -> None:
    evaluator = make(Inverter())
    evaluator.set("i", 0b010)
    assert evaluator.get("o") == 0b101
    evaluator.step(4)
    assert (evaluator.get("o"), evaluator.cycles) == (0b101, 4)


def test_access_past_the_buffer_raises(make: Maker) -> None:
    evaluator = make(Mixer(), storage=STORAGE, buffers={"ram": ram()[:64]})
    evaluator.set("go", 1)
    with pytest.raises(SimulationError, match="read_data: an access is past its buffer"):
        evaluator.step(100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "nothing"}, "no port 'nothing'"),
        ({"data": "wide"}, "100 bits; expected whole bytes"),
        ({"buffer": "rom"}, "no buffer 'rom'"),
        ({"data": "write_data"}, "write_data: an output of the circuit; expected an input"),
        ({"access": "read"}, "read_data: access 'read'; expected a StorageAccess"),
    ],
)
def test_storage_that_does_not_fit_is_refused(
    make: Maker, changes: dict[str, Any], message: str
) -> None:
    port = StoragePort(**({"access": StorageAccess.READ} | READS | changes))
    with pytest.raises(SimulationError, match=message):
        make(Mixer(), storage=[port], buffers={"ram": ram()})


class Swap(wiring.Component):
    """A circuit that reads and writes one word of its storage at each edge."""

    value: In(8)
    before: In(8)
    enable: Out(1, init=1)
    address: Out(2, init=3)
    written: Out(8)
    mask: Out(1, init=1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.enable.eq(1), self.address.eq(3), self.mask.eq(1)]
        m.d.comb += self.written.eq(self.value)
        return m


def test_a_word_that_is_written_at_the_same_edge_reads_as_before(make: Maker) -> None:
    ports = {"buffer": "ram", "enable": "enable", "address": "address"}
    write = StoragePort(access=StorageAccess.WRITE, data="written", mask="mask", **ports)
    read = StoragePort(access=StorageAccess.READ, data="before", **ports)
    for storage in ((write, read), (read, write)):
        buffer = np.array([0, 0, 0, 7], np.uint8)
        model = make(Swap(), storage=storage, buffers={"ram": buffer})
        seen = []
        for value in (8, 9):
            model.set("value", value)
            model.step()
            seen.append((model.get("before"), int(buffer[3])))
        assert seen == [(7, 8), (8, 9)]


def test_a_buffer_that_cannot_be_written_is_refused(make: Maker) -> None:
    buffer = ram()
    buffer.flags.writeable = False
    for unfit, message in ((buffer, "read-only"), (bytes(64), "expected a contiguous uint8")):
        with pytest.raises(SimulationError, match=f"buffer 'ram': {message}"):
            make(Mixer(), storage=STORAGE, buffers={"ram": unfit})


def test_unfit_values_and_ports_are_refused(make: Maker) -> None:
    evaluator = make(Inverter())
    for call, arguments, error, message in (
        (evaluator.set, ("i", 8), ValueError, "port 'i': 8 does not fit 3 bits"),
        (evaluator.set, ("o", 1), ValueError, "port 'o' is driven by the design; only inputs can"),
        (evaluator.set, ("q", 1), KeyError, "no port 'q'; there are: i, o, rst"),
        (evaluator.get, ("q",), KeyError, "no port 'q'; there are: i, o, rst"),
        (evaluator.until, ("q", 1), KeyError, "no port 'q'; there are: i, o, rst"),
        (evaluator.set, ("i", 0.5), TypeError, "port 'i': 0.5; expected a whole number"),
        (evaluator.step, (0.5,), TypeError, "cycles: 0.5; expected a whole number"),
        (evaluator.until, ("i", None), TypeError, "cycles: None; expected a whole number"),
    ):
        with pytest.raises(error, match=message):
            call(*arguments)


class Echo(wiring.Component):
    """``o`` is ``i``, and ``negative`` its negative low bits."""

    i: In(64)
    o: Out(64)
    negative: Out(signed(5))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.o.eq(self.i), self.negative.eq(-self.i[:4])]
        return m


class Clocked(wiring.Component):
    """A design with a port of the clock's name."""

    clk: In(1)
    o: Out(1)

    def elaborate(self, platform: object) -> Module:
        return Module()


def test_port_named_like_the_clock_is_refused(make: Maker) -> None:
    with pytest.raises(SimulationError, match="port clk: the name belongs to the clock domain"):
        make(Clocked())


def test_a_waveform_that_cannot_be_opened_fails_before_the_build(tmp_path: Path) -> None:
    def built(*_: object, **__: object) -> NoReturn:
        pytest.fail("built")

    for vcd in (tmp_path, tmp_path / "no" / "wave.vcd"):
        # Nothing of the evaluator stays, to complain when it is freed.
        with pytest.raises(OSError, match=str(vcd)):
            Model(Comparer(), vcd=vcd, build_with=built)


def test_a_waveform_that_cannot_be_finished_is_reported_once() -> None:
    evaluator = Model(Comparer(), vcd="/dev/full")
    evaluator.step(10)
    with pytest.raises(SimulationError, match="waveform file could not be written"):
        evaluator.close()
    evaluator.close()
    # Freed without having been closed, it says nothing.
    evaluator = Model(Comparer(), vcd="/dev/full")
    evaluator.step(10)
    del evaluator
    gc.collect()


def test_waveform_shows_every_cycle(make: Maker, tmp_path: Path) -> None:
    file = tmp_path / "wave.vcd"
    evaluator = make(Comparer(), vcd=file)
    for value in (5, 1, 12):
        evaluator.set("value", value)
        evaluator.step()
    evaluator.close()
    lines = file.read_text().splitlines()
    identifier = next(line.split()[3] for line in lines if "$var" in line and " last " in line)
    history = [line.split()[0] for line in lines if line.endswith(f" {identifier}")]
    values = [int(entry[1:], 2) for entry in history if entry.startswith("b")]
    assert values[-3:] == [5, 1, 12]


def test_waveforms_are_those_of_amaranths_simulator(tmp_path: Path) -> None:
    shown = []
    for kind in (ReferenceModel, Model):
        file = tmp_path / f"{kind.name}.vcd"
        with closing(kind(Registers(70), vcd=file)) as model:
            for number in range(6):
                model.set("data", number << 66)
                model.set("go", number % 3 == 0)
                model.step(number)
                model.until("clear", 2)
                model.run(Program().set("step", number % 4).set("clear", [number == 3]).step(2))
        waveforms = seen(file.read_text())
        shown.append({name.rpartition(".")[2]: values for name, values in waveforms.items()})
    slow, fast = shown
    clock = "clk: wire 1"
    end = slow[clock][-1][0]
    assert fast[clock].pop() == (end + 500_000_000, "0")
    assert fast.keys() <= slow.keys()
    assert {name: slow[name] for name in fast} == fast


def test_a_reset_continues_the_waveforms(tmp_path: Path) -> None:
    file = tmp_path / "wave.vcd"
    with closing(Model(Registers(8), vcd=file)) as model:
        for _ in range(2):
            model.set("go", 1)
            model.step(2)
            model.reset()
        model.step()
    counted = next(x for name, x in seen(file.read_text()).items() if "counted" in name)
    # In half cycles: a reset shows while the clock is low.
    expected = (0, 5), (1, 8), (3, 11), (4, 5), (5, 8), (7, 11), (8, 5)
    assert counted == [(time * 500_000_000, f"{value:b}") for time, value in expected]
    with closing(ReferenceModel(Registers(8), vcd=file)) as reference:
        with pytest.raises(SimulationError, match=r"wave\.vcd: waveforms cannot begin again"):
            reference.reset()


class Unread(wiring.Component):
    """A component with a signal that nothing reads."""

    value: In(4)
    more: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unread = Signal(4)
        m.d.comb += [self.more.eq(self.value + 1), unread.eq(self.value ^ 5)]
        return m


def test_a_waveform_shows_signals_that_nothing_reads(make: Maker, tmp_path: Path) -> None:
    file = tmp_path / "wave.vcd"
    model = make(Unread(), vcd=file)
    model.set("value", 3)
    model.step()
    model.close()
    lines = file.read_text().splitlines()
    identifier = next(line.split()[3] for line in lines if "$var" in line and " unread " in line)
    assert [line for line in lines if line.endswith(f" {identifier}")][-1] == f"b110 {identifier}"


@pytest.mark.parametrize("circuit", [Ripple, Chain])
def test_bits_of_a_signal_may_depend_on_others_of_it(circuit: Callable[[], Elaboratable]) -> None:
    slow, fast = ReferenceModel(circuit()), Model(circuit())
    choose = random.Random(3)
    for cycle in range(50):
        value = 0xFF >> choose.randrange(3) | 0x80
        for evaluator in (slow, fast):
            evaluator.set("value", value)
            # Not before every edge: a read settles signals that the edge must settle by itself.
            if cycle % 3 == 0:
                assert evaluator.get("first") == slow.get("first")
            evaluator.step()
        for port in ("first", "total"):
            assert fast.get(port) == slow.get(port)


class Successor(wiring.Component):
    """Adds 1 to a signed number."""

    def __init__(self, width: int) -> None:
        super().__init__({"number": In(signed(width)), "above": Out(signed(width + 1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.above.eq(self.number + 1)
        return m


@pytest.mark.parametrize("width", [1, 8, 64, 100])
def test_signed_ports_take_and_show_what_those_of_a_batch_do(make: Maker, width: int) -> None:
    model, batch = make(Successor(width)), Batch(Successor(width), 1, backend="threads")
    least, most = -(1 << width - 1), (1 << width - 1) - 1
    for number in (0, most, -1, least):
        program = Program().set("number", number).step().get("above")
        model.set("number", number)
        assert model.get("number") == number
        model.step()
        assert model.get("above") == model.run(program)["above"] == number + 1
        words = batch.run(program)["above"].reshape(-1).tolist()
        assert from_words(x % (1 << 64) for x in words) == (number + 1) % (1 << 64 * len(words))
    for number in (least - 1, most + 1):
        program = Program().set("number", number)
        for call, *arguments in (
            (model.set, "number", number),
            (model.run, program),
            (batch.run, program),
        ):
            answer = f"port 'number': {number} does not fit {width} bits, signed"
            for error in (BatchError, ValueError):
                with pytest.raises(error, match=answer):
                    call(*arguments)


LONG = 2_700_000
"""Cycles of a program that pauses: more than two million."""


def counts(component: wiring.Component, program: Program) -> list[int]:
    with closing(Model(component)) as model:
        calls, run = 0, model._calls.model_run

        def counted(*arguments: object) -> int:
            nonlocal calls
            calls += 1
            return int(run(*arguments))

        model._calls.model_run = counted
        results = model.run(program)
        return [calls, model.cycles, *np.asarray(results["above"]).reshape(-1).tolist()]


def test_a_long_program_goes_on_where_it_paused() -> None:
    steps = Program().set("number", 5).step(LONG).set("number", 6).step().get("above")
    assert counts(Successor(8), steps) == [3, LONG + 1, 7]
    waits = Program().until("above", 10, "first").set("number", -1).step()
    waits.until("above", LONG, "never").set("number", 7).step().get("above")
    assert counts(Successor(8), waits) == [3, LONG + 4, 8]
    loops = Program()
    with loops.repeat(3):
        with loops.repeat(LONG // 9):
            loops.set("number", 1).step().set("number", 2).step(2)
        loops.get("above")
    assert counts(Successor(8), loops) == [3, LONG, 3, 3, 3]


_INTERRUPTED = """
import os, signal, threading
from cppsim import Model, Program
from support.zoo import Registers

for program in (Program().step(1 << 60), Program().until("data", 1 << 60)):
    model = Model(Registers(8))
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        model.run(program)
    except KeyboardInterrupt:
        print("interrupted", model.run(Program().step(3).get("data")))
"""


def test_ctrl_c_ends_a_program() -> None:
    printed = succeed(sys.executable, "-W", "ignore", "-c", _INTERRUPTED)
    assert printed.split("\n")[:2] == ["interrupted {'data': 0}"] * 2
