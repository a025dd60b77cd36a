"""Both evaluators have the same interface, and agree on every port in every cycle."""

import gc
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from amaranth.hdl import Assert, Assume, Format, Print, Signal, signed
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Model, Program, ReferenceModel
from cppsim.circuits import AnyModel
from cppsim.errors import BatchError, SimulationError
from cppsim.testing import waveforms
from support.carriers import RULES, Part, comparer, expect_rule, inverter, sampler, streamed
from support.small import interrupts, refused
from support.zoo import Registers

Maker = Callable[..., AnyModel]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("carrier", ["reference", "model"])
def test_the_contract_of_all_that_run_a_design(carrier: str, name: str) -> None:
    expect_rule(name, carrier)


def test_repeats_take_a_value_and_give_a_result_each_time(make: Maker) -> None:
    program, large = Program(), (1 << 63) + 1
    with program.repeat(2):
        program.set("go", [[1, 0]]).set("i", [[1, large]]).get("o")
        with program.repeat(3):
            program.step().get("count")
    with program.repeat(3):
        program.set("wide", np.array([[5, 7]], np.uint64)).get("wide")
    results = {name: values.tolist() for name, values in make(sampler()).run(program).items()}
    assert results == {"o": [1, large], "count": [[1, 2, 3], [3, 3, 3]], "wide": [[5, 7]] * 3}


def test_a_prepared_program_is_run_with_other_columns(make: Maker) -> None:
    mixer, wide = make(sampler()), (1 << 99) + 12345
    program = Program().set("wide", wide).get("echo").set("go", [0]).step(3)
    run = mixer.prepare(program.get("echo", "later").get("count"))
    low = wide * 5 % (1 << 64)
    high = wide * 5 % (1 << 100) >> 64
    assert run([0]) == [low, high, low, high, 0]
    assert run([1]) == [low, high, low + 3, high, 3]
    assert run([0]) == [low + 3, high, low + 3, high, 3]
    with pytest.raises(BatchError, match="columns: 0; expected 1, as the program sets"):
        run([])


def test_single_calls_take_signals_like_programs(make: Maker) -> None:
    dut: Any = streamed()
    model = make(dut)
    model.set(dut.i.payload, 3)
    model.step(2)
    assert model.get(dut.total) == model.get("total") == model.get(dut.i.payload) == 3
    assert model.until(dut.total, 4)
    assert not model.until(dut.total, 0)
    assert model.cycles == 3


_FIELDS_OF_A_BATCH = "fields are ports of a Batch only"


@pytest.mark.parametrize(
    ("port", "message"),
    [
        (lambda _: streamed().total, "is not a port; there are: i__payload, .*total"),
        (lambda _: 3, "port: 3; expected a string"),
        (lambda _: "i__payload.low", f"^.?no port 'i__payload.low'; {_FIELDS_OF_A_BATCH}"),
        (lambda x: x.i.payload.low, f"not a port but a part of 'i__payload'; {_FIELDS_OF_A_BATCH}"),
    ],
)
def test_what_is_not_a_port_is_refused_by_every_call(make: Maker, port: Any, message: str) -> None:
    dut = streamed()
    model, of = make(dut), port(dut)
    calls: list[Callable[[], object]] = [
        *(lambda: model.set(of, 1), lambda: model.get(of), lambda: model.until(of, 1)),
        *(lambda: model.run(Program().get(of, "n")), lambda: model.run(Program().set(of, 1))),
    ]
    for call in calls:
        with pytest.raises(BatchError, match=message) as error:
            call()
        assert isinstance(of, int) or isinstance(error.value, KeyError | TypeError | BatchError)


_REFUSED: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    *((lambda x, n=n: x.step(n), ValueError, f"cycles: {n}; exp") for n in (-1, 1 << 63)),
    *((lambda x, n=n: x.until("rare", n), ValueError, f"cycles: {n}; ") for n in (-1, 1 << 63)),
    (lambda x: x.step(0.5), TypeError, "cycles: 0.5; expected a whole number"),
    (lambda x: x.until("go", None), TypeError, "cycles: None; expected a whole number"),
    (lambda x: x.set("go", 0.5), TypeError, "port 'go': 0.5; expected a whole number"),
    (lambda x: x.run(Program().get("go").get("go")), BatchError, "two results are called 'go'"),
    (lambda x: x.run("count"), BatchError, "run takes a Program, not 'count'"),
    (lambda x: x.run(Program().step().set("go", [0, 1])), BatchError, "shape"),
]


