"""The part of a compiled simulation's state that signals, memories and readers use."""

from typing import Any

from amaranth.hdl import MemoryData, Signal

from ..amaranth_internals import PyEngineState
from ..cpp.simulation import SimulationSource
from ..native.compiled import CompiledModel
from ..netlist.lowered import Lowered
from ..probe.probe import Probes


class SettledState(PyEngineState):
    """A compiled model whose combinational logic is evaluated when a value of it is read.

    Attributes
    ----------
    stale : int
        0 while the combinational logic is settled. Otherwise 1 plus the number of reads for which
        a program for one value is faster than settling all of it.
    patience : int
        ``stale`` just after a change.
    due : bool
        The model has changes that its next step will see.
    fresh : bool
        Nothing has happened since power-on.
    watched : dict
        The slots whose wakers are called after a step of the model.
    """

    def __init__(self, lowered: Lowered, source: SimulationSource | None = None) -> None:
        super().__init__()
        self._lowered = lowered
        self.model = CompiledModel(lowered, source)
        self.probes = Probes(lowered, self.model)
        self.patience = 1 + self.probes.patience
        self.watched: dict[Any, None] = {}
        self._power_on()

    def _power_on(self) -> None:
        self.stale = 1
        self.fresh = self.due = True
        self._at_edge = False

    def reset(self) -> None:
        super().reset()
        self.model.reset()
        self._power_on()

    def settle(self) -> None:
        """Evaluate the combinational logic; within a delta cycle, keep its values from before."""
        if not self.due or self.fresh or self._at_edge:
            self.stale = 0
            self.model.settle()

    def bits_of(self, signal: Signal) -> tuple[int, ...]:
        """Return the nets of a signal of the design."""
        return self._lowered.signals[signal]

    def rows_of(self, memory: MemoryData, *, signed: bool) -> Any:
        """Return the rows of a memory of the design."""
        return self.model.rows(self._lowered.rows[memory], signed=signed)
