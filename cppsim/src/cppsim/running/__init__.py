"""The state, clocks and waits of a compiled simulation, and here its main loop.

The loop advances from one event for Python to the next, in the order of Amaranth's simulator.
"""

from typing import Any

from amaranth.hdl import DriverConflict, Signal

from ..amaranth_internals import ClockProcess, PySimEngine
from .clocks import EDGE, MESSAGES, WOKEN
from .context import Process
from .depths import depths
from .slots import LogicSlot, SignalSlot
from .state import CompiledState
from .stops import Stops
from .triggers import Trigger
from .waits import Edge, Wait

__all__ = [
    "CompiledState",
    "LogicSlot",
    "RunningEngine",
    "SignalSlot",
    "Stops",
    "depths",
]


class RunningEngine(PySimEngine):
    """An engine that knows its waits, and fast-forwards a compiled state from one to the next.

    Its state is Amaranth's or a compiled one.

    Attributes
    ----------
    stops : Stops
        The stops of compiled code for Python, also those before a reset.
    """

    _interrupted = False
    """An exception has interrupted an advance."""

    def __init__(self, design: Any) -> None:
        self._edges: dict[tuple[int, int], Edge] = {}
        self.stops = Stops()
        super().__init__(design)

    @property
    def active_triggers(self) -> "set[Any]":
        """Triggers and waits that end in this delta cycle."""
        return self._active_triggers

    def reset(self) -> None:
        for edge in self._edges.values():
            edge.reset()
        super().reset()

    def edge(self, signal: Signal, level: int) -> Edge:
        """Return the edge of ``signal`` to ``level``."""
        # An edge holds its signal, so that no other signal gets its ``id``.
        key = (id(signal), level)
        if key not in self._edges:
            self._edges[key] = Edge(self, signal, level)
        return self._edges[key]

    def unwatched(self) -> bool:
        """Return whether signals of the design have no waveform files and no wakers but ticks."""
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

    def add_trigger_combination(self, combination: Any, *, oneshot: bool) -> Any:
        if isinstance(self._state, CompiledState):
            return Trigger(self, combination, self._active_triggers, oneshot=oneshot)
        return super().add_trigger_combination(combination, oneshot=oneshot)

    def set_value(self, expr: Any, value: int) -> None:
        slot = self._state.slots[self._state.get_signal(expr)] if type(expr) is Signal else None
        if isinstance(slot, SignalSlot) and not slot.is_comb:
            slot.update(slot.wrapped(value))
        else:
            super().set_value(expr, value)

    # --- many steps at once -------------------------------------------------------------------

    def run(self, deadline: int | None = None) -> None:
        """Advance until ``deadline``, in femtoseconds, or while anything is critical."""
        going = True
        while going if deadline is None else self.now < deadline:
            going = self._fast_forward(deadline) if self._may_fast_forward() else self._advance()

    def advance(self) -> bool:
        return self._fast_forward(0) if self._may_fast_forward() else self._advance()

    def _advance(self) -> bool:
        """Advance by one event, like Amaranth's engine."""
        self._interrupted = True
        if isinstance(self._state, CompiledState):
            if self.stops.advance():
                self._state.model.compile_if_spent()
                self.stops.note(self._active_triggers)
                self.stops.note_reasons(self._reasons(self._state))
            if self._state.deltas.control.stopped:
                self._wake(self._state, 1)
            elif self._state.clocks.control.reached:
                self._end_waits(self._state, 1)
        going = bool(super().advance())
        self._interrupted = False
        return going

    def _reasons(self, state: CompiledState) -> list[str]:
        """Return why compiled code may not run alone."""
        found = {
            "a waveform file with fs_per_delta": bool(self._vcd_writers),
            "a waveform file with signals outside of the design": state.clocks.attended,
            "no clock that compiled code runs": not state.clocks.slots,
            "a message of combinational logic": bool(state.reported),
        }
        return [reason for reason, given in found.items() if given]

    def _may_fast_forward(self) -> bool:
        """Return whether nothing happens before the next edge of a clock."""
        state = self._state
        return (
            isinstance(state, CompiledState)
            and not self._interrupted
            and not state.due
            and not state.clocks.woken
            and bool(state.clocks.slots)
            and self._runs_alone(state)
        )

    def _runs_alone(self, state: CompiledState) -> bool:
        """Return whether compiled code knows all that Python waits for."""
        return not (
            state.reported or self._active_triggers or self._vcd_writers or state.clocks.attended
        )

    def _fast_forward(self, deadline: int | None) -> bool:
        """Advance once or more, until ``deadline``; return whether anything is critical."""
        state, clocks = self._state, self._state.clocks
        state.model.compile_if_spent()
        clocks.until(deadline)
        fast_forward, stops = clocks.fast_forward, self.stops
        left = stops.left
        self._interrupted = True
        going = True
        while going and self._runs_alone(state):
            state.attend()
            if not left:
                state.model.compile_if_spent()
            reason = fast_forward()
            left = left - 1 if left else stops.again()
            if reason == EDGE:
                self._end_waits(state, left)
                going = self._run_testbenches() or self._is_critical()
            elif reason == WOKEN:
                self._wake(state, left)
                going = self._run_testbenches() or self._is_critical()
            elif reason == MESSAGES:
                if not left:
                    self.stops.note_reasons(["a message of the design"])
                state.report_messages()
                self.step_design()
                going = self._is_critical()
            else:
                state.stale = True
                clocks.land()
                going = self._is_critical()
                break
        else:
            clocks.advance()
        stops.left = left
        self._interrupted = False
        return going

    def _end_waits(self, state: CompiledState, left: int) -> None:
        """End the waits for the edges at which compiled code has stopped.

        The stop is sampled if ``left`` is 0.
        """
        edges = state.reach()
        waits: list[Wait] = edges[0].reach()
        for edge in edges[1:]:
            waits += edge.reach()
        if not left:
            self.stops.note(waits)
        for wait in waits:
            wait.run()
        if not state.step(alone=len(self._processes) == 1):
            self.step_design()

    def _wake(self, state: CompiledState, left: int) -> None:
        """Continue the time step in which compiled code has stopped; sampled if ``left`` is 0."""
        for edge in state.resume():
            self._active_triggers.update(edge.reach())
        if not left:
            self.stops.note(self._active_triggers)
        self.step_design()

    def _run_testbenches(self) -> bool:
        """Run them until all wait; return whether the last one that ran is critical."""
        again, critical = True, False
        while again:
            again = False
            for testbench in self._testbenches:
                if testbench.runnable:
                    testbench.runnable = False
                    testbench.run()
                    again = True
                    critical = testbench.critical
        return critical

    def _is_critical(self) -> bool:
        for runnable in self._testbenches:
            if runnable.critical:
                return True
        return any(runnable.critical for runnable in self._processes)
