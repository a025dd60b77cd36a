"""Gate networks in plain Python: a node's word has its bit in each of many cases. No tests here."""

import random
from collections.abc import Iterable, Mapping

from cppsim.batch.bitslice.network import Gate, Network


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
