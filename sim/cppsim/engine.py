"""An engine for Amaranth's ``Simulator`` that runs the design as compiled code.

Triggers other than ticks are Amaranth's own. What cannot be compiled is left to Amaranth's
simulator whole, and a `FallbackWarning` says why.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Value

from .design import NotPlain
from .errors import SimulationError
from .lowering import Lowered, lower
from .private import VCDWriter
from .running import RunningEngine
from .state import CompiledState
from .waves import SimulatorWaves

__all__ = ["Engine", "FallbackWarning"]


class FallbackWarning(UserWarning):
    """A design is left to Amaranth's own simulator, which is slow, and why."""


class Engine(RunningEngine):
    """``Simulator(design, engine=cppsim.Engine)``.

    Two-state and free of glitches: a signal changes once at most for one cause. Where Amaranth's
    simulator differs from its own netlist, and thus from hardware, this does as the netlist:

    - A clock that is another one by another name has its edges at the same moment, not a delta
      cycle later; a register that takes its own clock as data gets the level before the edge.
    - Clocks that the design makes of one edge have theirs at the same moment, however long the way.
    - An asynchronous reset does not clock registers without reset, nor memories.
    - Bits out of the range of an inverted or reinterpreted value are those that its shape says.

    Raises what Amaranth raises of a design.

    Attributes
    ----------
    reason : str
        Why Amaranth's simulator runs the design; empty where compiled code does.
    """

    state_type: type[CompiledState] = CompiledState

    def __init__(self, design: Any) -> None:
        self.reason = ""
        try:
            lowered = _lowered(design)
            self._active_triggers: set[Any] = set()
            self._state = self.state_type(lowered, self._active_triggers)
        except SimulationError as error:
            self.reason = str(error)
            text = f"left to Amaranth's simulator: {self.reason}"
            warnings.warn(FallbackWarning(text), stacklevel=3)
            super().__init__(design)
            return
        self._design, self._edges = design, {}
        self._processes: set[Any] = set()
        self._testbenches: list[Any] = []
        self._delta_cycles = 0
        self._vcd_writers: list[Any] = []
        self._read = self._state.readers.read

    def get_value(self, expr: Any) -> int:
        return int(super().get_value(expr)) if self.reason else self._read(Value.cast(expr))

    @contextmanager
    def write_vcd(
        self, *, vcd_file: Any, gtkw_file: Any, traces: Any, fs_per_delta: int
    ) -> Iterator[None]:
        files = {"vcd_file": vcd_file, "gtkw_file": gtkw_file, "traces": traces}
        if self.reason or fs_per_delta or vcd_file is None:
            with super().write_vcd(**files, fs_per_delta=fs_per_delta):
                yield
            return
        waves = SimulatorWaves(VCDWriter(self._state, self._design, **files), self._state)
        clocks = self._state.clocks
        clocks.record([*clocks.waves, waves])
        try:
            yield
        finally:
            clocks.record([x for x in clocks.waves if x is not waves])
            waves.close(self.now)


def _lowered(design: Any) -> Lowered:
    """Raises ``NotPlain`` also for what Amaranth's netlist cannot hold and its simulator may."""
    try:
        return lower(design)
    except SimulationError:
        raise
    except Exception as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise NotPlain(lines[0]) from error
