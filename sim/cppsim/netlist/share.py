"""Merge cells that compute the same, and fold constants."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .design import Bits, CellKind, PlainCell
from .fold import folded
from .postorder import postorder

__all__ = ["share"]


def share(cells: Iterable[PlainCell], same: dict[int, int]) -> list[PlainCell]:
    """Return ``cells``, folded, with one of each set of equal cells.

    ``same`` maps bits to equal bits; the bits of dropped cells are added to it.
    """
    _resolve(same)
    known: dict[tuple[CellKind, tuple[Bits, ...]], Bits] = {}
    kept: list[PlainCell] = []
    for cell in _sources_first([_with(x, same) for x in cells]):
        found = folded(_with(cell, same))
        if isinstance(found, PlainCell):
            before = known.setdefault((found.kind, found.operands), found.result)
            if before is found.result:
                kept.append(found)
                continue
            found = before
        same |= zip(cell.result, found, strict=True)
    _resolve(same)
    return kept


def _resolve(same: dict[int, int]) -> None:
    for bit in same:
        end = same[bit]
        while end in same:
            end = same[end]
        same[bit] = end


def _with(cell: PlainCell, same: Mapping[int, int]) -> PlainCell:
    operands = tuple(tuple(same.get(bit, bit) for bit in bits) for bits in cell.operands)
    return PlainCell(cell.kind, operands, cell.result)


def _sources_first(cells: Sequence[PlainCell]) -> Iterator[PlainCell]:
    """Return the cells, each after those that it depends on unless they form a loop."""
    drivers = {bit: number for number, cell in enumerate(cells) for bit in cell.result}

    def needs(number: int) -> list[int]:
        found = {drivers[x] for bits in cells[number].operands for x in bits if x in drivers}
        return sorted(found, reverse=True)

    return (cells[number] for number in postorder(range(len(cells)), needs))
