"""Levels leave outputs in their words, whatever the order of evaluation within a level."""

import random
from itertools import pairwise

import pytest

from cppsim.batch.bitslice.levels import LevelCall, Levels
from cppsim.batch.bitslice.network import Network
from cppsim.batch.bitslice.phase import Call, Output
from support.gate_networks import evaluated, random_network
from support.seeds import seeds

_CASES = 64
_ONES = (1 << _CASES) - 1
_FIRST = 100
_BANKS = 8


def logic(table: int, words: tuple[int, int, int]) -> int:
    node = 9
    gates = {node: (table, (2, 3, 4))}
    return evaluated(gates, dict(zip((2, 3, 4), words, strict=True)), _ONES)[node]


@pytest.mark.parametrize("seed", seeds(10, 30))
def test_outputs_are_those_of_the_network(seed: int) -> None:
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
    locations = {0: ("c", 0), 1: ("c", 1)} | {node: ("q", k) for k, node in enumerate(sources)}
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
    locations = {0: ("c", 0), 1: ("c", 1)} | {node: ("q", k) for k, node in enumerate(sources)}
    levels = Levels(network, locations, {"c": 0, "b": 2, "q": 6}, calls, outputs, 10).made()
    together = [sorted(call.function for call in x) for x in levels.called if x]
    assert together == [["one"], ["four", "three", "two"]]


def test_state_that_changes_places_is_copied_at_the_end() -> None:
    network = Network()
    a, b = network.source(), network.source()
    both = network.both(a, b)
    others = [network.source() for _ in range(4)]
    deep = both
    for other in others:
        deep = network.differ(deep, other)
    locations = {a: ("q", 0), b: ("q", 1), 0: ("c", 0), 1: ("c", 1)}
    locations |= dict.fromkeys(others, ("c", 0))
    outputs = [Output(b, ("n", 0)), Output(a, ("n", 1)), Output(deep, ("b", 0))]
    levels = Levels(network, locations, {"c": 0, "b": 2, "q": 4, "n": 4}, [], outputs, 9).made()
    words = [0, _ONES, 0, 0, 0b01, 0b11] + [0] * (3 + levels.slots)
    for gates in levels.gates:
        for table, x, y, z, to in gates:
            words[to] = logic(table, (words[x], words[y], words[z]))
    assert (words[4], words[5], words[2]) == (0b11, 0b01, 0b01)


def test_gates_beside_each_other_are_in_different_banks() -> None:
    network = Network()
    sources = [network.source() for _ in range(8 * _BANKS)]
    gates = [network.differ(a, b) for a, b in pairwise(sources)]
    # In order, all words that eight gates read beside each other are in one bank.
    words = {node: ("q", k % 8 * _BANKS + k // 8) for k, node in enumerate(sources)}
    locations = {0: ("c", 0), 1: ("c", 1)} | words
    outputs = [Output(node, ("w", k)) for k, node in enumerate(gates)]
    levels = Levels(network, locations, {"c": 0, "q": 8}, [], outputs, 8 + 8 * _BANKS).made()
    ((*rows,),) = levels.gates
    clocks = [
        max(len({row[index] for row in octet if row[index] % _BANKS == bank}) for bank in range(8))
        for octet in (rows[k : k + 8] for k in range(0, len(rows), 8))
        for index in range(1, 5)
    ]
    assert sum(clocks) < 2 * len(clocks)
