"""Wrappers of private Amaranth code have one form for all versions of Amaranth."""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import methodcaller
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth import hdl
from amaranth.hdl import Module, Signal

import cppsim
from cppsim.amaranth_internals import (
    ClockProcess,
    PyEngineState,
    PySimEngine,
    empty_design,
    femtoseconds_of,
)
from cppsim.mode import Mode
from support.sim.amaranth import Simulator


def test_times_are_in_seconds() -> None:
    assert femtoseconds_of(1.5e-6) == 1_500_000_000


def test_times_are_periods_in_the_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert femtoseconds_of(SimpleNamespace(femtoseconds=7)) == 7
    monkeypatch.setattr(hdl, "Period", SimpleNamespace, raising=False)
    assert femtoseconds_of(1.5e-6) is None, "left to Amaranth, which warns of it"


@pytest.mark.parametrize("run", [("run",), ("run_until", 3e-6)], ids=lambda x: x[0])
def test_runs_close_generators_as_the_next_version_does(
    run: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    m, count, seen = Module(), Signal(8), []
    m.d.sync += count.eq(count + 1)

    @contextmanager
    def replace_hooks(_: Any) -> Iterator[None]:
        seen.append("replaced")
        yield
        seen.append("restored")

    async def work(ctx: Any) -> None:
        await ctx.tick()
        seen.append("ran")

    monkeypatch.setattr(Simulator, "_replace_asyncgen_hooks", replace_hooks, raising=False)
    simulator = cppsim.Simulator(m, mode="always")
    simulator.add_clock(1e-6)
    simulator.add_testbench(work)
    methodcaller(*run)(simulator)
    assert seen == ["replaced", "ran", "restored"]


def test_a_compiled_engine_has_all_that_amaranths_constructor_sets() -> None:
    class Newer(PySimEngine):  # type: ignore[misc]
        """Amaranth's engine in a version with one attribute more."""

        def __init__(self, design: Any) -> None:
            super().__init__(design)
            self.added = 1

    class NewerEngine(cppsim.Engine, Newer):
        """cppsim's engine on top of it."""

        mode = Mode.ALWAYS

    m, count = Module(), Signal(8)
    m.d.sync += count.eq(count + 1)
    engine: Any = NewerEngine(hdl.Fragment.get(m, None).prepare())
    assert engine.compiled
    assert vars(PySimEngine(empty_design())).keys() < vars(engine).keys()
    assert engine.added == 1
    assert not engine._processes


@pytest.mark.parametrize("phase", [0.0, 2e-6, 3e-6])
def test_a_clock_toggles_when_amaranths_does(phase: float) -> None:
    def changes(*, replaced: bool) -> list[tuple[int, int]]:
        m, count = Module(), Signal(8)
        m.d.sync += count.eq(count + 1)
        simulator: Any = Simulator(m)
        simulator.add_clock(4e-6, phase=phase)
        engine = simulator._engine
        if replaced:
            (clock,) = [x for x in engine._processes if hasattr(x, "period")]
            engine._processes.remove(clock)
            signal = simulator._design.fragment.domains["sync"].clk
            mine = ClockProcess(clock.state, signal, phase=clock.phase, period=clock.period)
            engine._processes.add(mine)
        seen = []
        for _ in range(12):
            simulator.advance()
            seen.append((engine.now, engine.get_value(count)))
        return seen

    assert changes(replaced=True) == changes(replaced=False)


def test_the_next_edge_of_a_clock_and_its_waker() -> None:
    state = PyEngineState()
    clock = ClockProcess(state, Signal(name="clk"), phase=3, period=10)
    assert clock.next_edge(0, {}) == 3, "before it has run"
    clock.run()
    wakers = state.timeline.wakers
    assert clock.next_edge(0, wakers) == 3
    assert not wakers
    clock.wake()
    assert clock.next_edge(3, wakers) == 3, "at its edge"
