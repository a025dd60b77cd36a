"""Find when registers hold their values: a netlist has that only in their next values.

A condition that sets a register to a constant, whatever the others are, becomes its reset.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import groupby

from .cells import CellWriter
from .design import Bits, CellKind, PlainCell, PlainDesign, StateRegister
from .passes import rewrite
from .simplify import share

_Source = tuple[PlainCell, int]
"""The cell that drives a bit, and the bit's index there."""


def find_enables(design: PlainDesign) -> None:
    """Give the registers of ``design``, which has one clock, enables and resets."""
    finder = _Finder(design)
    design.registers = [part for x in design.registers for part in finder.parts(x)]
    same = finder.writer.same
    design.cells = share([*design.cells, *finder.writer.cells], same)
    rewrite(design, lambda bits: tuple(same.get(bit, bit) for bit in bits))


class _Finder:
    def __init__(self, design: PlainDesign) -> None:
        self._choices: dict[int, _Source] = {
            bit: (cell, index)
            for cell in design.cells
            if cell.kind is CellKind.MUX
            for index, bit in enumerate(cell.result)
        }
        self.writer = CellWriter(first=design.first_free())

    def parts(self, register: StateRegister) -> Iterator[StateRegister]:
        """``register``, in parts that do not load together."""
        found = (self._held(self._reset(register.part(x))) for x in self._cut(register.following))
        for _, alike in groupby(found, key=lambda part: (part.enable, part.reset)):
            yield reduce(StateRegister.joined, alike)

    def _cut(self, bits: Bits) -> Iterator[slice]:
        """Runs of ``bits`` of which each is from one cell, or none from any."""
        low = 0
        for high in range(1, len(bits) + 1):
            if high == len(bits) or self._source(bits[high]) is not self._source(bits[low]):
                yield slice(low, high)
                low = high

    def _source(self, bit: int) -> PlainCell | None:
        return self._choices[bit][0] if bit in self._choices else None

    def _operands(self, bits: Bits) -> list[Bits] | None:
        """Return the operands of the multiplexer of ``bits``, cut to those bits."""
        cell, low = self._choices.get(bits[0], (None, 0))
        if cell is None or cell.result[low : low + len(bits)] != bits:
            return None
        return [
            operand if number % 2 else operand[low : low + len(bits)]
            for number, operand in enumerate(cell.operands)
        ]

    def _reset(self, register: StateRegister) -> StateRegister:
        """Return the register with a reset: a condition that sets it to a constant in any case."""
        bits, reset, constant = register.following, 0, None
        while True:
            operands = self._operands(bits)
            if operands is None or len(operands) != 3:
                break
            default, (condition,), value = operands
            if max(value) > 1 or constant not in (None, value):
                break
            bits, reset, constant = default, self.writer.any_of(reset, condition), value
        if constant is None:
            return register
        return replace(register, following=bits, reset=reset, reset_value=constant)

    def _held(self, register: StateRegister) -> StateRegister:
        enable, following = self._load_of(register.following, register.result)
        if enable == 1:
            return register
        return replace(register, following=following, enable=enable)

    def _load_of(self, bits: Bits, own: Bits) -> tuple[int, Bits]:
        """Return a bit that is 1 where ``bits`` are not ``own``, and what they are then."""
        if bits == own:
            return 0, bits
        operands = self._operands(bits)
        if operands is None:
            return 1, bits
        arms = [self._load_of(operand, own) for operand in operands[::2]]
        if all(enable == 1 for enable, _ in arms):
            return 1, bits
        write = self.writer
        (enable, default), *others = arms
        choices: list[tuple[int, Bits]] = []
        conditions = [bit for (bit,) in operands[1::2]]
        for condition, (active, value) in zip(conditions, others, strict=True):
            if active:
                choices.append((condition, value))
        for condition, (active, _) in reversed(list(zip(conditions, others, strict=True))):
            enable = self._chosen(condition, active, enable)
        if not arms[0][0] and choices:
            default = choices.pop()[1]
        result = write.new(len(bits))
        write.select(default, choices, result)
        return enable, result

    def _chosen(self, condition: int, active: int, other: int) -> int:
        """``active`` where ``condition`` is 1, else ``other``."""
        write = self.writer
        if active == other:
            return active
        if active == 1:
            return write.any_of(condition, other)
        if active == 0:
            return write.all_of(write.not_of(condition), other)
        if other == 0:
            return write.all_of(condition, active)
        if other == 1:
            return write.any_of(write.not_of(condition), active)
        return write.bit(CellKind.MUX, (other,), (condition,), (active,))
