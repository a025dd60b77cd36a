"""A cell's gates have the cell's results for all values of its operands."""

import random

import pytest

from cppsim.batch.bitslice.cells import bits_of_cell, by_numbers
from cppsim.batch.bitslice.network import Network
from cppsim.netlist.design import Bits, CellKind, PlainCell
from support.gate_networks import evaluated
from support.plain_cells import number_of, random_cell, value_of
from support.seeds import seeds


def shown(cell: PlainCell, *, shallow: bool = False) -> dict[tuple[int, ...], int]:
    """Return the result of the gates of ``cell`` for all values of the bits that are variable."""
    network = Network(shallow=shallow)
    bits = sorted({bit for operand in cell.operands for bit in operand if bit > 1})
    nodes = {0: 0, 1: 1, **{bit: network.source() for bit in bits}}
    result = bits_of_cell(network, cell, [[nodes[bit] for bit in x] for x in cell.operands])
    cases = 1 << len(bits)
    values = {
        nodes[bit]: sum((case >> index & 1) << case for case in range(cases))
        for index, bit in enumerate(bits)
    }
    words = evaluated(network.gates, values, (1 << cases) - 1)
    return {
        tuple(case >> index & 1 for index in range(len(bits))): sum(
            (words[node] >> case & 1) << index for index, node in enumerate(result)
        )
        for case in range(cases)
    }


@pytest.mark.parametrize("seed", seeds(50, 200))
def test_cells_of_all_kinds(seed: int) -> None:
    cell = random_cell(random.Random(seed))
    bits = sorted({bit for operand in cell.operands for bit in operand if bit > 1})
    for case, got in shown(cell, shallow=bool(seed % 2)).items():
        values = dict(zip(bits, case, strict=True))
        if cell.kind is CellKind.MUX and _several(cell, values):
            continue
        assert got == value_of(cell, values), f"seed {seed}: {cell} of {values}"


def _several(cell: PlainCell, values: dict[int, int]) -> bool:
    """Return whether more than one condition applies, where any value is right."""
    return sum(number_of(x, values) for x in cell.operands[1::2]) > 1


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("signed", [False, True])
def test_divisions_round_down_and_give_0_where_there_is_nothing_to_divide_by(
    width: int, signed: bool
) -> None:
    a: Bits = tuple(range(2, 2 + width))
    b: Bits = tuple(range(2 + width, 2 + 2 * width))
    quotient = CellKind.DIVIDE_SIGNED if signed else CellKind.DIVIDE
    rest = CellKind.MODULO_SIGNED if signed else CellKind.MODULO
    result = tuple(range(100, 100 + width))
    quotients = shown(PlainCell(quotient, (a, b), result))
    rests = shown(PlainCell(rest, (a, b), result))
    for case, got in quotients.items():
        values = dict(zip((*a, *b), case, strict=True))
        x, y = (number_of(bits, values, signed=signed) for bits in (a, b))
        expected = divmod(x, y) if y else (0, 0)
        assert (got, rests[case]) == tuple(n % (1 << width) for n in expected), (x, y)


@pytest.mark.parametrize("width", [1, 28, 29, 33, 64, 70])
@pytest.mark.parametrize("kind", ["ADD", "SUBTRACT", "MULTIPLY", "LESS", "LESS_EQUAL_SIGNED"])
@pytest.mark.parametrize("shallow", [False, True])
def test_cells_of_any_width(kind: str, width: int, shallow: bool) -> None:
    """Carries of wide sums do not ripple; a product's rows are added as a tree."""
    chance, cell_kind = random.Random(width), CellKind[kind]
    a: Bits = tuple(range(2, 2 + width))
    b: Bits = tuple(range(2 + width, 2 + 2 * width))
    if kind == "MULTIPLY" and width > 33:
        b = tuple(int(index % 7 == 0) for index in range(width))
    one = kind.startswith("LESS")
    cell = PlainCell(cell_kind, (a, b), tuple(range(200, 201 if one else 200 + width)))
    network = Network(shallow=shallow)
    nodes = {0: 0, 1: 1, **{bit: network.source() for bit in (*a, *b) if bit > 1}}
    result = bits_of_cell(network, cell, [[nodes[bit] for bit in x] for x in (a, b)])
    # Numbers that differ in one bit are the hard ones of comparisons and of carries.
    numbers = [
        (x := chance.getrandbits(width), x ^ 1 << chance.randrange(width)) for _ in range(40)
    ]
    numbers += [(chance.getrandbits(width), chance.getrandbits(width)) for _ in range(40)]
    for x, y in numbers:
        pairs = zip((*a, *b), (n >> k & 1 for n in (x, y) for k in range(width)), strict=True)
        values = {bit: value for bit, value in pairs if bit > 1}
        words = evaluated(network.gates, {nodes[bit]: value for bit, value in values.items()}, 1)
        got = sum(words[node] << index for index, node in enumerate(result))
        assert got == value_of(cell, values), (x, y)


def test_a_shallow_network_has_few_levels() -> None:
    """A ripple has a level a bit."""
    network, depths = Network(shallow=True), list[int]()
    a, b = ([network.source() for _ in range(64)] for _ in range(2))
    bits = tuple(range(200, 264))
    some = [int(index % 5 == 0) for index in range(64)]
    for kind, other in (("ADD", b), ("LESS", b), ("MULTIPLY", some)):
        cell = PlainCell(CellKind[kind], (bits, bits), bits)
        depth: dict[int, int] = {}
        roots = bits_of_cell(network, cell, [a, other])
        for node, (_, inputs) in network.merged(roots).items():
            depth[node] = 1 + max((depth.get(x, 0) for x in inputs), default=0)
        depths.append(max(depth.values()))
    assert depths == [9, 7, 14]


def test_wide_products_and_quotients_are_worked_out_by_numbers() -> None:
    a, b = tuple(range(2, 66)), tuple(range(66, 130))
    result = tuple(range(200, 264))
    assert by_numbers(PlainCell(CellKind.MULTIPLY, (a, b), result))
    assert by_numbers(PlainCell(CellKind.MODULO_SIGNED, (a, b), result))
    few = (1, 0, 1) + (0,) * 61
    assert not by_numbers(PlainCell(CellKind.MULTIPLY, (a, few), result))
    assert not by_numbers(PlainCell(CellKind.ADD, (a, b), result))
