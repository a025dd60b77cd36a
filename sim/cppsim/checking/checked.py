"""The same design in compiled code and in Amaranth's simulator, compared at every point in time.

Testbenches and processes run once, on compiled code. The signals that they set are also set in a
`Shadow`, in the same delta cycle. Signals, rows of memories and printed lines must be equal.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from amaranth.hdl import Signal
from amaranth.sim import Simulator

from ..amaranth_internals import PySimEngine, engine_of
from ..engine import Engine
from ..errors import SimulationError
from ..mode import Mode
from ..netlist.events import Event, said
from ..running.state import CompiledState
from .comparison import Clock, Comparison
from .shadow import Shadow


def check(
    design: Any,
    *testbenches: Callable[[Any], Any],
    clocks: Mapping[str, float] | float | None = None,
    processes: Iterable[Callable[[Any], Any]] = (),
) -> None:
    """Simulate ``design`` in compiled code and in Amaranth's simulator, and compare the two.

    ``clocks`` has the period in seconds of each clock, by the name of its domain; a number alone is
    that of ``"sync"``. Raises `Difference` at the first difference, ``SimulationError`` for a
    design that cannot be compiled, and what Amaranth's simulator and the testbenches raise.
    """
    simulator: Any = Simulator(design, engine=CheckedEngine)
    reason = engine_of(simulator).reason
    if reason:
        raise SimulationError(f"nothing to compare: {reason}")
    periods = clocks if isinstance(clocks, Mapping) else {} if clocks is None else {"sync": clocks}
    for domain, period in periods.items():
        simulator.add_clock(period, domain=domain)
    for process in processes:
        simulator.add_process(process)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    simulator.run()


class CheckedState(CompiledState):
    """Passes writes on to ``shadow``, and records the messages of clocked logic."""

    shadow: Shadow

    def __init__(self, lowered: Any, triggers: Iterable[Any], source: Any) -> None:
        super().__init__(lowered, triggers, source)
        self.messages: list[str] = []

    def commit(self, changed: set[Any] | None = None) -> bool:
        values, rows = [], []
        for slot in self.pending:
            if hasattr(slot, "memory"):
                rows += [((slot.memory, row), value) for row, value in slot.write_queue.items()]
            else:
                values.append((slot.signal, slot.next))
        converged = super().commit(changed)
        self.shadow.step(values, rows)
        return converged

    def _report(self, event: Event, values: Any) -> None:
        if id(event.cell) not in self._watches:
            self.messages.append(said(event.cell, values))
        super()._report(event, values)


class CheckedEngine(Engine):
    """``Simulator(design, engine=cppsim.CheckedEngine)``: compiled, and compared as it runs.

    ``run`` and ``advance`` raise `Difference` where the two simulators differ, also for the
    differences that `Engine` lists.
    """

    mode = Mode.ALWAYS
    state_type = CheckedState

    def __init__(self, design: Any) -> None:
        super().__init__(design)
        self._comparison: Comparison | None = None
        if not self.reason:
            self._state.shadow = Shadow(design)
            self._comparison = Comparison(design, self._state, self._state.shadow)

    def reset(self) -> None:
        super().reset()
        if self._comparison:
            self._comparison.reset()

    # Amaranth's own clocks and contexts write by `CheckedState.commit` only.
    add_async_process = PySimEngine.add_async_process
    add_async_testbench = PySimEngine.add_async_testbench

    def _may_fast_forward(self) -> bool:
        return False

    def add_clock_process(self, clock: Signal, *, phase: int, period: int) -> None:
        PySimEngine.add_clock_process(self, clock, phase=phase, period=period)
        if self._comparison:
            self._comparison.clocks.append(Clock(clock.name, phase, period))

    def step_design(self) -> None:
        super().step_design()
        if self._comparison:
            self._state.shadow.settle()

    def _advance(self) -> bool:
        now = self.now
        more = super()._advance()
        if self._comparison:
            self._comparison.expect_same(now)
        return more
