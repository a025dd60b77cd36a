"""Repack packs counts of every lane into output lanes of 8 and 32 bits; all else is unchanged."""

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import BIT_OPS, LOGIC_OPS, Lane, Op
from bitlane_rtl.datapath import DecodedResult, Repack, ResultDecoder
from bitlane_rtl.streams import Fifo, Result, SkidBuffer, Stage, ToWrite, Wire
from support.rtl.records import join, random_edge
from support.rtl.streams import NO_STALLS, STALLS, Stalls, compiled, transfer

ALL = frozenset(Lane)
OPS = BIT_OPS
COUNT_LANES = [(lane, out) for lane in Lane for out in (Lane.BITS_8, Lane.BITS_32)]
BETWEEN: dict[str, tuple[Stage, int, int]] = {
    # Stage between decode and repack, its capacity in payloads, its latency.
    "wire": (Wire, 0, 0),
    "skid": (SkidBuffer, 2, 1),
    "fifo": (lambda shape: Fifo(shape, 16), 16, 1),
}


class Bench(wiring.Component):
    """The decoder, the stage ``between``, and repack, in a row."""

    i: stream.Interface
    o: stream.Interface

    def __init__(
        self, width: int, lanes: Collection[Lane], ops: Collection[Op], between: str = "wire"
    ) -> None:
        super().__init__(
            {"i": In(stream.Signature(Result(width))), "o": Out(stream.Signature(ToWrite(width)))}
        )
        stage, self.holds, self.latency = BETWEEN[between]
        decoder, results = ResultDecoder(width, lanes, ops), stage(DecodedResult(width))
        self._units = [decoder, results, Repack(width, lanes, ops)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        source: Any = wiring.flipped(self.i)
        for unit in self._units:
            m.submodules += unit
            wiring.connect(m, source, unit.i)
            source = unit.o
        wiring.connect(m, source, wiring.flipped(self.o))
        return m


@dataclass
class Expected:
    """An output beat: its ``data``, the mask of the bits that are defined, and its error flag."""

    data: int = 0
    defined: int = 0
    error: bool = False


@dataclass
class Traffic:
    """Input beats, the expected output beats, and the cycles of both.

    ``put`` holds the cycle in which repack finishes each input beat, ``got`` the cycle of each
    output beat, both behind a wire. ``halves`` is the probability that a beat is preceded by the
    first beat of a pair.
    """

    width: int
    generator: random.Random
    halves: float = 0.0
    beats: list[dict[str, Any]] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    put: list[int] = field(default_factory=list)
    got: list[int] = field(default_factory=list)

    def command(self, lane: Lane, out_lane: Lane, sizes: list[int]) -> None:
        """Add a COUNT with one run for each of ``sizes``, in elements."""
        for index, size in enumerate(sizes):
            self._run(lane, out_lane, size, end=index == len(sizes) - 1)

    def passing(self, lane: Lane, beats: int) -> None:
        """Add a run of an operation that leaves the lane unchanged."""
        for index in range(beats):
            data, last = self.generator.getrandbits(self.width), index == beats - 1
            error = self.generator.random() < 0.1
            edge = random_edge(self.generator, last, error=error)
            cycle = self._send(data, lane, lane, **edge)
            ones = (1 << self.width) - 1
            self._receive(Expected(data, ones, error), cycle)

    def _random(self, below: int) -> int:
        return self.generator.randrange(below)

    def _send(self, data: int, lane: Lane, out_lane: Lane, **edge: int) -> int:
        """Send a beat; return the cycle in which repack finishes it."""
        beat = {"data": data, "lane": lane, "out_lane": out_lane, "partial": 0, "edge": edge}
        if self.generator.random() < self.halves:
            flags = {name: self._random(2) for name in ("last", "end", "error")}
            self.beats.append({**beat, "data": ~data, "partial": 1, "edge": {**edge, **flags}})
            self._put()
        self.beats.append(beat)
        return self._put()

    def _put(self) -> int:
        self.put.append(self.put[-1] + 1 if self.put else 0)
        return self.put[-1]

    def _receive(self, beat: Expected, cycle: int) -> None:
        self.expected.append(beat)
        self.got.append(max(cycle + 1, self.got[-1] + 1 if self.got else 0))

    def _run(self, lane: Lane, out_lane: Lane, size: int, end: bool) -> None:
        in_elements, out_elements = self.width // lane.bits, self.width // out_lane.bits
        offset = self._random(out_elements)
        counts = [self._random(lane.bits + 1) for _ in range(size)]
        errors = []
        narrows = out_elements > in_elements
        slot = offset // in_elements if narrows else self._random(8)
        # Position of element 0 in the first input beat, and the number of input beats.
        start = offset % in_elements if narrows else offset
        beats = -(-(start + size) // in_elements)
        quarter = ((start + size) * lane.bytes - 1) % (self.width // 8) // (self.width // 32)
        for beat in range(beats):
            elements = [
                counts[index] if 0 <= index < size else self._random(lane.bits + 1)
                for index in range(beat * in_elements - start, (beat + 1) * in_elements - start)
            ]
            last = beat == beats - 1
            ratio = max(out_elements // in_elements, 1)
            completes = last or (slot * narrows + beat + 1) % ratio == 0
            # Any other beat in error would end the output beat, which another test checks.
            errors.append(completes and self.generator.random() < 0.1)
            cycle = self._send(
                join(elements, lane.bits),
                lane,
                out_lane,
                last=last,
                end=last and end,
                error=errors[-1],
                slot=slot,
                final=quarter if last else self._random(4),
            )
            if out_elements < in_elements:
                first = beat * in_elements // out_elements
                parts = -(-(start + size) // out_elements) - first
                parts = min(parts, in_elements // out_elements)
                for part in range(parts):
                    self._receive(self._part(first + part, offset, counts, out_lane), cycle)
                    self.expected[-1].error = errors[-1]
                self.put[-1] = self.got[-1] - 1
            elif completes:
                part = (slot * narrows + beat) // ratio
                self._receive(self._part(part, offset, counts, out_lane), cycle)
                filled = range(max(part * ratio - slot * narrows, 0), beat + 1)
                self.expected[-1].error = any(errors[index] for index in filled)

    def _part(self, beat: int, offset: int, counts: list[int], lane: Lane) -> Expected:
        """Return output beat ``beat`` of a run with element 0 at position ``offset``."""
        elements = self.width // lane.bits
        expected = Expected()
        for position in range(elements):
            index = beat * elements + position - offset
            if 0 <= index < len(counts):
                expected.data |= counts[index] << (position * lane.bits)
                expected.defined |= ((1 << lane.bits) - 1) << (position * lane.bits)
        return expected

    def check(self, circuit: Bench, stalls: Stalls = NO_STALLS) -> None:
        source, sink = transfer(circuit, self.beats, len(self.expected), stalls)
        for index, (got, want) in enumerate(zip(sink.payloads, self.expected, strict=True)):
            found = got.data & want.defined, bool(got.error)
            assert found == (want.data, want.error), f"beat {index}, {stalls}"
        if stalls == NO_STALLS:
            assert sink.cycles == [cycle + circuit.latency for cycle in self.got]
            assert source.cycles == self._taken(circuit)

    def _taken(self, circuit: Bench) -> list[int]:
        """Return each input beat's cycle: beats are accepted in order, as soon as there is room."""
        if not circuit.holds:
            return self.put
        cycles: list[int] = []
        for index in range(len(self.put)):
            left = index - circuit.holds
            room = self.put[left] + circuit.latency + 1 if left >= 0 else 0
            cycles.append(max(cycles[-1] + 1 if cycles else 0, room))
        return cycles


def lanes_of(width: int) -> list[tuple[Lane, Lane]]:
    return [(lane, out) for lane, out in COUNT_LANES if lane.bits <= width]


@pytest.mark.parametrize(("lane", "out_lane"), COUNT_LANES)
def test_runs_of_every_length_in_every_cycle(width: int, lane: Lane, out_lane: Lane) -> None:
    lane = min(lane, Lane(min(width, 64).bit_length() - 4))
    traffic = Traffic(width, random.Random(f"{width} {lane} {out_lane}"))
    longest = 5 * width // min(lane, out_lane).bits // 2
    step = max(longest // 24, 1)
    for size in range(1, longest, step):
        traffic.command(lane, out_lane, [size])
    traffic.check(compiled(Bench, width, ALL, OPS))


@pytest.mark.parametrize("between", BETWEEN)
def test_mixed_commands_back_to_back(width: int, stalls: Stalls, between: str) -> None:
    generator = random.Random(f"{width} {stalls.seed}")
    traffic = Traffic(width, generator, halves=0.2)
    for _ in range(40):
        if generator.random() < 0.2:
            traffic.passing(generator.choice(list(Lane)), generator.randint(1, 3))
        lane, out_lane = generator.choice(lanes_of(width))
        longest = 3 * width // min(lane, out_lane).bits
        runs = [generator.randint(1, longest) for _ in range(generator.randint(1, 3))]
        traffic.command(lane, out_lane, runs)
    traffic.check(compiled(Bench, width, ALL, OPS, between), stalls)


@pytest.mark.parametrize("stalls", STALLS[:2], ids=str)
@pytest.mark.parametrize("lane", Lane)
def test_a_circuit_of_one_lane(lane: Lane, stalls: Stalls) -> None:
    generator = random.Random(lane)
    traffic = Traffic(64, generator)
    for out_lane in (Lane.BITS_8, Lane.BITS_32) * 4:
        traffic.command(lane, out_lane, [generator.randint(1, 40), generator.randint(1, 9)])
    traffic.check(Bench(64, {lane}, {Op.COUNT}), stalls)


@pytest.mark.parametrize(
    ("lane", "out_lane", "beats_in", "beats_out"),
    [
        (Lane.BITS_8, Lane.BITS_8, 24, 24),
        (Lane.BITS_8, Lane.BITS_32, 24, 96),
        (Lane.BITS_16, Lane.BITS_32, 24, 48),
        (Lane.BITS_16, Lane.BITS_8, 24, 12),
        (Lane.BITS_32, Lane.BITS_8, 24, 6),
        (Lane.BITS_64, Lane.BITS_8, 24, 3),
        (Lane.BITS_64, Lane.BITS_32, 24, 12),
    ],
)
def test_the_side_with_more_beats_moves_one_a_cycle(
    lane: Lane, out_lane: Lane, beats_in: int, beats_out: int
) -> None:
    circuit = compiled(Bench, 64, ALL, OPS)
    beats = [
        {"data": 0, "lane": lane, "out_lane": out_lane, "edge": {"last": k == beats_in - 1}}
        for k in range(beats_in)
    ]
    beats[-1]["edge"]["final"] = 3
    source, sink = transfer(circuit, beats, beats_out)
    busier = sink.cycles if beats_out > beats_in else source.cycles
    assert busier == list(range(busier[0], busier[0] + max(beats_in, beats_out)))
    # An input beat is accepted with the last of its output beats.
    if beats_out >= beats_in:
        assert sink.cycles[0] == 1
    assert sink.cycles[-1] == source.cycles[-1] + 1


@pytest.mark.parametrize("stalls", STALLS[:2], ids=str)
def test_without_count_it_is_a_wire(stalls: Stalls) -> None:
    circuit = Bench(64, ALL, LOGIC_OPS)
    generator = random.Random(9)
    flags = ("last", "end", "error")
    edges = [{name: generator.random() < 0.3 for name in flags} for _ in range(60)]
    beats = [
        {"data": generator.getrandbits(64), "lane": k % 4, "out_lane": k % 4, "edge": edge}
        for k, edge in enumerate(edges)
    ]
    source, sink = transfer(circuit, beats, len(beats), stalls)
    assert sink.cycles == source.cycles
    for got, beat in zip(sink.payloads, beats, strict=True):
        assert (got.data, got.error) == (beat["data"], beat["edge"]["error"])


@pytest.mark.parametrize("good", range(8))
def test_a_beat_in_error_completes_what_it_is_a_part_of(good: int) -> None:
    """An error completes its output beat, because the remaining input beats may never arrive."""
    traffic = Traffic(64, random.Random(good))
    for _ in range(good):
        traffic._send(0, Lane.BITS_64, Lane.BITS_8)
    cycle = traffic._send(0, Lane.BITS_64, Lane.BITS_8, error=1)
    traffic._receive(Expected(error=True), cycle)
    traffic.check(compiled(Bench, 64, ALL, OPS))
