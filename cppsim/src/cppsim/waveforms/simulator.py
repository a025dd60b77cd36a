"""``write_vcd`` of a compiled simulation: Amaranth's writer begins the file, native code goes on.

Names, scopes, the header and GTKWave's file are Amaranth's. It also renders values shown as words,
once each; Python samples signals outside the design after each time step.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from amaranth.hdl import MemoryData, Signal

from ..amaranth_internals import (
    MemoryRow,
    PyMemoryState,
    PySignalState,
    ast,
    enum_value,
    eval_format,
    eval_value,
    read_signals,
)
from ..cpp import BitField
from ..native.compiled import DesignInstance
from ..netlist import Bits
from . import Areas, BackwardsError, Variable, Waves

_WORD = 64
_Shown = Sequence[tuple[Any, Any]]
"""Pairs of a pyvcd variable and its content: a value, a format, or a function of a number."""


class State(Protocol):
    """The state of a simulation whose signals and memories are in a compiled model."""

    model: DesignInstance
    slots: list[Any]

    def get_signal(self, signal: Signal) -> int: ...
    def get_memory(self, memory: MemoryData) -> int: ...
    def bits_of(self, signal: Signal) -> Bits: ...


class SimulatorWaves(Waves):
    """Takes over a file from Amaranth's ``_VCDWriter``, at any time of a simulation.

    `sample` is called at the end of each time step.
    """

    def __init__(self, writer: Any, state: State) -> None:
        self._writer, self._state = writer, state
        self._undumped = [(x, shown) for x, shown in writer.vcd_signal_vars.items()]
        """Signals, and their variables, whose values the file's header will have."""
        for rows in writer.vcd_memory_vars.values():
            self._undumped += [(None, shown) for shown in rows]
        self._others: list[_Other] = []
        self._variables: list[Variable] = []
        self._areas = Areas()
        self._words = self._areas.add(state.model.words)
        self._one = self._areas.add(memoryview(ctypes.c_uint64(1)).cast("B"))
        for signal, shown in writer.vcd_signal_vars.items():
            self._add_signal(signal, shown)
        for memory, rows in writer.vcd_memory_vars.items():
            self._add_memory(memory, rows)
        self.attended = bool(self._others)
        super().__init__(
            state.model.native,
            self._areas,
            self._variables,
            writer.vcd_file,
            writer.vcd_writer.flush,
        )

    def sample(self, femtoseconds: int) -> None:
        """Write the changes until now, the end of a time step.

        Raises the errors of the file, and ``VCDPhaseError`` if time went backwards.
        """
        undumped, self._undumped = self._undumped, []
        if undumped and not femtoseconds:
            self._dump(undumped)
            return
        lines = [
            f"{variable.format_value(_value(self._state, what, other.signal))}\n"
            for other in self._others
            for variable, what in other.changed()
        ]
        try:
            if lines:
                self.add(femtoseconds, "".join(lines))
            super().sample(femtoseconds)
        except BackwardsError:
            from vcd.writer import VCDPhaseError  # only here: pyvcd takes 10 ms

            raise VCDPhaseError(f"Out of order timestamp: {femtoseconds}") from None

    def _dump(self, undumped: "Sequence[tuple[Any, _Shown]]") -> None:
        """Let the header show the values at the end of time 0, as Amaranth's writer does."""
        self.note()
        for other in self._others:
            list(other.changed())
        for signal, shown in undumped:
            for variable, what in shown:
                self._writer.vcd_writer.change(variable, 0, _value(self._state, what, signal))

    def close(self, now: int) -> None:
        """Finish the files at the last complete time step.

        Raises the errors of `sample` that it has not raised yet.
        """
        taken = False
        try:
            if self.whole:
                self.sample(now)
            taken = self.flush()
        finally:
            if taken:
                self._writer.close(now)
            else:
                self._writer.vcd_writer = None
                with suppress(OSError, ValueError):  # `sample` has raised it
                    self._writer.close(now)

    # --- where things are ---------------------------------------------------------------------

    def _add_signal(self, signal: Signal, shown: _Shown) -> None:
        slot = self._state.slots[self._state.get_signal(signal)]
        if isinstance(slot, PySignalState):
            self._others.append(_Other(slot, signal, [shown]))
            return
        fields, constant, _ = self._state.model.locate(self._state.bits_of(signal))
        ones = [bit for bit in range(len(signal)) if constant >> bit & 1]
        source = _Source(signal, [*fields, *(BitField(self._one, 0, bit, 1) for bit in ones)])
        self._add(source, shown)

    def _add_memory(self, memory: MemoryData, rows: Sequence[_Shown]) -> None:
        slot = self._state.slots[self._state.get_memory(memory)]
        if type(slot) is PyMemoryState:
            self._others.append(_Other(slot, None, rows))
            return
        first, size = self._areas.add(slot.data.content), slot.data.element_bits
        width = slot.shape.width
        for index, shown in enumerate(rows):
            begin = index * size * -(-width // size)
            fields = [
                BitField(first + at // _WORD, at % _WORD, low, min(_WORD, width - low))
                for low in range(0, width, _WORD)
                for at in (begin + low,)
            ]
            self._add(_Source(None, fields), shown)

    def _add(self, source: "_Source", shown: _Shown) -> None:
        for variable, what in shown:
            self._variables.append(self._variable(source, variable, what))

    def _variable(self, source: "_Source", variable: Any, what: Any) -> Variable:
        value = enum_value(what) if isinstance(what, ast.Format.Enum) else what
        bits = source.bits(value) if isinstance(value, ast.Value) else None
        fields = source.fields if bits is None else list(_cut(source.fields, bits))
        width = source.width if bits is None else len(bits)
        if bits is not None and value is what:
            return Variable(variable.ident, width, fields)

        def render(_: int) -> str:
            return variable.format_value(_value(self._state, what, source.signal))

        return Variable(variable.ident, width, fields, render, fleeting=source.is_mixed(what))


@dataclass(frozen=True, slots=True)
class _Source:
    """A signal of the model, or a row of a memory, whose ``signal`` is None."""

    signal: Any
    fields: Sequence[BitField]

    @property
    def width(self) -> int:
        return max((x.low + x.width for x in self.fields), default=1)

    def bits(self, value: Any) -> range | None:
        """Return the bits that ``value`` selects; None for other expressions."""
        match value:
            case ast.Slice():
                bits = self.bits(value.value)
                return None if bits is None else bits[value.start : value.stop]
            case ast.Operator(operator="u" | "s"):
                return self.bits(value.operands[0])
        own = isinstance(value, MemoryRow) if self.signal is None else value is self.signal
        return range(len(value)) if own else None

    def is_mixed(self, what: Any) -> bool:
        """Return whether ``what`` also reads other signals."""
        if self.signal is None or not isinstance(what, ast.Value | ast.Format):
            return False
        return any(x is not self.signal for x in read_signals(what))


class _Other:
    """A signal or a memory outside the design."""

    def __init__(self, slot: Any, signal: Any, rows: Sequence[_Shown]) -> None:
        self.signal = signal
        self._slot, self._rows = slot, rows
        self._before: list[int | None] = [None] * len(rows)

    def changed(self) -> Iterator[tuple[Any, Any]]:
        """Yield the variables that changed since the last call, with their content."""
        now = self._slot.data if self.signal is None else [self._slot.curr]
        if now != self._before:
            pairs = zip(self._before, now, self._rows, strict=True)
            self._before = list(now)
            for before, value, shown in pairs:
                if before != value:
                    yield from shown


def _cut(fields: Sequence[BitField], bits: range) -> Iterator[BitField]:
    """Yield the fields of some of the bits."""
    for field in fields:
        low = max(field.low, bits.start)
        width = min(field.low + field.width, bits.stop) - low
        if width > 0:
            yield BitField(field.word, field.shift + low - field.low, low - bits.start, width)


def _value(state: State, what: Any, signal: Any) -> Any:
    """Return the content of a variable, in the form that pyvcd takes."""
    if isinstance(what, ast.Value):
        return eval_value(state, what)
    if isinstance(what, ast.Format | ast.Format.Enum):
        return eval_format(state, what)
    return what(eval_value(state, signal))
