"""An engine for Amaranth's ``Simulator`` that runs the design as compiled code.

Triggers other than ticks are Amaranth's own. A design that cannot be compiled is left to Amaranth's
simulator, and a `FallbackWarning` gives the reason.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Signal, Value

from .amaranth_internals import VCDWriter, empty_design
from .coverage import current_coverage
from .designs import Compiled, built
from .errors import SimulationError, fall_back
from .mode import Mode, default_mode
from .netlist.covered import Measured
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
        Native code runs the design: compiled, or at first interpreted.
    reason : str
        Why the design cannot be compiled; empty if it is, or in mode ``off``.
    """

    mode: Mode | None = None
    state_type: type[CompiledState] = CompiledState
    _processes: set[Any]

    def __init__(self, design: Any) -> None:
        mode = default_mode() if self.mode is None else self.mode
        self.compiled, self.reason = False, ""
        self._waves: dict[Any, SimulatorWaves] = {}
        self._clocks: list[tuple[int, int]] = []
        """The phase and the period of each clock."""
        self._earlier = 0
        """The cycles before the last reset."""
        if mode is not Mode.OFF:
            try:
                coverage = current_coverage()
                measured = Measured.NOTHING if coverage is None else coverage.measured
                self._begin_compiled(design, built(design, measured))
                if coverage is not None:
                    coverage.measure(design, self._state.model)
                return
            except SimulationError as error:
                self.reason = str(error)
                fall_back(self.reason)
        super().__init__(design)

    def _begin_compiled(self, design: Any, ready: Compiled) -> None:
        lowered, source = ready
        super().__init__(empty_design())
        self._design = design
        self._state = state = self.state_type(lowered, self._active_triggers, source)
        self._sample = state.sampled
        state.design = design
        self.compiled = True

    def get_value(self, expr: Any) -> int:
        return self._sample(Value.cast(expr)) if self.compiled else int(super().get_value(expr))

    def reset(self) -> None:
        """Return to power-on. Raises ``SimulationError`` while a waveform file has later times."""
        if self.now and (self._waves or self._vcd_writers):
            raise SimulationError(
                "reset: a waveform file is open, and its time cannot go back; close it first"
            )
        _, self._earlier = self.cycles()
        super().reset()

    def add_clock_process(self, clock: Signal, *, phase: int, period: int) -> None:
        super().add_clock_process(clock, phase=phase, period=period)
        self._clocks.append((phase, period))

    def cycles(self) -> tuple[int, int]:
        """Return how many cycles of clocks compiled code ran, and how many there were."""
        now = self.now
        begun = sum(max(0, (now - phase) // period + 1) for phase, period in self._clocks)
        total = self._earlier + begun
        return total if self.compiled else 0, total

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
