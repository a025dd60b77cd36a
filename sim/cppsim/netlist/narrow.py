"""Split the operations of a design into words of a number of bits."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .design import Bits, CellKind, NotPlain, PlainCell, PlainDesign
from .tidy import Statement, in_order

__all__ = ["narrow", "ordered_statements"]

_POINTWISE = frozenset({CellKind.AND, CellKind.OR, CellKind.XOR, CellKind.NOT})
_WHOLE = {
    CellKind.ALL: CellKind.ALL,
    CellKind.ANY: CellKind.ANY,
    CellKind.ODD: CellKind.ODD,
    CellKind.EQUAL: CellKind.ALL,
    CellKind.UNEQUAL: CellKind.ANY,
}
"""The cell that joins the results of the parts."""


def narrow(design: PlainDesign, width: int) -> None:
    """Split operations wider than ``width`` bits, except those with carries, orders and shifts."""
    free = iter(range(design.first_free(), 1 << 62))
    design.cells = [part for cell in design.cells for part in _split(cell, width, free)]


def ordered_statements(design: PlainDesign, shown: Sequence[Bits] = ()) -> list[Statement]:
    """Return the statements of ``design`` in order; cut it into single bits where that is needed.

    ``shown`` are bits that are used beside those of the design. Raises ``NotPlain``
    if a bit depends on itself.
    """
    try:
        return in_order(design, shown)
    except NotPlain:
        # A bit may depend on another one of its word, as in a chain, without a loop of bits.
        narrow(design, 1)
        return in_order(design, shown)


def _split(cell: PlainCell, width: int, free: Iterator[int]) -> Iterator[PlainCell]:
    if max(len(cell.result), *(len(bits) for bits in cell.operands)) <= width:
        yield cell
    elif cell.kind in _POINTWISE or cell.kind is CellKind.MUX:
        for part in _parts(len(cell.result), width):
            operands = tuple(
                bits if cell.kind is CellKind.MUX and number % 2 else bits[part]
                for number, bits in enumerate(cell.operands)
            )
            yield replace(cell, operands=operands, result=cell.result[part])
    elif cell.kind in _WHOLE:
        answers: list[int] = []
        for part in _parts(len(cell.operands[0]), width):
            operands = tuple(bits[part] for bits in cell.operands)
            if len(operands) == 1 and len(operands[0]) == 1:
                answers += operands[0]
            else:
                answers.append(next(free))
                yield PlainCell(cell.kind, operands, (answers[-1],))
        yield PlainCell(_WHOLE[cell.kind], (tuple(answers),), cell.result)
    else:
        yield cell


def _parts(size: int, width: int) -> Iterator[slice]:
    return (slice(low, min(low + width, size)) for low in range(0, size, width))
