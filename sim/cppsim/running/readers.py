"""Readers: functions that return the current value of one expression, for repeated use.

A reader fetches words of the model, or runs a program of `probe`. Other expressions are evaluated
by Amaranth.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

from amaranth.hdl import Const, Signal, Value

from ..amaranth_internals import ast, eval_value
from ..netlist.design import NotPlain
from ..probe import signals_of
from .slots import SettledState

Reader = Callable[[], int]

_Slice: Any = ast.Slice
_Operator: Any = ast.Operator

_WORTH = 64
"""Evaluations by Amaranth after which a program is faster, its making included."""
_WORTH_ALONE = 4096
"""Settlings of a design for one value after which a program for that value is faster."""
_REMEMBERED = 4096
"""Limit of the expressions that are counted; testbenches make many that they use once."""


class Readers:
    """Readers over one state.

    Attributes
    ----------
    known : dict
        The readers of expressions that have one, by ``id``.
    """

    def __init__(self, state: SettledState) -> None:
        self._state = state
        self._probes = state.probes
        self.known: dict[int, Reader] = {}
        self._held: list[Value] = []
        """References to the expressions in `known`, so that their ``id`` is not reused."""
        self._counted: dict[int, list[Any]] = {}
        """By ``id``: a reference to an expression, and how often it was read."""

    def read(self, value: Any) -> int:
        """Return the value of an expression; make a reader when it has been read often.

        Raises the exceptions of Amaranth's simulator.
        """
        known = self.known.get(id(value))
        if known is not None:
            return known()
        # Fields of structures: each access makes a new expression.
        if type(value) is _Slice:
            start = value.start
            return self.read(value.value) >> start & (1 << value.stop - start) - 1
        if type(value) is _Operator and value.operator == "s":
            part = value.operands[0]
            if type(part) is _Slice and part.stop > part.start:
                sign = 1 << part.stop - part.start - 1
                return (self.read(part) ^ sign) - sign
        if type(value) is Const:
            return value.value
        if self._pays(value):
            return self.of(value)()
        return int(eval_value(self._state, value))

    def _pays(self, value: Value) -> bool:
        """Count a read; return whether a reader is worth making."""
        probes = self._probes
        if isinstance(value, Signal) and not (probes.patience and probes.is_settled(value)):
            return True
        counted = self._counted.get(id(value))
        if counted is None or counted[0]() is not value:
            if len(self._counted) > _REMEMBERED:
                self._counted.clear()
            counted = self._counted[id(value)] = [ref(value), 0]
        counted[1] += 1
        return bool(counted[1] > _WORTH)

    def of(self, value: Value) -> Reader:
        """Return the reader of an expression."""
        known = self.known.get(id(value))
        if known is None:
            known = self.known[id(value)] = self._reader(value)
            self._held.append(value)
            self._counted.pop(id(value), None)
        return known

    def _reader(self, value: Value) -> Reader:
        probes, address = self._probes, self._state.model.address
        try:
            signals = signals_of(value)
        except NotPlain:
            return partial(eval_value, self._state, value)
        shown = self._shown(value)
        if not any(map(probes.is_settled, signals)):
            return shown
        if not probes.patience:
            return _settled(self._state, shown)

        def alone() -> Reader | None:
            program = probes.of_expression(value)
            return None if program is None else program.on(address)

        return _looked_at(self._state, shown, alone)

    def _shown(self, value: Value) -> Reader:
        """Return a reader for use after settling."""
        state, probes = self._state, self._probes
        place = probes.only_place(value) if isinstance(value, Signal) else None
        if place is not None:
            return _part(state.model.words, place.word, place.shift, (1 << place.width) - 1)
        program = probes.of_settled(value)
        if program is not None:
            return program.on(state.model.address)
        if isinstance(value, Signal):
            return partial(getattr, state.slots[state.get_signal(value)], "curr")
        return partial(eval_value, state, value)


def _part(words: memoryview, word: int, shift: int, mask: int) -> Reader:
    return lambda: words[word] >> shift & mask


def _settled(state: SettledState, shown: Reader) -> Reader:
    def read() -> int:
        if state.stale:
            state.settle()
        return shown()

    return read


def _looked_at(state: SettledState, shown: Reader, write: Callable[[], Reader | None]) -> Reader:
    """Return a reader that settles the design, or runs a program for one value if faster."""
    alone: Reader | None = None
    left = _WORTH_ALONE

    def read() -> int:
        nonlocal alone, left
        if state.stale:
            if state.stale > 1:
                if alone is not None:
                    state.stale -= 1
                    return alone()
                left -= 1
                if not left:
                    alone = write()
            state.settle()
        return shown()

    return read
