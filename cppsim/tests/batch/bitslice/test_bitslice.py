"""Gates of cells mean what the cells mean, however they are folded, merged, and put into levels."""

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product

import pytest

from cppsim.batch.bitslice import (
    AND,
    CARRY,
    ODD3,
    OR,
    SELECT,
    XOR,
    Call,
    Gate,
    LevelCall,
    Levels,
    Network,
    Output,
    Phase,
    bits_of_cell,
    by_numbers,
)
from cppsim.netlist import Bits, CellKind, PlainCell
from support.seeds import seeds
from support.zoo import number_of, random_cell, value_of

_CASES = 64
_ONES = (1 << _CASES) - 1

# --- cells ----------------------------------------------------------------------------------------


def evaluated(gates: Mapping[int, Gate], values: Mapping[int, int], ones: int) -> dict[int, int]:
    """Return the words of all nodes from those of sources; ``ones`` is a word of ones."""
    words = {0: 0, 1: ones, **values}
    for node, (table, inputs) in gates.items():
        words[node] = 0
        for row in range(8):
            if table >> row & 1:
                term = ones
                for index in range(3):
                    word = words[inputs[index]] if index < len(inputs) else 0
                    term &= word if row >> index & 1 else ~word & ones
                words[node] |= term
    return words


def variable(cell: PlainCell) -> list[int]:
    return sorted({bit for operand in cell.operands for bit in operand if bit > 1})


def every_case(cell: PlainCell) -> list[dict[int, int]]:
    """Return all values of the bits of ``cell`` that are variable."""
    bits = variable(cell)
    return [dict(zip(bits, case, strict=True)) for case in product((0, 1), repeat=len(bits))]


def shown(
    cell: PlainCell, cases: Sequence[Mapping[int, int]], *, shallow: bool = False
) -> list[int]:
    """Return the result of the gates of ``cell`` in each of ``cases``, values of its bits."""
    network = Network(shallow=shallow)
    nodes = {0: 0, 1: 1, **{bit: network.source() for bit in variable(cell)}}
    result = bits_of_cell(network, cell, [[nodes[bit] for bit in x] for x in cell.operands])
    values = {
        nodes[bit]: sum(values[bit] << case for case, values in enumerate(cases))
        for bit in variable(cell)
    }
    words = evaluated(network.gates, values, (1 << len(cases)) - 1)
    return [
        sum((words[node] >> case & 1) << index for index, node in enumerate(result))
        for case in range(len(cases))
    ]


@pytest.mark.parametrize("seed", seeds(50, 200))
def test_cells_of_all_kinds(seed: int) -> None:
    cell = random_cell(random.Random(seed))
    cases = every_case(cell)
    for values, got in zip(cases, shown(cell, cases, shallow=bool(seed % 2)), strict=True):
        # Where more than one condition of a choice applies, any value is right.
        conditions = sum(number_of(x, values) for x in cell.operands[1::2])
        if cell.kind is not CellKind.MUX or conditions <= 1:
            assert got == value_of(cell, values), f"seed {seed}: {cell} of {values}"


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("signed", [False, True])
def test_divisions_round_down_and_give_0_where_there_is_nothing_to_divide_by(
    width: int, signed: bool
) -> None:
    a: Bits = tuple(range(2, 2 + width))
    b: Bits = tuple(range(2 + width, 2 + 2 * width))
    for kind in ("DIVIDE", "MODULO"):
        cell = PlainCell(
            CellKind[kind + "_SIGNED" * signed], (a, b), tuple(range(100, 100 + width))
        )
        cases = every_case(cell)
        for values, got in zip(cases, shown(cell, cases), strict=True):
            assert got == value_of(cell, values), (kind, values)


@pytest.mark.parametrize("width", [1, 28, 29, 33, 64, 70])
@pytest.mark.parametrize("kind", ["ADD", "SUBTRACT", "MULTIPLY", "LESS", "LESS_EQUAL_SIGNED"])
@pytest.mark.parametrize("shallow", [False, True])
def test_cells_of_any_width(kind: str, width: int, shallow: bool) -> None:
    """Carries of wide sums do not ripple; a product's rows are added as a tree."""
    chance = random.Random(width)
    a: Bits = tuple(range(2, 2 + width))
    b: Bits = tuple(range(2 + width, 2 + 2 * width))
    if kind == "MULTIPLY" and width > 33:
        b = tuple(int(index % 7 == 0) for index in range(width))
    result = tuple(range(200, 201 if kind.startswith("LESS") else 200 + width))
    cell = PlainCell(CellKind[kind], (a, b), result)
    # Numbers that differ in one bit are the hard ones of comparisons and of carries.
    numbers = [
        (x := chance.getrandbits(width), x ^ 1 << chance.randrange(width)) for _ in range(40)
    ]
    numbers += [(chance.getrandbits(width), chance.getrandbits(width)) for _ in range(40)]
    cases = []
    for each in numbers:
        levels = (n >> k & 1 for n in each for k in range(width))
        cases.append(dict(zip((*a, *b), levels, strict=True)))
    for case, got in zip(cases, shown(cell, cases, shallow=shallow), strict=True):
        values = {bit: value for bit, value in case.items() if bit > 1}
        assert got == value_of(cell, values), case


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


