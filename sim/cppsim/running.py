"""How a simulation goes on: from one thing that Python has to do to the next.

The order of things is that of Amaranth's simulator.
"""

from typing import Any

from amaranth.hdl import DriverConflict, Signal

from .clocks import Reason
from .context import Process
from .private import PyClockProcess, PySimEngine
from .state import CompiledState, SignalSlot
from .waits import Edge

__all__ = ["RunningEngine"]


class RunningEngine(PySimEngine):
    """An engine that knows its waits, and lets a compiled state leap over all time between them.

    Its state is Amaranth's or a compiled one. Whoever changes it calls `forget`.
    """

    def __init__(self, design: Any) -> None:
        self._edges: dict[tuple[int, int], Edge] = {}
        super().__init__(design)

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

    @property
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
        self._processes.add(PyClockProcess(state, clock, phase=phase, period=period))

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
            going = self.advance()
            if going and self._may_leap():
                going = self._leap(deadline)

    def advance(self) -> bool:
        if isinstance(self._state, CompiledState) and self._state.clocks.control.reached:
            self._reach(self._state)
        return bool(super().advance())

    def _may_leap(self) -> bool:
        state = self._state
        return (
            isinstance(state, CompiledState)
            and state.calm
            and bool(state.clocks.slots)
            and not self._active_triggers
            and not self._vcd_writers
        )

    def _leap(self, deadline: int | None) -> bool:
        """As ``advance``, many times, as long as that may leap; whether something is critical."""
        state, clocks = self._state, self._state.clocks
        clocks.until(deadline)
        while True:
            reason = clocks.leap()
            if reason == Reason.TIME:
                return True
            if reason == Reason.EDGE:
                self._reach(state)
                self._run_testbenches()
            elif reason == Reason.TOLD:
                state.tell()
                self.step_design()
            else:
                continue
            going = self._is_critical()
            if not going or not self._may_leap():
                clocks.advance()
                return going

    def _reach(self, state: CompiledState) -> None:
        """What follows from edges at which the compiled code stands still."""
        for edge in state.clocks.reached():
            edge.reach()
        state.reach()
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
