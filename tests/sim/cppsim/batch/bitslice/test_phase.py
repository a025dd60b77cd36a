"""Chunks of a phase pass values on in scratch words, and use these words again."""

import pytest

from cppsim.batch.bitslice.network import ODD3, Network
from cppsim.batch.bitslice.phase import Output, Phase


def test_a_scratch_word_is_free_once_all_its_readers_have_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cppsim.batch.bitslice.phase._GATES", 1)
    network = Network()
    first, *others = sources = [network.source() for _ in range(41)]
    node = first
    for a, b in zip(others[::2], others[1::2], strict=True):
        node = network.gate(ODD3, node, a, b)
    places = {source: ("q", place) for place, source in enumerate(sources)}
    phase = Phase("step", network, places, [], [Output(node, ("n", 0))]).written()
    assert len(phase.functions) == 20
    assert phase.scratch == 2
