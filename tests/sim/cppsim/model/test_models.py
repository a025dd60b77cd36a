"""Both evaluators have the same interface, and agree on every port in every cycle."""

import gc
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from cppsim.model.interface import Clock, Drive, Evaluator, Get, RunUntil, Set, SimulationError
from cppsim.model.model import CompiledEvaluator
from cppsim.model.reference import PysimEvaluator
from cppsim.netlist.storage import StorageAccess, StoragePort
from support.seeds import slow
from support.sim.evaluated import READS, STORAGE, Chain, Comparer, Inverter, Keeper, Mixer, Ripple

Maker = Callable[..., Evaluator]


@pytest.fixture(params=[PysimEvaluator, CompiledEvaluator])
def make(request: pytest.FixtureRequest) -> Iterator[Maker]:
    made: list[Evaluator] = []

    def maker(*arguments: object, **options: object) -> Evaluator:
        made.append(request.param(*arguments, **options))
        return made[-1]

    yield maker
    for evaluator in made:
        evaluator.close()


@pytest.fixture
def mixer(make: Maker) -> Evaluator:
    return make(Mixer(), storage=STORAGE, buffers={"ram": ram()})


def ram(data_width: int = 64, words: int = 16) -> np.ndarray:
    return np.random.default_rng(data_width).integers(0, 256, words * data_width // 8, np.uint8)


@pytest.mark.parametrize(
    ("data_width", "words"), [(64, 16), slow(32, 11), (512, 4), slow(8, 16), slow(24, 5)]
)
def test_evaluators_agree_on_every_port_in_every_cycle(data_width: int, words: int) -> None:
    circuits = []
    for evaluator in (PysimEvaluator, CompiledEvaluator):
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


def test_get_shows_what_set_changed_without_a_clock_edge(mixer: Evaluator) -> None:
    for value in (0, 3, (1 << 100) - 1):
        mixer.set("wide", value)
        assert mixer.get("wide") == value
        assert mixer.get("echo") == value * 5 % (1 << 100)
    assert mixer.get("constant") == 0x12_3456_789A
    assert mixer.cycles == 0


def test_what_a_get_computes_leaves_no_trace(make: Maker) -> None:
    evaluator = make(Keeper())
    evaluator.run([Set("store", 1), Set("value", 7), Get("kept"), Set("store", 0), Clock()])
    assert evaluator.get("kept") == 0
    evaluator.run([Set("store", 1), Get("kept"), Set("value", 9), Clock()])
    assert evaluator.get("kept") == 9


def test_run_until_includes_the_edge_at_which_the_condition_was_high(mixer: Evaluator) -> None:
    mixer.set("go", 1)
    assert mixer.run_until("rare", 1000)
    assert (mixer.cycles, mixer.get("count"), mixer.get("rare")) == (22, 22, 0)
    assert not mixer.run_until("rare", 31)
    assert mixer.cycles == 53
    assert mixer.run_until("rare", 1)
    assert not mixer.run_until("rare", 0)
    assert mixer.cycles == 54


def test_batch_does_what_single_calls_do(mixer: Evaluator) -> None:
    wide = (1 << 99) + 12345
    results = mixer.run(
        [
            Get("count"),
            Set("go", 1),
            Set("wide", wide),
            Get("echo"),
            Clock(3),
            Get("echo"),
            RunUntil("rare", 30),
            Set("go", 0),
            Clock(10),
            Get("count"),
        ]
    )
    assert results == [0, wide * 5 % (1 << 100), (wide * 5 + 3) % (1 << 100), 22]
    assert mixer.cycles == 32
    assert mixer.run([]) == []


def test_a_prepared_batch_is_run_with_other_values(mixer: Evaluator) -> None:
    wide = (1 << 99) + 12345
    run = mixer.prepare(
        [Set("wide", wide), Get("echo"), Drive("go"), Clock(3), Get("echo"), Get("count")]
    )
    echo = wide * 5 % (1 << 100)
    assert run([0]) == [echo, echo, 0]
    assert run([1]) == [echo, echo + 3, 3]
    assert run([0]) == [echo + 3, echo + 3, 3]
    with pytest.raises((ValueError, StopIteration)):
        run([])
    stuck = mixer.prepare([Drive("go"), RunUntil("rare", 12)])
    with pytest.raises(SimulationError, match="rare was not high within 12 cycles"):
        stuck([0])


def test_batch_stops_where_a_condition_does_not_come(mixer: Evaluator) -> None:
    with pytest.raises(SimulationError, match="rare was not high within 12 cycles"):
        mixer.run([RunUntil("rare", 12), Clock(100)])
    assert mixer.cycles == 12


def test_reset_returns_to_power_on_and_keeps_the_storage(make: Maker) -> None:
    buffer = ram()
    evaluator = make(Mixer(), storage=STORAGE, buffers={"ram": buffer})

    def history() -> list[int]:
        evaluator.set("go", 1)
        values = []
        for _ in range(40):
            values += evaluator.run([Clock(), Get("count"), Get("read_word"), Get("write_word")])
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
        ({"data": "wide"}, "100 bits are no whole bytes"),
        ({"buffer": "rom"}, "no buffer 'rom'"),
    ],
)
def test_storage_that_does_not_fit_is_refused(
    make: Maker, changes: dict[str, str], message: str
) -> None:
    port = StoragePort(access=StorageAccess.READ, **(READS | changes))
    with pytest.raises(SimulationError, match=message):
        make(Mixer(), storage=[port], buffers={"ram": ram()})


def test_unfit_values_and_ports_are_refused(make: Maker) -> None:
    evaluator = make(Inverter())
    for call, arguments, error, message in (
        (evaluator.set, ("i", 8), ValueError, "i: 8 does not fit in 3 bits"),
        (evaluator.set, ("o", 1), ValueError, "o is no input"),
        (evaluator.set, ("q", 1), KeyError, "q"),
        (evaluator.get, ("q",), KeyError, "q"),
        (evaluator.run_until, ("q", 1), KeyError, "q"),
    ):
        with pytest.raises(error, match=message):
            call(*arguments)


class Clocked(wiring.Component):
    """A design with a port of the clock's name."""

    clk: In(1)
    o: Out(1)

    def elaborate(self, platform: object) -> Module:
        return Module()


def test_port_named_like_the_clock_is_refused(make: Maker) -> None:
    with pytest.raises(SimulationError, match="port clk: the name belongs to the clock domain"):
        make(Clocked())


def test_a_waveform_that_cannot_be_opened_fails_before_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cppsim.model.model.build", lambda *_, **__: pytest.fail("built"))
    for vcd in (tmp_path, tmp_path / "no" / "wave.vcd"):
        # Nothing of the evaluator stays, to complain when it is freed.
        with pytest.raises(OSError, match=str(vcd)):
            CompiledEvaluator(Comparer(), vcd=vcd)


def test_a_waveform_that_cannot_be_finished_is_reported_once() -> None:
    evaluator = CompiledEvaluator(Comparer(), vcd="/dev/full")
    evaluator.step(10)
    with pytest.raises(SimulationError, match="waveform file could not be written"):
        evaluator.close()
    evaluator.close()
    # Freed without having been closed, it says nothing.
    evaluator = CompiledEvaluator(Comparer(), vcd="/dev/full")
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


def agree(slow: Evaluator, fast: Evaluator) -> None:
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


@pytest.mark.parametrize("circuit", [Ripple, Chain])
def test_bits_of_a_signal_may_depend_on_others_of_it(circuit: Callable[[], Elaboratable]) -> None:
    agree(PysimEvaluator(circuit()), CompiledEvaluator(circuit()))
