"""Gates are folded, shared and merged, and every node and output keeps its meaning."""

import random

import pytest

from cppsim.batch.bitslice.network import AND, CARRY, ODD3, OR, SELECT, XOR, Network
from cppsim.batch.bitslice.phase import Call, Output, Phase
from support.gate_networks import evaluated, random_network
from support.seeds import seeds

_CASES = 64
_ONES = (1 << _CASES) - 1


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


# --- chunks of a phase ----------------------------------------------------------------------------


def test_a_scratch_word_is_free_once_all_its_readers_have_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cppsim.batch.bitslice.phase._GATES", 1)
    network = Network()
    first, *others = sources = [network.source() for _ in range(41)]
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
