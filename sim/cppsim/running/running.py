"""How a simulation goes on: from one thing that Python has to do to the next.

The order of things is that of Amaranth's simulator.
"""

from typing import Any

from amaranth.hdl import DriverConflict, Signal

from ..amaranth_internals import ClockProcess, PySimEngine
from .clocks import EDGE, TOLD
from .context import Process
from .slots import SignalSlot
from .state import CompiledState
from .waits import Edge, Wait

__all__ = ["RunningEngine"]


class RunningEngine(PySimEngine):
    """An engine that knows its waits, and lets a compiled state leap over all time between them.

    Its state is Amaranth's or a compiled one. Whoever changes it calls `forget`.
    """

    _cut_short = False
    """An exception has left something undone."""

    def __init__(self, design: Any) -> None:
        self._edges: dict[tuple[int, int], Edge] = {}
        super().__init__(design)

    @property
    def active_triggers(self) -> "set[Any]":
        """Triggers and waits that end in this delta cycle."""
        return self._active_triggers

    def forget(self) -> None:
        """The state is another one."""
        for process in (*self._processes, *self._testbenches):
            if isinstance(process, Process):
                process.context.forget()
        for edge in self._edges.values():
            edge.forget()

    def reset(self) -> None:
        for edge in self._edges.values():
            edge.reset()
        super().reset()

    def edge(self, signal: Signal, level: int) -> Edge:
        """The change of ``signal`` to ``level``."""
        # An edge keeps its signal, so that no other gets its number.
        key = (id(signal), level)
        if key not in self._edges:
            self._edges[key] = Edge(self, signal, level)
        return self._edges[key]

    def unwatched(self) -> bool:
        """Whether nobody hears of signals of the design but by waiting for ticks."""
        return not self._vcd_writers and not self._state.watched

    def add_clock_process(self, clock: Signal, *, phase: int, period: int) -> None:
        state = self._state
        slot = state.slots[state.get_signal(clock)]
        if slot.is_comb:
            raise DriverConflict("Clock signal is already driven by combinational logic")
        if isinstance(state, CompiledState):
            self._processes.add(state.clocks)
            if type(slot) is SignalSlot and state.clocks.add(slot, phase=phase, period=period):
                return
        self._processes.add(ClockProcess(state, clock, phase=phase, period=period))

    def add_async_process(self, simulator: Any, process: Any) -> None:
        made = Process(self._design, self, process, testbench=False, background=True)
        self._processes.add(made)

    def add_async_testbench(self, simulator: Any, process: Any, *, background: bool) -> None:
        made = Process(self._design, self, process, testbench=True, background=background)
        self._testbenches.append(made)

    # --- many steps at once -------------------------------------------------------------------

    def run(self, deadline: int | None = None) -> None:
        """As ``advance`` over and over: while something is critical, or until a deadline.

        ``deadline`` is in femtoseconds.
        """
        going = True
        while going if deadline is None else self.now < deadline:
            going = self._leap(deadline) if self._may_leap() else self._advance()

    def advance(self) -> bool:
        return self._leap(0) if self._may_leap() else self._advance()

    def _advance(self) -> bool:
        """As Amaranth's ``advance``."""
        self._cut_short = True
        if isinstance(self._state, CompiledState) and self._state.clocks.control.reached:
            self._reach(self._state)
        going = bool(super().advance())
        self._cut_short = False
        return going

    def _may_leap(self) -> bool:
        """Whether nothing happens before the next edge of a clock."""
        state = self._state
        return (
            isinstance(state, CompiledState)
            and not self._cut_short
            and not state.due
            and not state.clocks.woken
            and bool(state.clocks.slots)
            and self._quiet(state)
        )

    def _quiet(self, state: CompiledState) -> bool:
        """Whether all hear of nothing but ticks, if nothing is to happen now."""
        return not (
            state.watched
            or state.told
            or self._active_triggers
            or self._vcd_writers
            or state.clocks.attended
        )

    def _leap(self, deadline: int | None) -> bool:
        """As ``advance``, once at least, until ``deadline``; whether something is critical."""
        state, clocks = self._state, self._state.clocks
        clocks.until(deadline)
        leap = clocks.leap
        self._cut_short = True
        going = True
        while going and self._quiet(state):
            reason = leap()
            if reason == EDGE:
                self._reach(state)
                self._run_testbenches()
            elif reason == TOLD:
                state.tell()
                self.step_design()
            else:
                state.stale = True
                clocks.land()
                going = self._is_critical()
                break
            going = self._is_critical()
        else:
            clocks.advance()
        self._cut_short = False
        return going

    def _reach(self, state: CompiledState) -> None:
        """What follows from edges at which compiled code stands still."""
        state.reach()
        waits: list[Wait] = []
        for edge in state.clocks.reached():
            waits += edge.reach()
        for wait in waits:
            wait.run()
        if not state.step(alone=len(self._processes) == 1):
            self.step_design()

    def _run_testbenches(self) -> None:
        again = True
        while again:
            again = False
            for testbench in self._testbenches:
                if testbench.runnable:
                    testbench.runnable = False
                    testbench.run()
                    again = True

    def _is_critical(self) -> bool:
        for runnables in (self._testbenches, self._processes):
            for runnable in runnables:
                if runnable.critical:
                    return True
        return False