@pytest.mark.parametrize(("call", "error", "message"), _REFUSED)
def test_a_refused_call_is_a_line_and_does_nothing(
    make: Maker, call: Callable[[Any], object], error: type[Exception], message: str
) -> None:
    mixer = make(sampler())
    refused(error, message, call, mixer)
    assert (mixer.cycles, mixer.get("go")) == (0, 0)
    mixer.set("go", np.uint8(1))
    mixer.step()
    assert mixer.get("count") == 1


def test_results_that_no_memory_holds_are_refused() -> None:
    program = Program()
    with program.repeat(1 << 32):
        program.get("o")
    with pytest.raises(BatchError, match="the program takes more memory than there is"):
        Model(inverter()).run(program)


def test_a_circuit_without_registers_has_cycles(make: Maker) -> None:
    model = make(inverter())
    model.set("i", 0b010)
    model.step(4)
    assert (model.get("o"), model.cycles) == (0b101, 4)


# --- checks and prints ----------------------------------------------------------------------------


CHECKS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda i: Assert(i != 1), "Assertion violated"),
    (lambda i: Assume(i != 2), "Assumption violated"),
    (lambda i: Assert(i != 3, Format("{} is not {}", i, 8)), "Assertion violated: 3 is not 8"),
    (lambda i: Assume(i != 4, "no"), "Assumption violated: no"),
    (lambda i: Assert(i != 5, '"no" {no} \\ é'), 'Assertion violated: "no" {no} \\ é'),
]
"""Checks that an input is not 1, not 2 and so on, and their messages."""


def test_a_failed_check_has_the_words_of_a_batch(make: Maker) -> None:
    """The message has the values of the edge at which the check failed."""
    checked = Part({"i": In(4)}, sync=lambda x: [check(x.i) for check, _ in CHECKS])
    model, batch = make(checked), Batch(checked, 1, "threads")
    for number, (_, line) in enumerate(CHECKS, 1):
        for one in (model, batch):
            one.reset()
            one.step(5)
            one.set("i", number)
        batch.step(5)
        assert batch.failures()[0] == (line, 5)
        with pytest.raises(SimulationError, match=f"^cycle 6: {re.escape(line)}$"):
            model.step(5)
    model.reset()
    model.step(3)
    assert model.cycles == 3


def test_a_failed_check_lasts_until_reset_in_the_reference() -> None:
    model = ReferenceModel(comparer())
    model.set("value", 7)
    for call in (model.step, lambda: model.get("value"), model.step):
        with pytest.raises(SimulationError, match=r"cycle 1: .*seven is not allowed"):
            call()


def test_a_circuit_prints_at_every_edge(capsys: pytest.CaptureFixture[str]) -> None:
    talker = Part({"i": In(4)}, sync=lambda x: Print(Format("value {}", x.i)))
    with closing(Model(talker)) as model:
        model.set("i", 5)
        model.step(2)
        model.run(Program().set("i", 9).step())
    assert capsys.readouterr().out == "value 5\nvalue 5\nvalue 9\n"


# --- ends -----------------------------------------------------------------------------------------


def test_an_interrupted_run_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ReferenceModel(comparer())
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


def test_a_closed_model_says_so_and_has_released_its_memory_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, released = Model(comparer()), []
    handle, destroy = model._model, model._calls.model_destroy

    def count(of: int) -> None:
        released.append(of)
        destroy(of)

    monkeypatch.setattr(model._calls, "model_destroy", count)
    model.close()
    model.close()
    assert released == [handle]
    for call in (lambda: model.get("value"), lambda: model.set("value", 1), model.step):
        with pytest.raises(SimulationError, match="the model is closed"):
            call()


def test_port_named_like_the_clock_is_refused(make: Maker) -> None:
    with pytest.raises(SimulationError, match="port clk: the name belongs to the clock domain"):
        make(Part({"clk": In(1), "o": Out(1)}))


