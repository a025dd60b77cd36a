"""A cell comes to the same, folded or not; of equal cells one is left."""

import random

import pytest

from cppsim.netlist.design import CellKind, PlainCell
from cppsim.netlist.simplify import folded, share
from support.plain_cells import number_of, random_cell, value_of
from support.seeds import seeds

A, B, C, D, E, F, G, H = range(2, 10)


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_a_folded_cell_results_in_the_same(seed: int) -> None:
    chance = random.Random(seed)
    for number in range(400):
        cell = random_cell(chance)
        found = folded(cell)
        for choice in range(16):
            values = {bit: choice >> index & 1 for index, bit in enumerate((A, B, C, D))}
            expected = value_of(cell, values)
            if isinstance(found, PlainCell):
                assert found.result == cell.result
                assert value_of(found, values) == expected, (seed, number, cell, found)
            else:
                assert number_of(found, values) == expected, (seed, number, cell, found)


@pytest.mark.parametrize(
    ("cell", "result"),
    [
        (PlainCell(CellKind.AND, ((A, B, 1), (1, 0, C)), (F, G, H)), (A, 0, C)),
        (PlainCell(CellKind.MUX, ((A, B), (C,), (A, B)), (F, G)), (A, B)),
        (PlainCell(CellKind.MUX, ((0,), (C,), (1,)), (F,)), (C,)),
        (PlainCell(CellKind.EQUAL, ((A, 0), (1, 0)), (F,)), (A,)),
        (PlainCell(CellKind.EQUAL, ((A, 0), (B, 1)), (F,)), (0,)),
        (PlainCell(CellKind.LESS, ((A, B), (0, 0)), (F,)), (0,)),
        (PlainCell(CellKind.LEFT, ((A, B, C), (1, 0)), (F, G, H)), (0, A, B)),
        (PlainCell(CellKind.MULTIPLY, ((A, B, C), (0, 1, 0)), (F, G, H)), (0, A, B)),
    ],
    ids=lambda x: x.kind.value if isinstance(x, PlainCell) else "",
)
def test_what_is_known_is_no_cell(cell: PlainCell, result: tuple[int, ...]) -> None:
    assert folded(cell) == result


def test_equal_cells_are_one_wherever_they_stand() -> None:
    """Two sums, each of a product, with operands in any order: the later ones listed first."""
    cells = [
        PlainCell(CellKind.ADD, ((E,), (C,)), (F,)),
        PlainCell(CellKind.ADD, ((C,), (D,)), (G,)),
        PlainCell(CellKind.AND, ((B,), (A,)), (E,)),
        PlainCell(CellKind.AND, ((A,), (B,)), (D,)),
    ]
    same: dict[int, int] = {}
    kept = share(cells, same)
    assert len(kept) == 2
    assert same.get(F, F) == same.get(G, G)
    assert same.get(D, D) == same.get(E, E)


def test_other_names_for_bits_are_followed_to_their_ends() -> None:
    same = {F: E, E: D, G: H}
    (kept,) = share([PlainCell(CellKind.AND, ((F,), (G,)), (A,))], same)
    assert kept.operands == ((D,), (H,))
    assert same == {F: D, E: D, G: H}
