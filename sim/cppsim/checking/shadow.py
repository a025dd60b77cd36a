"""A design in Amaranth's simulator alone, without testbenches: it is told what others set.

What it prints or complains of is kept, not said. Only for comparisons.
"""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import MemoryData, Signal

from ..amaranth_internals import FragmentCompiler, PyEngineState

__all__ = ["Shadow"]

Row = tuple[MemoryData, int]
"""A memory, and the number of one of its rows."""


class Shadow:
    """Processes that Amaranth compiles ``design`` to, on a state of their own.

    Attributes
    ----------
    signals
        All signals of the design's statements, and of its ports to memories.
    memories
        All memories that have ports.
    written : set of MemoryData
        What has been written, until somebody clears it.
    told : list of str
        What the design has printed at edges of clocks, or complained of, until
        somebody clears it.
    """

    def __init__(self, design: Any) -> None:
        self._state = PyEngineState()
        self._processes = FragmentCompiler(self._state)(design.fragment)
        self.signals: list[Any] = list(self._state.signals)
        self.memories: list[Any] = list(self._state.memories)
        self.written: set[MemoryData] = set()
        self.told: list[str] = []
        for process in self._processes:
            names = process.run.__globals__
            # Logic without a clock says things as often as it is evaluated, which is not compared.
            names["print"] = _ignore if process.is_comb else self._note_print
            names["pin_blame"] = _ignore if process.is_comb else self._note_failure

    def reset(self) -> None:
        """Back to power-on."""
        self._state.reset()
        for process in self._processes:
            process.reset()
        self.written.clear()
        self.told.clear()

    def value(self, signal: Signal) -> int:
        return int(self._state.slots[self._state.get_signal(signal)].curr)

    def rows(self, memory: MemoryData) -> list[int]:
        rows: list[int] = self._state.slots[self._state.get_memory(memory)].data
        return rows

    def step(self, values: Iterable[tuple[Signal, int]], rows: Iterable[tuple[Row, int]]) -> bool:
        """One delta cycle, at whose end others set ``values`` and ``rows``. Whether all is quiet.

        Signals and memories that the design does not have are passed over.
        """
        for process in self._processes:
            if process.runnable:
                process.runnable = False
                process.run()
        for signal, value in values:
            if signal in self._state.signals:
                self._state.slots[self._state.get_signal(signal)].update(value)
        for (memory, number), value in rows:
            if memory in self._state.memories:
                self._state.slots[self._state.get_memory(memory)].write(number, value)
        self.written.update(x.memory for x in self._state.pending if hasattr(x, "memory"))
        return bool(self._state.commit())

    def settle(self) -> None:
        """Delta cycles until nothing changes any more."""
        while not self.step((), ()):
            pass

    def _note_print(self, *values: Any, end: str = "\n") -> None:
        self.told.append(" ".join(map(str, values)) + end)

    def _note_failure(self, _place: Any, failure: AssertionError) -> None:
        self.told.append(str(failure))


def _ignore(*_values: Any, **_options: Any) -> None:
    pass
