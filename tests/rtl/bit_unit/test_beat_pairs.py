"""Elements of two beats are joined for the shifter and split again, and their counts are added."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, Lane, Op
from bitlane_rtl.bit_unit.beat_pairs import AddPairs, PairBeats, SplitBeats
from support.rtl.streams import ALL_STALLS, NO_STALLS, Stalls, transfer

PAIR, SINGLE = "pair", "single"


def edge(generator: random.Random, last: bool) -> dict[str, Any]:
    return {
        "last": last,
        "end": last,
        "error": False,
        "slot": generator.randrange(0, 8, 2),
        "final": generator.randrange(4),
    }


def kinds(generator: random.Random, size: int) -> list[str]:
    return [generator.choice([PAIR, SINGLE]) for _ in range(size)]


def edge_of(payload: Any, names: dict[str, Any]) -> dict[str, Any]:
    return {name: payload.edge[name] for name in names}


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_both_beats_of_a_shift_are_put_side_by_side(stalls: Stalls) -> None:
    generator = random.Random(f"pair {stalls.seed}")
    sent: list[dict[str, Any]] = []
    expected: list[tuple[bool, int, int, dict[str, Any]]] = []
    completed: list[int] = []
    for kind in kinds(generator, 60):
        words = [(generator.getrandbits(32), generator.getrandbits(32)) for _ in kind[:2]]
        last = generator.random() < 0.3
        if kind == PAIR:
            op, lane = generator.choice([Op.SHIFT_LEFT, Op.SHIFT_RIGHT]), Lane.BITS_64
        else:
            # Logic and counts in 64-bit lanes do not form pairs, nor do shifts in narrower lanes.
            others = [(op, Lane.BITS_64) for op in (Op.XOR, Op.NOT, *sorted(COUNT_OPS))]
            op, lane = generator.choice([*others, (Op.SHIFT_LEFT, Lane.BITS_32)])
            words = words[:1]
        edges = [edge(generator, last and k == len(words) - 1) for k in range(len(words))]
        for (a, b), where in zip(words, edges, strict=True):
            operation = {"op": op, "lane": lane}
            sent.append({"a": a, "b": b, "inside": a & 15, "operation": operation, "edge": where})
        a = words[-1][0] << 32 | (words[0][0] if kind == PAIR else 0)
        b = words[-1][1] << 32 | (words[0][1] if kind == PAIR else 0)
        expected.append((kind == PAIR, a, b, edges[-1]))
        completed.append(len(sent) - 1)
    circuit = PairBeats(32, BIT_OPS)
    source, sink = transfer(circuit, sent, len(expected), stalls)
    for got, (pair, a, b, where) in zip(sink.payloads, expected, strict=True):
        low = 0 if pair else 32
        assert (got.pair, got.a >> low, got.b >> low) == (pair, a >> low, b >> low), stalls
        assert edge_of(got, where) == where, stalls
        assert pair or got.inside == a >> 32 & 15, stalls
    assert sink.cycles == [source.cycles[beat] for beat in completed]


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_the_lower_half_is_sent_first_and_the_upper_one_is_the_last(stalls: Stalls) -> None:
    generator = random.Random(f"split {stalls.seed}")
    sent: list[dict[str, Any]] = []
    expected: list[tuple[int, dict[str, Any]]] = []
    for kind in kinds(generator, 60):
        data, where = generator.getrandbits(64), edge(generator, generator.random() < 0.5)
        sent.append({"data": data, "lane": 3, "out_lane": 3, "edge": where, "pair": kind == PAIR})
        if kind == PAIR:
            expected.append((data & 0xFFFF_FFFF, {**where, "last": False, "end": False}))
        expected.append((data >> 32, where))
    circuit = SplitBeats(32)
    _, sink = transfer(circuit, sent, len(expected), stalls)
    for got, (data, where) in zip(sink.payloads, expected, strict=True):
        assert (got.data, got.lane, got.out_lane) == (data, 3, 3), stalls
        assert edge_of(got, where) == where, stalls
    if stalls == NO_STALLS:
        assert sink.cycles == list(range(len(expected)))


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_both_counts_are_added_and_all_else_is_left_alone(stalls: Stalls) -> None:
    generator = random.Random(f"add {stalls.seed}")
    sent: list[dict[str, Any]] = []
    expected: list[dict[str, Any] | None] = []  # None for the first beat of a pair
    for kind in kinds(generator, 60):
        if kind == PAIR:
            counts = [generator.choice([0, 32, generator.randrange(33)]) for _ in range(2)]
            edges = [edge(generator, False), edge(generator, generator.random() < 0.5)]
            edges[1]["slot"] = edges[0]["slot"]
            out_lane = generator.choice([Lane.BITS_8, Lane.BITS_32])
            for data, where in zip(counts, edges, strict=True):
                sent.append({"data": data, "lane": 3, "out_lane": out_lane, "edge": where})
            merged = {**edges[1], "slot": edges[1]["slot"] // 2}
            expected.append(None)
            expected.append({"data": sum(counts), "lane": 2, "out_lane": out_lane, "edge": merged})
        else:
            where = edge(generator, generator.random() < 0.5)
            lane, out_lane = generator.choice([(3, 3), (2, 2), (2, 0), (0, 2)])
            data = generator.getrandbits(32)
            sent.append({"data": data, "lane": lane, "out_lane": out_lane, "edge": where})
            expected.append(sent[-1])
    circuit = AddPairs()
    source, sink = transfer(circuit, sent, len(expected), stalls)
    for got, want in zip(sink.payloads, expected, strict=True):
        assert got.partial == (want is None), stalls
        if want is None:
            continue
        assert [got[name] for name in ("data", "lane", "out_lane")] == [
            want[name] for name in ("data", "lane", "out_lane")
        ], stalls
        assert edge_of(got, want["edge"]) == want["edge"], stalls
    assert sink.cycles == source.cycles


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
@pytest.mark.parametrize("good", [0, 1, 2, 3])
def test_every_beat_in_error_comes_through_whatever_half_it_is(good: int, stalls: Stalls) -> None:
    """Behind an error all beats are errors; a burst that was not requested has a single beat."""
    beats = [edge(random.Random(beat), False) | {"error": beat >= good} for beat in range(good + 4)]
    operation = {"op": Op.SHIFT_LEFT, "lane": Lane.BITS_64}
    pair_beats = PairBeats(32, BIT_OPS)
    operands = [{"a": 0, "b": 0, "operation": operation, "edge": where} for where in beats]
    wanted = [False] * (good // 2) + [True] * 4
    source, sink = transfer(pair_beats, operands, len(wanted), stalls)
    assert [bool(got.edge.error) for got in sink.payloads] == wanted, stalls
    assert sink.cycles[-4:] == source.cycles[-4:]
    add_pairs = AddPairs()
    results = [{"data": 0, "lane": 3, "out_lane": 0, "edge": where} for where in beats]
    _, sink = transfer(add_pairs, results, len(beats), stalls)
    whole = [bool(got.edge.error) for got in sink.payloads if not got.partial]
    assert whole == wanted, stalls
