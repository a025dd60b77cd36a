"""Spans become the bursts that a block-by-block count gives, at the stated rate."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from amaranth.hdl import unsigned

from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.addresses.bursts import Splitter
from bitlane_rtl.configuration import Configuration
from support.rtl.streams import NO_STALLS, Stalls, transfer
from support.seeds import seeds

_CONFIGURATION = Configuration(data_width=32, memory_bytes=1 << 32)
_BYTES = _CONFIGURATION.data_bytes
_BLOCK = BEATS_PER_BLOCK * _BYTES


def _cut(span: dict[str, int]) -> list[dict[str, int]]:
    """The bursts of ``span``, counted out block by block."""
    bursts = []
    low, last = span["address"], span["address"] + span["extent"]
    for block in range(low // _BLOCK, last // _BLOCK + 1):
        start = max(low, block * _BLOCK) // _BYTES
        stop = min(last, block * _BLOCK + _BLOCK - 1) // _BYTES
        bursts.append(
            {
                "address": start * _BYTES % (1 << _CONFIGURATION.address_width),
                "length": stop - start,
                "begin": low % _BYTES,
                "finish": last % _BYTES,
                "first": int(block == low // _BLOCK),
                "final": int(block == last // _BLOCK),
                "single": int(start == stop),
                "tag": span["tag"],
            }
        )
    return bursts


def _spans(rng: random.Random, count: int) -> list[dict[str, int]]:
    """Spans of all sizes, many of them near the borders of beats and blocks."""
    spans = []
    for tag in range(count):
        near = rng.choice([_BYTES, _BLOCK, 1 << 12, 1 << 20])
        address = near * rng.randrange(1 << 8) + rng.randrange(-_BYTES, 2 * _BYTES)
        extent = rng.choice([0, _BYTES, _BLOCK, 2 * _BLOCK, 9 * _BLOCK]) + rng.randrange(3 * _BYTES)
        spans.append({"address": max(address, 0), "extent": extent, "tag": tag % 256})
    spans.append({"address": (1 << _CONFIGURATION.address_width) - 100, "extent": 99, "tag": 1})
    return spans


def _run(dut: Splitter, spans: list[dict[str, int]], stalls: Stalls = NO_STALLS) -> list[int]:
    """Check the bursts that come of ``spans``; the cycles in which they do."""
    expected = [burst for span in spans for burst in _cut(span)]
    _, sink = transfer(dut, spans, len(expected), stalls)
    assert sink.payloads == expected
    return sink.cycles


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("gap", [False, True])
def test_bursts_are_those_of_a_count(gap: bool, seed: int) -> None:
    spans = _spans(random.Random(seed), 150)
    _run(
        Splitter(_CONFIGURATION, unsigned(8), gap=gap),
        spans,
        Stalls(seed=seed, probability=0.3, longest=3),
    )


def test_the_longest_span_ends() -> None:
    configuration = replace(_CONFIGURATION, length_bits=12)
    dut = Splitter(configuration, unsigned(8))
    spans = [{"address": 61, "extent": (1 << 12) - 1, "tag": tag} for tag in range(2)]
    _run(dut, spans)


@pytest.mark.parametrize("gap", [False, True])
def test_a_burst_a_cycle_and_a_gap_only_if_asked_for(gap: bool) -> None:
    spans = [{"address": 64 * index, "extent": 191, "tag": index} for index in range(8)]
    cycles = _run(Splitter(_CONFIGURATION, unsigned(8), gap=gap), spans)
    steps = [after - before for before, after in pairwise(cycles)]
    assert steps == ([1, 1, 1 + gap] * 8)[:-1]
