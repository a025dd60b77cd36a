"""The bit unit: every operation on a stream of beats, in order, at its exact latency."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Op
from bitlane_rtl.bit_unit import BitUnit
from support.commands import random_tests
from support.oracle import truth
from support.rtl.records import (
    compute,
    fields_of,
    join,
    random_counts,
    random_edge,
    random_word,
    split,
    truths,
)
from support.rtl.streams import NO_STALLS, STALLS, Stalls, compiled, transfer
from support.seeds import slow

ALL_OPS = BIT_OPS
ALL_LANES = frozenset(Lane)
COUNT = frozenset({Op.COUNT})
COUNT_XOR = frozenset({Op.COUNT_XOR})

SLOW = pytest.mark.slow

LATENCIES = [
    # Operations; latency of units of 32 bits, and of wider ones.
    pytest.param(LOGIC_OPS, (1, 1), id="logic"),
    pytest.param(frozenset({Op.NOT}), (1, 1), id="not", marks=SLOW),
    pytest.param(LOGIC_OPS | COUNT, (2, 3), id="logic+count"),
    pytest.param(LOGIC_OPS | COUNT_OPS, (2, 3), id="logic+counts", marks=SLOW),
    pytest.param(frozenset({Op.XOR}) | COUNT, (2, 3), id="xor+count", marks=SLOW),
    pytest.param(frozenset({Op.AND, Op.NOT}) | COUNT_OPS, (2, 3), id="and+not+counts", marks=SLOW),
    pytest.param(COUNT, (2, 3), id="count", marks=SLOW),
    pytest.param(COUNT_XOR, (2, 3), id="count-xor", marks=SLOW),
    pytest.param(SHIFT_OPS | COUNT_XOR, (3, 3), id="shift+count-xor"),
    pytest.param(SHIFT_OPS, (3, 3), id="shift", marks=SLOW),
    pytest.param(frozenset({Op.SHIFT_RIGHT, Op.NOT}), (3, 3), id="right+not", marks=SLOW),
    pytest.param(LOGIC_OPS | SHIFT_OPS, (3, 3), id="logic+shift", marks=SLOW),
    pytest.param(ALL_OPS, (3, 3), id="all"),
]


def unit(
    width: int, ops: frozenset[Op], lanes: frozenset[Lane] = ALL_LANES, *, sums: bool = False
) -> BitUnit:
    return compiled(BitUnit, width, ops, lanes, sums=sums)


@dataclass
class Traffic:
    """Beats for a unit of ``width`` bits, what they have to give, and when.

    An ``expected`` result that is None is ``partial``, and only that is compared. ``due[k]`` is the
    input beat that completes result ``k``, and the cycles from it to the result beyond the unit's
    latency.
    """

    width: int
    generator: random.Random
    beats: list[dict[str, Any]] = field(default_factory=list)
    expected: list[dict[str, Any] | None] = field(default_factory=list)
    due: list[tuple[int, int]] = field(default_factory=list)

    def command(self, op: Op, lane: Lane, beats: int) -> None:
        """A run of ``beats`` beats, even if its elements take two each."""
        generator = self.generator
        out_lane = generator.choice([Lane.BITS_8, Lane.BITS_32]) if op.counts else lane
        operation: dict[str, Any] = {
            "op": op,
            "lane": lane,
            "out_lane": out_lane,
            "saturate": generator.random() < 0.5,
            "arithmetic": generator.random() < 0.5,
            **random_tests(generator, op),
        }
        pairs = lane.bits > self.width and op.splits_lanes
        slot = generator.randrange(0, 8, 2) if pairs else generator.randrange(8)
        unit = 2 if pairs else 1
        for first in range(0, beats, unit):
            a = random_word(generator, unit * self.width)
            b = random_counts(generator, lane, max(unit * self.width, lane.bits))
            given = ("a", a), ("b", b % (1 << (unit * self.width)))
            result = compute(
                op,
                *(word for _, word in given),
                lane if op.splits_lanes else Lane.BITS_8,
                unit * self.width,
                bool(operation["saturate"]),
                bool(operation["arithmetic"]),
            )
            if operation["test"]:
                result = truths(result, lane, unit * self.width, negate=operation["negate"])
            edges = [self._edge(first + k == beats - 1, slot) for k in range(unit)]
            # `test_shift` covers what follows a first beat in error.
            edges[: unit - 1] = [edge | {"error": False} for edge in edges[: unit - 1]]
            for k, edge in enumerate(edges):
                operands = {name: self._low(word >> k * self.width) for name, word in given}
                inside = (1 << self.width // 8) - 1
                self.beats.append(
                    {**operands, "inside": inside, "operation": operation, "edge": edge}
                )
            self._expect(result, operation, edges, pairs)

    def summed(self, op: Op, lane: Lane, sizes: Sequence[int], *, error: int | None = None) -> None:
        """Runs of ``sizes`` bytes of which counts or tests are summed, filled up with rubbish.

        The bytes of a run are rounded up to whole elements. ``error``: the beat, counted over all
        runs, from which on all could not be read.
        """
        size, generator = self.width // 8, self.generator
        operation: dict[str, Any] = {"op": op, "lane": lane, "out_lane": Lane.BITS_32, "sums": 1}
        operation |= random_tests(generator, op)
        number = 0
        for length in sizes:
            left = -(-length // lane.bytes) * lane.bytes
            counts: list[int] = []
            while left > 0:
                inside = (1 << min(left, size)) - 1
                a, b = (random_word(generator, self.width) for _ in range(2))
                ones = compute(op, a, b, Lane.BITS_8, self.width)
                counts += split(ones, 8, self.width)[: min(left, size)]
                left -= size
                total = sum(counts)
                if operation["test"]:
                    elements = [
                        counts[k : k + lane.bytes] for k in range(0, len(counts), lane.bytes)
                    ]
                    total = sum(truth(sum(x), negate=operation["negate"]) for x in elements)
                bad = error is not None and number >= error
                edge = {**self._edge(left <= 0, 0), "error": bad}
                self.beats.append(
                    {"a": a, "b": b, "inside": inside, "operation": operation, "edge": edge}
                )
                result = {"data": join([total] * (self.width // 32), 32), "edge": edge}
                result |= {"lane": Lane.BITS_32, "out_lane": Lane.BITS_32}
                if bad:
                    del result["data"]
                self._due(result if left <= 0 or bad else None, len(self.beats) - 1, 0)
                number += 1

    def _edge(self, last: bool, slot: int) -> dict[str, Any]:
        end, error = last and self.generator.random() < 0.5, self.generator.random() < 0.1
        return random_edge(self.generator, last, end=end, error=error, slot=slot)

    def _expect(
        self, result: int, operation: dict[str, Any], edges: list[dict[str, Any]], pairs: bool
    ) -> None:
        beat = len(self.beats) - 1
        lanes = {"lane": operation["lane"], "out_lane": operation["out_lane"]}
        last = {**edges[-1], "error": any(edge["error"] for edge in edges)}
        if pairs and operation["op"].counts:
            counted = {"data": self._low(result), **lanes, "lane": Lane.BITS_32}
            self._due(None, beat - 1, 0)
            self._due({**counted, "edge": {**last, "slot": last["slot"] >> 1}}, beat, 0)
        elif pairs:
            low = {**last, "last": False, "end": False}
            self._due({"data": self._low(result), **lanes, "edge": low}, beat - 1, 1)
            self._due({"data": result >> self.width, **lanes, "edge": last}, beat, 1)
        else:
            self._due({"data": result, **lanes, "edge": last}, beat, 0)

    def _due(self, expected: dict[str, Any] | None, beat: int, extra: int) -> None:
        self.expected.append(expected)
        self.due.append((beat, extra))

    def _low(self, word: int) -> int:
        return word & (1 << self.width) - 1

    def check(self, circuit: BitUnit, stalls: Stalls = NO_STALLS) -> tuple[list[int], list[int]]:
        """Send all beats, compare all results, and return the cycles of both."""
        source, sink = transfer(circuit, self.beats, len(self.expected), stalls)
        layout = circuit.o.payload.shape()
        for index, (bits, want) in enumerate(zip(sink.bits, self.expected, strict=True)):
            got = layout.from_bits(bits)
            beat = self.beats[self.due[index][0]]
            assert got.partial == (want is None), f"result {index} of {beat}, {stalls}"
            if want is None:
                continue
            assert fields_of(got, want) == want, f"result {index} of {beat}, {stalls}"
        return source.cycles, sink.cycles


def lanes_of(op: Op, lanes: frozenset[Lane], width: int) -> list[Lane]:
    """Lanes that a unit of ``lanes`` takes for ``op``: logic takes any."""
    return sorted(lanes) if op.splits_lanes else list(Lane)


def mixed(width: int, ops: frozenset[Op], lanes: frozenset[Lane], seed: str, runs: int) -> Traffic:
    generator = random.Random(seed)
    traffic = Traffic(width, generator)
    for _ in range(runs):
        op = generator.choice(sorted(ops))
        beats = generator.choice([2, 4, 6])
        traffic.command(op, generator.choice(lanes_of(op, lanes, width)), beats)
    return traffic


@pytest.mark.parametrize("stalls", STALLS[:2], ids=str)
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(("ops", "latencies"), LATENCIES)
def test_mixed_commands_back_to_back(
    width: int, ops: frozenset[Op], latencies: tuple[int, int], stalls: Stalls
) -> None:
    latency = latencies[width > 32]
    traffic = mixed(width, ops, ALL_LANES, f"{width} {sorted(ops)} {stalls.seed}", 40)
    circuit = unit(width, ops)
    assert circuit.latency == latency
    put, got = traffic.check(circuit, stalls)
    if stalls == NO_STALLS and width >= 64:
        assert put == list(range(len(put)))
        assert got == [cycle + latency for cycle in put]


def test_all_operations_in_long_streams(width: int, stalls: Stalls) -> None:
    runs = 60 if width <= 64 else 30
    traffic = mixed(width, ALL_OPS, ALL_LANES, f"long {width} {stalls.seed}", runs)
    put, got = traffic.check(unit(width, ALL_OPS), stalls)
    assert stalls != NO_STALLS or width < 64 or got == [cycle + 3 for cycle in put]


@pytest.mark.parametrize(
    ("op", "lane"),
    [
        (Op.XOR, Lane.BITS_64),
        (Op.SHIFT_LEFT, Lane.BITS_8),
        (Op.SHIFT_LEFT, Lane.BITS_64),
        (Op.SHIFT_RIGHT, Lane.BITS_64),
        (Op.COUNT, Lane.BITS_32),
        (Op.COUNT, Lane.BITS_64),
        (Op.COUNT_XOR, Lane.BITS_32),
        (Op.COUNT_XOR, Lane.BITS_64),
    ],
)
def test_beats_of_32_bits_take_a_cycle_each_whatever_the_lane(op: Op, lane: Lane) -> None:
    traffic = Traffic(32, random.Random(f"{lane} {op}"))
    traffic.command(op, lane, 24)
    put, got = traffic.check(unit(32, ALL_OPS))
    assert put == list(range(24))
    assert got == [put[beat] + 3 + extra for beat, extra in traffic.due]


@pytest.mark.parametrize("ops", [ALL_OPS, LOGIC_OPS | COUNT_OPS], ids=["all", "logic+counts"])
def test_elements_of_two_beats_among_whole_ones(ops: frozenset[Op], stalls: Stalls) -> None:
    generator = random.Random(f"pairs {stalls.seed}")
    traffic = Traffic(32, generator)
    for _ in range(80):
        op = generator.choice(sorted(ops))
        lane = generator.choice([Lane.BITS_64, Lane.BITS_64, Lane.BITS_32, Lane.BITS_8])
        traffic.command(op, lane, 2 * generator.randint(1, 3))
    put, _ = traffic.check(unit(32, ops), stalls)
    if stalls == NO_STALLS:
        # Each change to pairs and back may cost the input a cycle, and nothing else does.
        assert put[-1] - put[0] < len(put) + 80


@pytest.mark.parametrize(
    ("width", "lanes"),
    [
        (32, {Lane.BITS_8, Lane.BITS_64}),
        (64, {Lane.BITS_32}),
        slow(32, {Lane.BITS_8}),
        slow(32, {Lane.BITS_32}),
        slow(64, {Lane.BITS_8}),
        slow(64, {Lane.BITS_8, Lane.BITS_64}),
    ],
)
@pytest.mark.parametrize("stalls", STALLS[:2], ids=str)
def test_some_lanes(width: int, lanes: set[Lane], stalls: Stalls) -> None:
    built = frozenset(lanes)
    mixed(width, ALL_OPS, built, f"{width} {sorted(built)}", 40).check(
        unit(width, ALL_OPS, built), stalls
    )


def test_counts_of_lanes_up_to_32_bits_take_two_cycles() -> None:
    lanes = ALL_LANES - {Lane.BITS_64}
    put, got = mixed(64, LOGIC_OPS | COUNT_OPS, lanes, "narrow", 20).check(
        unit(64, LOGIC_OPS | COUNT_OPS, lanes)
    )
    assert got == [cycle + 2 for cycle in put]


@pytest.mark.parametrize(
    ("ops", "lanes"),
    [
        pytest.param(ALL_OPS, ALL_LANES, id="all"),
        pytest.param(LOGIC_OPS | COUNT_OPS, ALL_LANES, id="logic+counts", marks=SLOW),
        pytest.param(COUNT, ALL_LANES - {Lane.BITS_64}, id="count"),
        pytest.param(LOGIC_OPS | COUNT_XOR, frozenset({Lane.BITS_8}), id="bytes", marks=SLOW),
        pytest.param(
            SHIFT_OPS | COUNT_OPS, frozenset({Lane.BITS_64}), id="shift+counts", marks=SLOW
        ),
    ],
)
def test_sums_among_other_runs(
    width: int, ops: frozenset[Op], lanes: frozenset[Lane], stalls: Stalls
) -> None:
    generator = random.Random(f"sums {width} {sorted(ops)} {stalls.seed}")
    traffic = Traffic(width, generator)
    for _ in range(40):
        op = generator.choice(sorted(ops))
        if op.counts and generator.random() < 0.7:
            sizes = [generator.randint(1, width // 2) for _ in range(generator.randint(1, 4))]
            traffic.summed(op, generator.choice(sorted(lanes)), sizes)
        else:
            traffic.command(op, generator.choice(lanes_of(op, lanes, width)), 2)
    circuit = unit(width, ops, lanes, sums=True)
    assert circuit.latency == 3
    put, got = traffic.check(circuit, stalls)
    if stalls == NO_STALLS and width >= 64:
        assert put == list(range(len(put)))
        assert got == [cycle + 3 for cycle in put]


@pytest.mark.parametrize("error", range(7))
def test_beats_in_error_come_through_whatever_of_their_run_is_missing(error: int) -> None:
    traffic = Traffic(64, random.Random(error))
    traffic.summed(Op.COUNT_AND, Lane.BITS_8, [24, 8, 31], error=error)
    traffic.check(unit(64, ALL_OPS, sums=True))
