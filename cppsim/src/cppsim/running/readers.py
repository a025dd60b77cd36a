"""Readers: functions that return the current value of one expression, for repeated use.

A reader fetches words of the model, or runs a program of `probe`. Other expressions are evaluated
by Amaranth.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Const, Signal, Value

from ..amaranth_internals import ast, eval_value, operator_parts, slice_parts
from ..native.probe import ProbeProgram
from ..netlist import NotPlain
from ..probe import signals_of
from ..structure import Structure, structure_of
from .slots import SettledState

Reader = Callable[[], int]

_Slice: Any = ast.Slice
_Concat: Any = ast.Concat
_Operator: Any = ast.Operator

_REMEMBERED = 4096
"""Limit of the structures that are counted. A testbench has as many as it has lines."""
_FEW = 4
"""Parts of a concatenation that are read one by one as fast as by a program."""
_READERS = 1 << 16
"""Limit of the readers of single expressions."""


class ExpressionReader:
    """A reader of all expressions of one structure, which differ in their constants alone.

    Attributes
    ----------
    frequent : bool
        The structure has been read so often that a program reads it, if there is one.
    latest : Value
        The expression that `Readers.read` read last; it also holds the signals of the structure.
    """

    def __init__(self, readers: "Readers", value: Value, constants: tuple[int, ...]) -> None:
        self.frequent = False
        self.latest = value
        self._readers = readers
        self._left = readers.tuning.evaluations
        self._reader: Reader | None = None
        self._constants = constants
        self._programs: list[ProbeProgram] = []

    def read(self, value: Value, constants: tuple[int, ...]) -> int:
        """Return the value of an expression that has this structure and these constants."""
        if self._reader is None:
            self._left -= 1
            if not self._left:
                self.frequent = True
                self._reader = self._readers.program(value, self._add)
            if self._reader is None:
                return self._readers.evaluated(value)
        if constants != self._constants:
            self._constants = constants
            for program in self._programs:
                program.hold(constants)
        return self._reader()

    def _add(self, program: ProbeProgram) -> None:
        program.hold(self._constants)
        self._programs.append(program)


class Readers:
    """Readers over one state.

    Attributes
    ----------
    known : dict
        The readers of expressions that have one, by ``id``.
    tuning : Tuning
        The thresholds of the state.
    """

    def __init__(self, state: SettledState) -> None:
        self._state = state
        self._probes = state.probes
        self.tuning = state.tuning
        self.known: dict[int, Reader] = {}
        self._held: list[Value] = []
        """References to the expressions in `known`, so that their ``id`` is not reused."""
        self._by_structure: dict[tuple[Any, ...], ExpressionReader] = {}

    def read(self, value: Any) -> int:
        """Return the value of an expression; make a reader when its structure is read often.

        Raises the exceptions of Amaranth's simulator.
        """
        known = self.known.get(id(value))
        if known is not None:
            return known()
        kind = type(value)
        # Fields of structures: each access makes a new expression.
        if kind is _Slice:
            start, stop, whole = slice_parts(value)
            return self.read(whole) >> start & (1 << stop - start) - 1
        if kind is _Operator:
            operator, operands = operator_parts(value)
            part = operands[0]
            if operator == "s" and type(part) is _Slice and part.stop > part.start:
                sign = 1 << part.stop - part.start - 1
                return (self.read(part) ^ sign) - sign
        elif kind is _Concat:
            if len(value.parts) <= _FEW:
                return self._joined(value.parts)
        elif kind is Const:
            return int(value.value)
        elif kind is Signal and self._is_direct(value):
            return self.of(value)()
        structure = structure_of(value)
        if structure is None:
            return self.evaluated(value)
        reader = self.of_structure(value, structure)
        again, reader.latest = reader.latest is value, value
        if again and reader.frequent:
            return self.of(value)()
        return reader.read(value, structure[1])

    def _joined(self, parts: Sequence[Any]) -> int:
        value = low = 0
        for part in parts:
            size = len(part)
            value |= (self.read(part) & (1 << size) - 1) << low
            low += size
        return value

    def of(self, value: Value) -> Reader:
        """Return the reader of an expression, which is stored until `known` is full."""
        known = self.known.get(id(value))
        if known is None:
            if len(self.known) == _READERS:
                self.known.clear()
                self._held.clear()
            known = self.known[id(value)] = self._reader(value, _ignore)
            self._held.append(value)
        return known

    def passing(self, value: Any) -> Reader:
        """Return the reader of an expression that may be new each time."""
        if type(value) is Signal:
            return self.of(value)
        structure = structure_of(value) if type(value) is _Operator else None
        if structure is None:
            return partial(self.read, value)
        key, constants = structure
        reader = self._by_structure.get(key) or self.of_structure(value, structure)
        return partial(reader.read, value, constants)

    def _is_direct(self, signal: Signal) -> bool:
        return not (self._probes.patience and self._probes.is_settled(signal))

    def of_structure(self, value: Value, structure: Structure) -> ExpressionReader:
        """Return the reader of all expressions that have the structure of ``value``."""
        key, constants = structure
        reader = self._by_structure.get(key)
        if reader is None:
            if len(self._by_structure) == _REMEMBERED:
                self._by_structure.clear()
            reader = self._by_structure[key] = ExpressionReader(self, value, constants)
        return reader

    def evaluated(self, value: Value) -> int:
        """Return the value of an expression that Amaranth evaluates."""
        return int(eval_value(self._state, value))

    def program(self, value: Value, add: Callable[[ProbeProgram], None]) -> Reader | None:
        """Return a reader with programs, which are passed to ``add``; None if there are none."""
        return None if self._probes.of_settled(value) is None else self._reader(value, add)

    def _reader(self, value: Value, add: Callable[[ProbeProgram], None]) -> Reader:
        """Return a reader of ``value``, and pass each of its programs to ``add``."""
        probes, address = self._probes, self._state.model.address
        try:
            signals = signals_of(value)
        except NotPlain:
            return partial(eval_value, self._state, value)
        shown = self._shown(value, add)
        if not any(map(probes.is_settled, signals)):
            return shown
        if not probes.patience:
            return _settled(self._state, shown)

        def alone() -> Reader | None:
            program = probes.of_expression(value)
            if program is None:
                return None
            add(program)
            return program.on(address)

        return _looked_at(self._state, shown, alone)

    def _shown(self, value: Value, add: Callable[[ProbeProgram], None]) -> Reader:
        """Return a reader for use after settling."""
        state, probes = self._state, self._probes
        field = probes.only_field(value) if isinstance(value, Signal) else None
        if field is not None:
            return _part(state.model.words, field.word, field.shift, (1 << field.width) - 1)
        program = probes.of_settled(value)
        if program is not None:
            add(program)
            return program.on(state.model.address)
        if isinstance(value, Signal):
            return partial(getattr, state.slots[state.get_signal(value)], "curr")
        return partial(eval_value, state, value)


def _ignore(_: ProbeProgram) -> None:
    pass


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
    left = state.tuning.settlings

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
