"""Write the logic of a design as a program of probe.h."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..cpp import adjacent, element_bits, repeated, words_of
from ..netlist import SIGNED, WORD, Bits, CellKind, Memory, MemoryRead, NotPlain, PlainCell
from .probe import Code, Instruction, ProbeProgram

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
