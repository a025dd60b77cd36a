"""An engine for Amaranth's ``Simulator`` that runs the design as compiled code.

Triggers other than ticks are Amaranth's own. A design that cannot be compiled is left to Amaranth's
simulator, and a `FallbackWarning` gives the reason.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from amaranth.hdl import Signal, Value

from .amaranth_internals import VCDWriter, empty_design
from .background import Switch, fall_back
from .designs import Written, built, known
from .errors import SimulationError
from .hand_over import hand_over_clocks, hand_over_state, is_at_rest
from .mode import Mode, default_mode
from .running import RunningEngine
from .running.state import CompiledState
from .waveforms.simulator import SimulatorWaves


class Engine(RunningEngine):
    """``Simulator(design, engine=cppsim.Engine)``.

    Signals have two states and no glitches. Where Amaranth's simulator differs from its own
    netlist, and so from hardware, this engine follows the netlist:

    - Logic whose paths have different numbers of assignments changes once, and last.
    - An alias of a clock has its edges with the clock, not a delta cycle later.
    - A register whose data is its own clock gets the level before the edge.
    - Clocks that the design derives from one edge have their edges at the same time. Registers
      behind them load settled data.
    - Data that a process sets together with the edge of a clock passes logic at once.
    - An asynchronous reset does not clock registers without a reset, nor memories.
    - Statements beside a failed ``Assert`` take effect.
    - Bits outside the range of an inverted or reinterpreted value follow its shape.

    Raises the errors that Amaranth raises for a design.

    Attributes
    ----------
    mode : Mode, optional
        The mode of all engines of a class; None for `default_mode`.
    compiled : bool
        Compiled code runs the design.
    reason : str
        Why the design is not compiled; empty if it is, or may still be.
    """

    mode: Mode | None = None
    state_type: type[CompiledState] = CompiledState
    _processes: set[Any]

    def __init__(self, design: Any) -> None:
        mode = default_mode() if self.mode is None else self.mode
        self.compiled, self.reason = False, ""
        self._switch: Switch | None = None
        self._waves: dict[Any, SimulatorWaves] = {}
        self._clocks: list[tuple[int, int]] = []
        """The phase and the period of each clock."""
        self._changed_over = -1
        """The time of the last cycle before compiled code."""
        self._earlier = (0, 0)
        """`cycles` before the last reset."""
        try:
            ready = self._ready(design, mode)
            if ready is not None:
                self._begin_compiled(design, ready)
                return
        except SimulationError as error:
            self.reason = str(error)
            fall_back(self.reason)
        start = perf_counter()
        super().__init__(design)
        self._own_wakers = [len(slot.wakers) for slot in self._state.slots]
        if mode is Mode.AUTO:
            self._switch = Switch(design, perf_counter() - start)

    def _ready(self, design: Any, mode: Mode) -> Written | None:
        """Return the compiled design, None to begin in Amaranth's simulator."""
        if mode is Mode.OFF:
            return None
        return known(design) if mode is Mode.AUTO else built(design)

    def _begin_compiled(self, design: Any, ready: Written) -> None:
        lowered, source = ready
        super().__init__(empty_design())
        self._design = design
        self._set_state(self.state_type(lowered, self._active_triggers, source))

    def _set_state(self, state: CompiledState) -> None:
        self._state, self._sample = state, state.sampled
        state.design = self._design
        self.compiled = True

    def get_value(self, expr: Any) -> int:
        return self._sample(Value.cast(expr)) if self.compiled else int(super().get_value(expr))

    def reset(self) -> None:
        """Return to power-on. Raises ``SimulationError`` while a waveform file has later times."""
        if self.now and (self._waves or self._vcd_writers):
            raise SimulationError(
                "reset: a waveform file is open, and its time cannot go back; close it first"
            )
        self._earlier, self._changed_over = self.cycles(), -1
        super().reset()

    def add_clock_process(self, clock: Signal, *, phase: int, period: int) -> None:
        super().add_clock_process(clock, phase=phase, period=period)
        self._clocks.append((phase, period))

    def cycles(self) -> tuple[int, int]:
        """Return how many cycles of clocks compiled code ran, and how many there were."""
        earlier, all_earlier = self._earlier
        total = self._cycles_until(self.now)
        compiled = total - self._cycles_until(self._changed_over) if self.compiled else 0
        return earlier + compiled, all_earlier + total

    def _cycles_until(self, time: int) -> int:
        """Return how many cycles of clocks have begun at ``time``."""
        return sum(max(0, (time - phase) // period + 1) for phase, period in self._clocks)

    def _advance(self) -> bool:
        if self._switch is not None:
            seconds = perf_counter()
            if seconds >= self._switch.due:
                self._look(self._switch, seconds)
        return super()._advance()

    # --- from Amaranth's simulator to compiled code -------------------------------------------

    def _look(self, switch: Switch, seconds: float) -> None:
        ready = switch.look(seconds)
        self.reason = switch.reason
        at_rest = not self._interrupted and is_at_rest(self._state, self._processes)
        if ready is not None and at_rest:
            try:
                self._hand_over(ready)
                self._switch = None
            except SimulationError as error:
                switch.fail(error)

    def _hand_over(self, ready: Written) -> None:
        """Continue in compiled code, or raise ``SimulationError`` and change nothing."""
        before = self._state
        state = hand_over_state(before, self._own_wakers, ready, self._active_triggers)
        self._processes = hand_over_clocks(state, before.timeline, self._processes)
        self._set_state(state)
        self._changed_over = self.now
        self.forget()
        for writer in list(self._vcd_writers):
            writer.state = state
            if _is_taken_over(writer):
                self._vcd_writers.remove(writer)
                self._waves[writer] = SimulatorWaves(writer, state)
        state.clocks.record(list(self._waves.values()))

    # --- waveforms ----------------------------------------------------------------------------

    @contextmanager
    def write_vcd(
        self, *, vcd_file: Any, gtkw_file: Any, traces: Any, fs_per_delta: int
    ) -> Iterator[None]:
        writer = VCDWriter(
            self._state,
            self._design,
            vcd_file=vcd_file,
            gtkw_file=gtkw_file,
            traces=traces,
            fs_per_delta=fs_per_delta,
        )
        if self.compiled and _is_taken_over(writer):
            self._waves[writer] = SimulatorWaves(writer, self._state)
            self._state.clocks.record(list(self._waves.values()))
        else:
            self._vcd_writers.append(writer)
        try:
            yield
        finally:
            if writer in self._waves:
                waves = self._waves.pop(writer)
                self._state.clocks.record(list(self._waves.values()))
                waves.close(self.now)
            else:
                writer.close(self._now_plus_deltas(fs_per_delta))
                self._vcd_writers.remove(writer)


def _is_taken_over(writer: Any) -> bool:
    """Return whether compiled code can write this waveform file."""
    return writer.vcd_writer is not None and not writer.fs_per_delta
