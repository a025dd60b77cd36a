"""A design in Amaranth's simulator, without testbenches, for comparisons.

The comparison sets its inputs. Its messages are recorded, not printed.
"""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import MemoryData, Signal

from ..amaranth_internals import FragmentCompiler, PyEngineState

Row = tuple[MemoryData, int]
"""A memory, and the number of one of its rows."""


class Shadow:
    """The processes that Amaranth makes of ``design``, with a separate state.

    Attributes
    ----------
    signals
        All signals of the design's statements, and of its ports to memories.
    memories
        All memories that have ports.
    written : set of MemoryData
        The memories written since the set was cleared.
    messages : list of str
        Prints and failed checks of clocked logic since the list was cleared.
    """

    def __init__(self, design: Any) -> None:
        self._state = PyEngineState()
        self._processes = FragmentCompiler(self._state)(design.fragment)
        self.signals: list[Any] = list(self._state.signals)
        self.memories: list[Any] = list(self._state.memories)
        self.written: set[MemoryData] = set()
        self.messages: list[str] = []
        for process in self._processes:
            names = process.run.__globals__
            # Combinational logic repeats a message at each evaluation; these are not compared.
            names["print"] = _ignore if process.is_comb else self._note_print
            names["pin_blame"] = _ignore if process.is_comb else self._note_failure

    def reset(self) -> None:
        """Return to power-on."""
        self._state.reset()
        for process in self._processes:
            process.reset()
        self.written.clear()
        self.messages.clear()

    def value(self, signal: Signal) -> int:
        return int(self._state.slots[self._state.get_signal(signal)].curr)

    def rows(self, memory: MemoryData) -> list[int]:
        rows: list[int] = self._state.slots[self._state.get_memory(memory)].data
        return rows

    def step(self, values: Iterable[tuple[Signal, int]], rows: Iterable[tuple[Row, int]]) -> bool:
        """Run one delta cycle, and set ``values`` and ``rows`` at its end.

        Returns whether it has converged. Signals and memories outside the design are ignored.
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
        """Run delta cycles until nothing changes."""
        while not self.step((), ()):
            pass

    def _note_print(self, *values: Any, end: str = "\n") -> None:
        self.messages.append(" ".join(map(str, values)) + end)

    def _note_failure(self, _place: Any, failure: AssertionError) -> None:
        self.messages.append(str(failure))


def _ignore(*_values: Any, **_options: Any) -> None:
    pass
