"""Levels, worked out one after the other in any order within, leave outputs in their words."""

import random

import pytest

from cppsim.gates.levels import Levels
from cppsim.gates.phase import Call, Output
from support.sim.gate_networks import evaluated, random_network

_CASES = 64
_ONES = (1 << _CASES) - 1
_FIRST = 100


def logic(table: int, words: tuple[int, int, int]) -> int:
    node = 9
    gates = {node: (table, (2, 3, 4))}
    return evaluated(gates, dict(zip((2, 3, 4), words, strict=True)), _ONES)[node]


@pytest.mark.parametrize("seed", range(30))
def test_outputs_are_those_of_the_network(seed: int) -> None:
    chance = random.Random(seed)
    network, sources, roots = random_network(chance, 6, 80)
    # A call that swaps two nodes, and gates behind it.
    swapped = network.source(), network.source()
    call = Call("swap", (roots[0], roots[1]), swapped)
    behind = [network.differ(swapped[0], roots[2]), network.both(*swapped)]
    outputs = [Output(node, ("n", k)) for k, node in enumerate([*roots, *behind, swapped[1]])]
    places = {0: ("b", 0), 1: ("b", 1)} | {node: ("b", 2 + k) for k, node in enumerate(sources)}
    levels = Levels(network, places, {"b": 0, "n": 50}, [call], outputs, _FIRST).made()

    words = [0] * (_FIRST + levels.slots)
    values = {node: chance.getrandbits(_CASES) for node in sources}
    words[1] = _ONES
    for node, value in values.items():
        words[places[node][1]] = value
    for gates, calls in zip(levels.gates, levels.called, strict=True):
        # Nobody in a level waits for another one there.
        for table, a, b, c, to in chance.sample(gates, len(gates)):
            words[to] = logic(table, (words[a], words[b], words[c]))
        staged = [[words[word] for word in reversed(made.taken)] for made in calls]
        for made, taken in zip(calls, staged, strict=True):
            for to, word in zip(made.result, taken, strict=True):
                words[to] = word

    whole = evaluated(network.gates, values | dict.fromkeys(swapped, 0), _ONES)
    values |= {swapped[0]: whole[roots[1]], swapped[1]: whole[roots[0]]}
    expected = evaluated(network.gates, values, _ONES)
    got = [words[50 + k] for k in range(len(outputs))]
    assert got == [expected[output.node] for output in outputs]
    assert levels.slots < 80 + 2
