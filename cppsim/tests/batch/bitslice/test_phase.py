"""Chunks of a phase pass values on in scratch words, and store its outputs."""

import pytest

from cppsim.batch.bitslice.network import ODD3, Network
from cppsim.batch.bitslice.phase import Call, Output, Phase


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
