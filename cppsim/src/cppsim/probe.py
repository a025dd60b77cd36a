"""Read one value of a compiled design without settling all of it: *probes*.

A probe is a program of native/probe.h that computes a value from what is stored, over the cone of
cells on which it depends. Nothing is made for values whose cone is so large that settling
everything is faster.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Const, Signal

from .amaranth_internals import NetlistEmitter, ast, nir, operands_of
from .cpp.words import BitField, adjacent, repeated, words_of
from .cpp.writer import element_bits
from .native.compiled import DesignInstance
from .native.probe import Code, Instruction, ProbeProgram
from .netlist.cells import CellWriter, bits_of
from .netlist.design import (
    SIGNED,
    WORD,
    Bits,
    CellKind,
    Memory,
    MemoryRead,
    NotPlain,
    PlainCell,
    PlainDesign,
)
from .netlist.lowered import Lowered
from .netlist.passes import narrow, rewrite
from .structure import open_constants, structure_of

_KNOWN = (ast.Const, ast.Operator, ast.Slice, ast.Part, ast.Concat, ast.SwitchValue)
"""Expressions beside signals that have a plain form."""
_WIDEST = 1 << 10
"""Limit of the bits of each value in an expression."""
_MOST = 1 << 15
"""Bits of all signals together, for which a cell of a netlist has numbers."""
_FIRST_FREE = 1 << 60
"""Bits of expressions have numbers that those of designs do not reach."""


@dataclass(frozen=True, slots=True)
class PlainExpression:
    """Cells in order, and the bits of their results."""

    cells: list[PlainCell]
    bits: Bits
    signed: bool


class _Emitter(NetlistEmitter):
    """Emits an expression with the values in ``given``, by ``id``, as inputs."""

    given: Mapping[int, tuple[Any, bool]]

    def emit_rhs(self, module: int, value: Any) -> tuple[Any, bool]:
        found = self.given.get(id(value))
        return super().emit_rhs(module, value) if found is None else found


def signals_of(value: Any) -> list[Signal]:
    """The signals that ``value`` reads, once each. Raises ``NotPlain`` if there is more to it."""
    signals: dict[int, Signal] = {}
    left = [value]
    while left:
        item = left.pop()
        if len(item) > _WIDEST:
            raise NotPlain("too wide")
        if isinstance(item, Signal):
            signals[id(item)] = item
        elif not isinstance(item, _KNOWN):
            raise NotPlain(f"{type(item).__name__} is not known here")
        elif isinstance(item, ast.SwitchValue) and not len(item.test):
            raise NotPlain("nothing to match")  # for which Amaranth's simulator raises
        else:
            left += operands_of(item)
    if sum(map(len, signals.values())) > _MOST:
        raise NotPlain("too many signals")
    return list(signals.values())


def lower_expression(
    value: Any,
    bits_of_signal: Callable[[Signal], Bits],
    opened: Iterable[tuple[Const, Bits]] = (),
) -> PlainExpression:
    """Return the plain form of ``value``, with the bits of its signals as passed.

    The constants in ``opened`` have these bits in place of their values. Raises ``NotPlain`` if
    there is no plain form, or if ``bits_of_signal`` raises ``KeyError``.
    """
    netlist = nir.Netlist()
    netlist.add_module(None, (), src_loc=None, cell_src_loc=None)
    given: list[int] = [0, 1]

    def nets_of(bits: Bits) -> Any:
        first = len(given)
        given.extend(bits)
        return nir.Value(nir.Net.from_cell(0, first + index) for index in range(len(bits)))

    for signal in signals_of(value):
        try:
            bits = bits_of_signal(signal)
        except KeyError:
            raise NotPlain(f"{signal.name} is not in the design") from None
        netlist.signals[signal] = nets_of(bits)
    emitter = _Emitter(netlist, None)
    emitter.given = {id(x): (nets_of(bits), x.shape().signed) for x, bits in opened}
    result, signed = emitter.emit_rhs(0, value)
    writer = CellWriter()
    for number, cell in enumerate(netlist.cells[1:], 1):
        writer.take(number, cell)

    def change(bits: Bits) -> Bits:
        return tuple(map(_renamed, bits))

    def _renamed(bit: int) -> int:
        while bit in writer.same:
            bit = writer.same[bit]
        return given[bit] if bit < len(given) else bit + _FIRST_FREE

    cells = [PlainCell(x.kind, x.operands, _moved(x.result)) for x in writer.cells]
    design = PlainDesign(cells=cells)
    rewrite(design, change)
    narrow(design, WORD)
    return PlainExpression(design.cells, change(bits_of(result)), bool(signed))


def _moved(bits: Bits) -> Bits:
    return tuple(bit + _FIRST_FREE for bit in bits)


Locations = Mapping[int, tuple[int, int]]
"""The word of each bit, and the index of the bit in that word."""


class ProgramWriter:
    """Writes one program.

    Each mapping in ``stored`` gives the word and the index of some bits, ``address`` where
    the rows of a memory are.
    """

    def __init__(self, stored: Sequence[Locations], address: Callable[[Memory], int]) -> None:
        self._address = address
        self._computed: dict[int, tuple[int, int]] = {}
        """The instruction that computes each bit, and the index of the bit in its value."""
        self._sources = [(Code.PICK, self._computed), *((Code.FETCH, x) for x in stored)]
        self._instructions: dict[Instruction, int] = {}
        self._widths: dict[int, int] = {}
        """Bits of the values of steps."""
        self._opened: list[tuple[int, int]] = []

    def open(self, bits: Bits) -> None:
        """Make ``bits`` the next of the constants that the program leaves open."""
        value = self._put(Code.CONSTANT, len(self._opened) + 1, mask=0)
        self._define(bits, value)
        self._opened.append((value, (1 << len(bits)) - 1))

    def step(self, step: Any) -> None:
        """Compute the result of a cell or read of a memory, after all that it depends on.

        Raises ``NotPlain`` for a cell or an address of more bits than a word has.
        """
        if isinstance(step, PlainCell):
            self._define(step.result, self._cell(step))
        else:
            self._read(*step)

    def program(self, bits: Bits, *, signed: bool = False) -> ProbeProgram:
        """Return the instruction that fetches ``bits`` from their word."""
        if signed and bits:
            bits += bits[-1:] * (WORD - len(bits))
        result = self._value(bits)
        instructions = list(self._instructions)
        if result != len(instructions) - 1:
            # The last value is the program's.
            zero = self._constant(0)
            instructions = [*self._instructions, Instruction(Code.PICK, result, zero)]
        return ProbeProgram(instructions, signed=signed, opened=self._opened)

    def _put(self, code: Code, *operands: int, **more: int) -> int:
        instruction = Instruction(code, *operands, **more)
        return self._instructions.setdefault(instruction, len(self._instructions))

    def _constant(self, value: int) -> int:
        return self._put(Code.CONSTANT, mask=value)

    def _define(self, bits: Bits, value: int) -> None:
        self._computed |= {bit: (value, index) for index, bit in enumerate(bits)}
        self._widths[value] = len(bits)

    # --- operands -----------------------------------------------------------------------------

    def _value(self, bits: Bits) -> int:
        """The instruction whose value is ``bits``."""
        if len(bits) > WORD:
            raise NotPlain("wider than a word")
        whole = self._whole(bits)
        if whole is not None:
            return whole
        value = self._constant(sum(1 << index for index, bit in enumerate(bits) if bit == 1))
        to = 0
        while to < len(bits):
            count, first = 1, bits[to]
            if first > 1:
                count = repeated(bits, to)
                if count > 1:
                    mask = (1 << count) - 1 << to
                    value = self._put(Code.SPREAD, self._value((first,)), value, mask=mask)
                else:
                    code, source, low, count = self._run(bits, to)
                    mask = (1 << count) - 1
                    value = self._put(code, source, value, low=low, to=to, mask=mask)
            to += count
        return value

    def _whole(self, bits: Bits) -> int | None:
        """The value that is ``bits`` as it is."""
        if not bits or bits[0] not in self._computed:
            return None
        value, low = self._computed[bits[0]]
        if low or self._widths[value] != len(bits) or self._run(bits, 0)[-1] != len(bits):
            return None
        return value

    def _run(self, bits: Bits, first: int) -> tuple[Code, int, int, int]:
        """Return the access to the adjacent bits from ``first`` on, and their number."""
        for code, stored in self._sources:
            if bits[first] in stored:
                return code, *stored[bits[first]], adjacent(bits, first, stored)
        raise NotPlain("a bit that is not stored")

    # --- steps --------------------------------------------------------------------------------

    def _cell(self, cell: PlainCell) -> int:
        kind, width = cell.kind, len(cell.result)
        if kind is CellKind.MUX:
            default, *choices = (self._value(bits) for bits in cell.operands)
            for condition, value in reversed(list(zip(choices[::2], choices[1::2], strict=True))):
                default = self._put(Code.SELECT, condition, value, default)
            return default
        operands = [self._value(bits) for bits in cell.operands]
        size = len(cell.operands[0])
        if kind is CellKind.ALL:
            return self._put(Code.EQUAL, *operands, self._constant((1 << size) - 1), mask=1)
        if kind is CellKind.ANY:
            return self._put(Code.UNEQUAL, *operands, self._constant(0), mask=1)
        low = WORD - size if kind in SIGNED else 0
        return self._put(Code[kind.name], *operands, low=low, mask=(1 << width) - 1)

    def _read(self, memory: Memory, read: MemoryRead) -> None:
        if not memory.width:
            return
        at, size = self._value(read.address), element_bits(memory.width)
        parts = words_of(read.result)
        for number, bits in enumerate(parts):
            first = self._address(memory) + number * WORD // 8
            row = (at, memory.depth, len(parts))
            self._define(bits, self._put(Code[f"ROW_{size}"], *row, mask=first))


_WORTH = 16
"""Steps of a design that are settled while a program executes one instruction."""
_LEAST = 32
"""Instructions that take no longer than calling anything does."""
_CALL = 2000
"""Steps of a design that are settled while a short program is called."""
_FIRST_SHOWN = 1 << 61
"""First number of the bits for settled values of signals, above those of expressions."""
_FIRST_OPEN = 1 << 62
"""First number of the bits for constants that a structure leaves open."""
_REMEMBERED = 4096
"""Limit of the structures with a program. A testbench has as many as it has lines."""


_Known = dict[tuple[Any, ...], tuple[Any, ProbeProgram | None]]
"""By the key of a structure: an expression of it, which holds its signals, and the program."""


def _opened(value: Any) -> Iterator[tuple[Const, Bits]]:
    """Yield the constants that the structure of ``value`` leaves open, with bits for them."""
    first = _FIRST_OPEN
    for constant in open_constants(value):
        yield constant, tuple(range(first, first + len(constant)))
        first += len(constant)


class Probes:
    """Programs for values of one design.

    Attributes
    ----------
    limit : int
        Instructions instead of settling, which is faster than more of them.
    patience : int
        Programs to call before settling is faster, after which there is nothing to compute.
    written : int
        The number of programs written. Expressions of one structure share theirs.
    """

    def __init__(self, lowered: Lowered, model: DesignInstance) -> None:
        self._signals: Mapping[Signal, Bits] = lowered.signals
        self._model = model
        self.limit = max(_LEAST, model.source.step_count // _WORTH)
        self.patience = model.source.step_count // _CALL
        self.written = 0
        self._settled: _Known = {}
        self._alone: _Known = {}

    def is_settled(self, signal: Signal) -> bool:
        """Whether settling is what brings a signal up to date."""
        return signal in self._signals and self._model.locate(self._signals[signal])[2]

    def only_field(self, signal: Signal) -> BitField | None:
        """Return the bit field of an unsigned signal; None if it has several."""
        if signal not in self._signals or signal.shape().signed:
            return None
        fields, constant, _ = self._model.locate(self._signals[signal])
        whole = len(fields) == 1 and fields[0].width == len(signal) and not constant
        return fields[0] if whole else None

    def of_settled(self, value: Any) -> ProbeProgram | None:
        """Return a program for an expression of up to 64 bits, over the settled signals.

        Settled signals show the values of the last ``settle``.
        """
        return self._of(value, self._settled, self._write_settled)

    def of_expression(self, value: Any) -> ProbeProgram | None:
        """As `of_settled`, but signals are what settling would let them show.

        None also if settling is faster.
        """
        return self._of(value, self._alone, self._write_alone)

    def _of(
        self, value: Any, known: _Known, write: Callable[[Any], ProbeProgram | None]
    ) -> ProbeProgram | None:
        """Return a copy of the program for the structure of ``value``."""
        structure = structure_of(value)
        if structure is None:
            return None
        key, constants = structure
        if key not in known:
            if len(known) == _REMEMBERED:
                known.clear()
            known[key] = value, write(value)
            self.written += 1
        _, program = known[key]
        return None if program is None else program.holding(constants)

    def _write_settled(self, value: Any) -> ProbeProgram | None:
        shown: dict[int, tuple[int, int]] = {}
        return self._program(value, lambda signal: self._shown(signal, shown), [shown])

    def _write_alone(self, value: Any) -> ProbeProgram | None:
        shown: dict[int, tuple[int, int]] = {}

        def bits_of(signal: Signal) -> Bits:
            settled = self.is_settled(signal)
            return self._signals[signal] if settled else self._shown(signal, shown)

        program = self._program(value, bits_of, [shown, self._model.source.stored])
        return program if program is not None and len(program) <= self.limit else None

    def _shown(self, signal: Signal, stored: dict[int, tuple[int, int]]) -> Bits:
        """Return bits for a signal's settled value, and add their locations to ``stored``."""
        fields, constant, _ = self._model.locate(self._signals[signal])
        shown = [constant >> index & 1 for index in range(len(signal))]
        for field in fields:
            for number in range(field.width):
                bit = shown[field.low + number] = _FIRST_SHOWN + len(stored)
                stored[bit] = field.word, field.shift + number
        return tuple(shown)

    def _program(
        self, value: Any, bits_of: Callable[[Signal], Bits], stored: Sequence[Locations]
    ) -> ProbeProgram | None:
        writer = ProgramWriter(stored, self._model.address_of)
        opened = list(_opened(value))
        try:
            expression = lower_expression(value, bits_of, opened)
            for _, bits in opened:
                writer.open(bits)
            read = [bits for cell in expression.cells for bits in cell.operands]
            for number in self._cone([expression.bits, *read]):
                writer.step(self._model.source.steps[number])
            for cell in expression.cells:
                writer.step(cell)
            return writer.program(expression.bits, signed=expression.signed)
        except NotPlain:
            return None

    def _cone(self, roots: list[Bits]) -> list[int]:
        """Numbers of the steps on which bits depend, in order. Raises ``NotPlain`` for too many."""
        left, found = list(roots), set[int]()
        while left:
            first = last = 0
            for bit in left.pop():
                if not first <= bit < last:
                    first, last, number = self._driver(bit)
                    if number >= 0 and number not in found:
                        found.add(number)
                        left += self._model.source.steps[number].operands
            if len(found) > self.limit:
                raise NotPlain("settling is faster")
        return sorted(found)

    def _driver(self, bit: int) -> tuple[int, int, int]:
        """Bits among which ``bit`` is, and the number of the step that computes them, or -1."""
        index = bisect_right(self._results, (bit, _FIRST_SHOWN, 0))
        first, last, number = self._results[index - 1] if index else (0, 0, 0)
        if bit < last:
            return first, last, number
        after = self._results[index][0] if index < len(self._results) else bit + 1
        return last, after, -1

    @cached_property
    def _results(self) -> list[tuple[int, int, int]]:
        """Bits that steps compute, from one to before another, with the number of the step."""
        found = []
        for number, step in enumerate(self._model.source.steps):
            bits = step.result
            if bits and bits[-1] - bits[0] == len(bits) - 1:
                found.append((bits[0], bits[-1] + 1, number))
            else:
                found += [(bit, bit + 1, number) for bit in bits]
        return sorted(found)