# --- waveforms ------------------------------------------------------------------------------------


def test_a_waveform_that_cannot_be_opened_fails_before_the_build(tmp_path: Path) -> None:
    def built(*_: object, **__: object) -> NoReturn:
        pytest.fail("built")

    for vcd in (tmp_path, tmp_path / "no" / "wave.vcd"):
        # Nothing of the evaluator stays, to complain when it is freed.
        with pytest.raises(OSError, match=str(vcd)):
            Model(comparer(), vcd=vcd, build_with=built)


def test_a_waveform_that_cannot_be_finished_is_reported_once() -> None:
    evaluator = Model(comparer(), vcd="/dev/full")
    evaluator.step(10)
    with pytest.raises(SimulationError, match="waveform file could not be written"):
        evaluator.close()
    evaluator.close()
    # Freed without having been closed, it says nothing.
    evaluator = Model(comparer(), vcd="/dev/full")
    evaluator.step(10)
    del evaluator
    gc.collect()


def test_a_waveform_shows_every_cycle_and_signals_that_nothing_reads(
    make: Maker, tmp_path: Path
) -> None:
    file = tmp_path / "wave.vcd"
    dut = Part(
        {"value": In(4), "last": Out(4)},
        comb=lambda x: Signal(4, name="unread").eq(x.value ^ 5),
        sync=lambda x: x.last.eq(x.value),
    )
    model = make(dut, vcd=file)
    for value in (5, 1, 12):
        model.set("value", value)
        model.step()
    model.close()
    shown = waveforms(file.read_text())
    for signal, numbers in (("last", (5, 1, 12)), ("unread", (0, 4, 9))):
        (history,) = (x for name, x in shown.items() if f".{signal}:" in name)
        assert [value for _, value in history][-3:] == [f"{number:b}" for number in numbers]


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
        histories = waveforms(file.read_text()).items()
        shown.append({name.rpartition(".")[2]: values for name, values in histories})
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
    counted = next(x for name, x in waveforms(file.read_text()).items() if "counted" in name)
    # In half cycles: a reset shows while the clock is low.
    expected = (0, 5), (1, 8), (3, 11), (4, 5), (5, 8), (7, 11), (8, 5)
    assert counted == [(time * 500_000_000, f"{value:b}") for time, value in expected]
    with closing(ReferenceModel(Registers(8), vcd=file)) as reference:
        with pytest.raises(SimulationError, match=r"wave\.vcd: waveforms cannot begin again"):
            reference.reset()


# --- long programs --------------------------------------------------------------------------------

LONG = 2_700_000
"""Cycles of a program that pauses: more than two million."""


def counts(program: Program) -> list[int]:
    """Return the calls of compiled code, the cycles, and the values of ``above``."""
    successor = Part(
        {"number": In(signed(8)), "above": Out(signed(9))}, sync=lambda x: x.above.eq(x.number + 1)
    )
    with closing(Model(successor)) as model:
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
    assert counts(steps) == [3, LONG + 1, 7]
    waits = Program().until("above", 10, "first").set("number", -1).step()
    waits.until("above", LONG, "never").set("number", 7).step().get("above")
    assert counts(waits) == [3, LONG + 4, 8]
    loops = Program()
    with loops.repeat(3):
        with loops.repeat(LONG // 9):
            loops.set("number", 1).step().set("number", 2).step(2)
        loops.get("above")
    assert counts(loops) == [3, LONG, 3, 3, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.step(1 << 60),
        lambda x: x.until("data", 1 << 60),
        lambda x: x.run(Program().step(1 << 60)),
        lambda x: x.run(Program().until("data", 1 << 60)),
    ],
    ids=["step", "until", "program of a step", "program of a wait"],
)
def test_an_interrupt_ends_a_call_and_a_program(call: Callable[[AnyModel], object]) -> None:
    with closing(Model(Registers(8))) as model, interrupts() as interrupt_after:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012, the signal may come at once
            interrupt_after(0.1)
            call(model)
        assert model.run(Program().step(3).get("data")) == {"data": 0}