# --- the network and its chunks -------------------------------------------------------------------


def random_network(
    chance: random.Random, sources: int, gates: int
) -> tuple[Network, list[int], list[int]]:
    """Return a random network, its sources, and some nodes as its outputs."""
    network = Network()
    given = [network.source() for _ in range(sources)]
    nodes = [0, 1, *given]
    for _ in range(gates):
        inputs: Iterable[int] = chance.choices(nodes, k=chance.randint(1, 3))
        nodes.append(network.gate(random_table(chance, len(list(inputs))), *inputs))
    return network, given, chance.choices(nodes, k=8)


def random_table(chance: random.Random, inputs: int) -> int:
    """Return a random table that depends on its first ``inputs`` alone."""
    rows = 1 << inputs
    answers = chance.randrange(1 << rows)
    return sum(answers << rows * k for k in range(8 // rows))


@pytest.mark.parametrize("seed", seeds(10, 30))
def test_merged_gates_mean_what_gates_mean(seed: int) -> None:
    chance = random.Random(seed)
    network, sources, roots = random_network(chance, 5, 60)
    values = {node: chance.getrandbits(_CASES) for node in sources}
    whole = evaluated(network.gates, values, _ONES)
    merged = network.merged(roots)
    part = evaluated(merged, values, _ONES)
    assert [part[node] for node in roots] == [whole[node] for node in roots]
    assert len(merged) <= len(network.gates)
    assert all(len(inputs) <= 3 for _, inputs in merged.values())


def test_what_does_not_count_is_dropped() -> None:
    network = Network()
    a, b = network.source(), network.source()
    assert network.gate(AND, a, 0) == 0
    assert network.gate(AND, a, 1) == a
    assert network.gate(OR, a, a) == a
    assert network.gate(XOR, b, b) == 0
    assert network.gate(SELECT, 1, a, b) == a
    assert network.gate(SELECT, a, b, b) == b
    assert network.gate(ODD3, a, b, a) == b
    assert network.gate(CARRY, a, b, 0) == network.gate(AND, b, a)
    assert len(network.gates) == 1


def test_a_gate_that_one_other_reads_is_put_into_it() -> None:
    network = Network()
    a, b, c = (network.source() for _ in range(3))
    both = network.both(a, b)
    either = network.gate(OR, both, c)
    assert list(network.merged([either])) == [either]
    assert set(network.merged([either, both])) == {either, both}


def test_a_scratch_word_is_free_once_all_its_readers_have_run() -> None:
    network = Network()
    first, *others = sources = [network.source() for _ in range(2001)]
    node = first
    for a, b in zip(others[::2], others[1::2], strict=True):
        node = network.gate(ODD3, node, a, b)
    locations = {source: ("q", index) for index, source in enumerate(sources)}
    phase = Phase("step", network, locations, [], [Output(node, ("n", 0))]).written()
    assert len(phase.functions) == 20
    assert phase.scratch == 2


def test_a_result_of_a_call_is_stored_after_the_call() -> None:
    network = Network()
    given, result = network.source(), network.source()
    call = Call("called", (given,), (result,))
    outputs = [Output(result, ("n", 0))]
    phase = Phase("step", network, {given: ("q", 0)}, [call], outputs).written()
    assert [step.partition("(")[0] for step in phase.steps] == ["step0", "called", "step1"]
    before, after = phase.functions
    assert f"n[0] = n{result};" in after
    assert "n[0]" not in before


# --- levels ---------------------------------------------------------------------------------------

_FIRST = 100
_BANKS = 8
_CONSTANTS = {0: ("c", 0), 1: ("c", 1)}


def logic(table: int, words: tuple[int, int, int]) -> int:
    node = 9
    gates = {node: (table, (2, 3, 4))}
    return evaluated(gates, dict(zip((2, 3, 4), words, strict=True)), _ONES)[node]


@pytest.mark.parametrize("seed", seeds(10, 30))
def test_outputs_of_levels_are_those_of_the_network(seed: int) -> None:
    chance = random.Random(seed)
    network, sources, roots = random_network(chance, 6, 80)
    # A call that swaps two nodes, and gates behind it.
    swapped = network.source(), network.source()
    call = Call("swap", (roots[0], roots[1]), swapped)
    behind = [network.differ(swapped[0], roots[2]), network.both(*swapped)]
    # Two calls of sources: the first call's result is read at once, the second one's at the end.
    early = Call("swap", (sources[0], sources[1]), (network.source(), network.source()))
    late = Call("swap", (sources[2], sources[3]), (network.source(), network.source()))
    chain = network.both(*early.result)
    for source in sources:
        chain = network.differ(network.negated(chain), source)
    behind += [chain, network.differ(late.result[0], behind[0]), late.result[1]]
    nodes = [*roots, *behind, swapped[1], *sources[:3], roots[0]]
    # Outputs in region `n` overwrite the sources in `q`. Region `w` does not exist: its outputs are
    # read from the words that `Levels.stored` lists.
    outputs = [Output(node, (chance.choice("bnw"), k)) for k, node in enumerate(nodes)]
    locations = _CONSTANTS | {node: ("q", k) for k, node in enumerate(sources)}
    regions = {"c": 0, "b": 10, "q": 50, "n": 50}
    levels = Levels(network, locations, regions, [call, early, late], outputs, _FIRST).made()

    words = [0] * (_FIRST + levels.slots)
    values = {node: chance.getrandbits(_CASES) for node in sources}
    words[1] = _ONES
    for node, value in values.items():
        words[50 + locations[node][1]] = value
    for gates, calls in zip(levels.gates, levels.called, strict=True):
        # No step of a level depends on another step of that level.
        for step in chance.sample([*gates, *calls], len(gates) + len(calls)):
            if isinstance(step, LevelCall):
                taken = [words[word] for word in reversed(step.taken)]
                for to, word in zip(step.result, taken, strict=True):
                    words[to] = word
            else:
                table, a, b, c, to = step
                words[to] = logic(table, (words[a], words[b], words[c]))

    for own in (early, late):
        values |= zip(own.result, (values[node] for node in reversed(own.taken)), strict=True)
    whole = evaluated(network.gates, values | dict.fromkeys(swapped, 0), _ONES)
    values |= {swapped[0]: whole[roots[1]], swapped[1]: whole[roots[0]]}
    expected = evaluated(network.gates, values, _ONES)
    where = [
        levels.stored[x.location]
        if x.location[0] == "w"
        else regions[x.location[0]] + x.location[1]
        for x in outputs
    ]
    assert [words[word] for word in where] == [expected[x.node] for x in outputs]
    assert levels.slots < 80 + 2


def test_calls_that_can_wait_are_executed_with_later_ones() -> None:
    network = Network()
    sources = [network.source() for _ in range(4)]
    made = [network.source() for _ in range(4)]
    deep = network.differ(network.negated(network.both(*sources[:2])), sources[2])
    calls = [Call("one", (sources[3],), (made[0],)), Call("two", (sources[3],), (made[1],))]
    calls += [Call("three", (made[0],), (made[2],)), Call("four", (deep,), (made[3],))]
    shown = made[2], network.differ(made[1], made[3])
    outputs = [Output(node, ("b", index)) for index, node in enumerate(shown)]
    locations = _CONSTANTS | {node: ("q", k) for k, node in enumerate(sources)}
    levels = Levels(network, locations, {"c": 0, "b": 2, "q": 6}, calls, outputs, 10).made()
    together = [sorted(call.function for call in x) for x in levels.called if x]
    assert together == [["one"], ["four", "three", "two"]]


def test_gates_beside_each_other_are_in_different_banks() -> None:
    network = Network()
    sources = [network.source() for _ in range(8 * _BANKS)]
    gates = [network.differ(a, b) for a, b in pairwise(sources)]
    # In order, all words that eight gates read beside each other are in one bank.
    words = {node: ("q", k % 8 * _BANKS + k // 8) for k, node in enumerate(sources)}
    locations = _CONSTANTS | words
    outputs = [Output(node, ("w", k)) for k, node in enumerate(gates)]
    levels = Levels(network, locations, {"c": 0, "q": 8}, [], outputs, 8 + 8 * _BANKS).made()
    ((*rows,),) = levels.gates
    clocks = [
        max(len({row[index] for row in octet if row[index] % _BANKS == bank}) for bank in range(8))
        for octet in (rows[k : k + 8] for k in range(0, len(rows), 8))
        for index in range(1, 5)
    ]
    assert sum(clocks) < 2 * len(clocks)
