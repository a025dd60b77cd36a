"""Packets of a stream unit: random ones, and those that the unit has to give, by the oracle.

Shares nothing with the unit but its codes and its layouts.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat

from bitlane_rtl.abi import BIT_OPS, Lane, Op
from bitlane_rtl.stream_unit import PacketReduction, StreamConfiguration, StreamUnit
from support.oracle import computed
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, simulate, to_bits

REFUSED, UNEQUAL, HOLES, EMPTY = (1 << bit for bit in range(4))
"""Bits of the flags."""


@dataclass(frozen=True)
class Beat:
    """A beat: ``data``, and a bit of ``keep`` for each byte of it."""

    data: int
    keep: int
    user: int = 0


Packet = Sequence[Beat]


@dataclass
class Result:
    """A beat of results: ``data`` without null bytes, and what goes with it."""

    data: int
    keep: int
    last: bool
    user: int
    flags: int


def control(op: Op, lane: Lane = Lane.BITS_8, **other: int) -> dict[str, int]:
    """Return control inputs: all that are not in ``other`` are 0, and ``out_lane`` is ``lane``."""
    inputs = {"op": op, "lane": lane, "out_lane": lane, "reduction": PacketReduction.NONE}
    return inputs | dict.fromkeys(("saturate", "arithmetic", "test", "negate"), 0) | other


def is_refused(config: StreamConfiguration, inputs: dict[str, int]) -> bool:
    """Return whether the unit cannot do this."""
    op, reduction = inputs["op"], inputs["reduction"]
    if op not in config.ops or reduction not in list(PacketReduction):
        return True
    code, lane, out_lane = Op(op), inputs["lane"], inputs["out_lane"]
    if not code.counts and (reduction or inputs["test"]):
        return True
    if inputs["negate"] and not inputs["test"] and reduction != PacketReduction.ANY:
        return True
    if inputs["test"] and reduction == PacketReduction.ANY:
        return True
    if code.counts and not reduction:
        fits = out_lane in {lane, Lane.BITS_8, Lane.BITS_32} and out_lane <= lane
        return lane not in config.lanes or not fits
    if code.splits_lanes and (inputs["test"] or not reduction):
        return lane not in config.lanes
    return False


def reads_b(op: int) -> bool:
    """Return whether a packet takes one of B, even if it is refused."""
    return op in list(BIT_OPS) and Op(op).reads_b


def results(
    config: StreamConfiguration, inputs: dict[str, int], a: Packet, b: Packet | None
) -> list[Result]:
    """Return the beats of the packet of results; ``b`` is None for operations of one operand."""
    size, refused = config.data_bytes, is_refused(config, inputs)
    op, lane = inputs["op"], Lane(inputs["lane"])
    bytewise = refused or not Op(op).splits_lanes or (inputs["reduction"] and not inputs["test"])
    step = 1 if bytewise else lane.bytes
    flags, some = refused * REFUSED, False
    found: list[Result] = []
    elements: list[list[int | None]] = []
    length = len(a) if b is None else min(len(a), len(b))
    for index in range(length):
        last, whole, keep = index == length - 1, (1 << size) - 1, a[index].keep
        if b is not None:
            keep &= b[index].keep
            ends = index == len(a) - 1, index == len(b) - 1
            flags |= UNEQUAL * (ends[0] != ends[1] or a[index].keep != b[index].keep)
        mask = (1 << step) - 1
        kept = sum(mask << at for at in range(0, size, step) if keep >> at & mask == mask)
        prefix = keep & (keep + 1) == 0
        flags |= HOLES * (not prefix or (not last and keep != whole) or kept != keep)
        some |= keep != 0
        flags |= EMPTY * (last and not some)
        words = a[index].data, 0 if b is None else b[index].data
        beat = [
            _element(op, inputs, 8 * step, *(w >> 8 * at & (1 << 8 * step) - 1 for w in words))
            if kept >> at & 1 and not refused
            else None
            for at in range(0, size, step)
        ]
        elements.append(beat)
        found.append(_beat(beat, step, last, a[index].user, flags))
    if refused or not Op(op).counts:
        return found
    if inputs["reduction"]:
        return [_reduced(inputs, elements, found[-1])]
    out_lane = Lane(inputs["out_lane"])
    ratio = lane.bytes // out_lane.bytes
    narrowed = []
    for first in range(0, length, ratio):
        group, end = elements[first : first + ratio], found[first : first + ratio][-1]
        flat = [each for beat in group for each in beat]
        narrowed.append(_beat(flat, out_lane.bytes, end.last, end.user, end.flags))
    return narrowed


def _element(op: int, inputs: dict[str, int], bits: int, a: int, b: int) -> int:
    names = ("saturate", "arithmetic", "test", "negate")
    options: dict[str, Any] = {name: bool(inputs[name]) for name in names}
    if inputs["reduction"] == PacketReduction.ANY:
        options["negate"] = False
    return computed(Op(op), bits, a, b, **options)


def _beat(elements: Sequence[int | None], size: int, last: bool, user: int, flags: int) -> Result:
    data = keep = 0
    for number, element in enumerate(elements):
        if element is not None:
            data |= element << 8 * size * number
            keep |= ((1 << size) - 1) << size * number
    return Result(data, keep, last, user, flags)


def _reduced(
    inputs: dict[str, int], elements: Sequence[Sequence[int | None]], end: Result
) -> Result:
    total = sum(each or 0 for beat in elements for each in beat)
    if inputs["reduction"] == PacketReduction.ANY:
        return Result((total == 0) == inputs["negate"], 0b1, True, end.user, end.flags)
    return Result(total & 0xFFFF_FFFF, 0b1111, True, end.user, end.flags)


@dataclass
class Traffic:
    """Packets for a unit, and the packets that it has to give."""

    config: StreamConfiguration
    generator: random.Random
    a: list[dict[str, Any]] = field(default_factory=list)
    b: list[dict[str, Any]] = field(default_factory=list)
    controls: list[dict[str, int]] = field(default_factory=list)
    expected: list[Result] = field(default_factory=list)

    def add(self, inputs: dict[str, int], a: Packet, b: Packet | None = None) -> None:
        """Add a packet of A, and one of B if the operation has two operands."""
        self.a += _payloads(a)
        self.controls += [inputs] * len(a)
        if b is not None:
            self.b += [{**beat, "user": 0} for beat in _payloads(b)]
        self.expected += results(self.config, inputs, a, b)

    def random(self, inputs: dict[str, int], *, longest: int = 5, faults: float = 0.0) -> None:
        """Add a packet of up to ``longest`` beats, with ``faults`` in so many of all packets."""
        generator, bad = self.generator, self.generator.random() < faults
        beats = generator.randint(1, longest)
        rest = self._rest(inputs, bad)
        a = self._packet(beats, rest, bad)
        if not (self.config.has_b and reads_b(inputs["op"])):
            self.add(inputs, a)
            return
        if bad and generator.random() < 0.6:
            beats, rest = generator.randint(1, longest), self._rest(inputs, bad)
        b = self._packet(beats, rest, False)
        if not bad or generator.random() < 0.3:
            keeps = [beat.keep for beat in a] + [(1 << self.config.data_bytes) - 1] * len(b)
            b = [Beat(beat.data, keep) for beat, keep in zip(b, keeps, strict=False)]
        self.add(inputs, a, b)

    def _rest(self, inputs: dict[str, int], bad: bool) -> int:
        """Return the bytes of a last beat: whole elements, unless ``bad``."""
        size = self.config.data_bytes
        lane = Lane(inputs["lane"])
        step = lane.bytes if lane.bytes <= size and not bad else 1
        return self.generator.randrange(0 if bad else step, size + 1, step)

    def _packet(self, beats: int, rest: int, bad: bool) -> Packet:
        generator, config = self.generator, self.config
        keeps = [(1 << config.data_bytes) - 1] * (beats - 1) + [(1 << rest) - 1]
        if bad and generator.random() < 0.5:
            keeps[generator.randrange(beats)] = generator.getrandbits(config.data_bytes)
        return [
            Beat(
                self._data(),
                keep,
                generator.getrandbits(config.user_width) if config.user_width else 0,
            )
            for keep in keeps
        ]

    def _data(self) -> int:
        """Return random data of which many bytes, and some beats, are 0 or 1."""
        generator, size = self.generator, self.config.data_bytes
        if generator.random() < 0.2:
            return 0
        return int.from_bytes(
            generator.choice((0, 1, 255, *generator.randbytes(3))) for _ in range(size)
        )

    def random_control(self, *, wrong: float = 0.0) -> dict[str, int]:
        """Return control inputs that the unit can do, or random ones."""
        generator, config = self.generator, self.config
        asks_for_anything = generator.random() < wrong
        while True:
            inputs = {
                name: generator.getrandbits(bits) if bits else 0
                for name, bits in config.control.items()
            }
            if not config.control["op"]:
                inputs["op"] = next(iter(config.ops))
            if asks_for_anything or not is_refused(config, inputs):
                return inputs


def _payloads(packet: Packet) -> list[dict[str, Any]]:
    return [
        {"data": x.data, "keep": x.keep, "user": x.user, "last": number == len(packet) - 1}
        for number, x in enumerate(packet)
    ]


def exchange(
    unit: StreamUnit,
    traffic: Traffic,
    stalls: Stalls = NO_STALLS,
    *,
    stalls_of_b: Stalls | None = None,
) -> tuple[dict[str, Source], Sink]:
    """Send all packets of ``traffic`` through ``unit`` and compare the results.

    After the first beat of a packet its control inputs are rubbish. Returns the sources and the
    sink, which know the cycles.
    """
    generator = random.Random(len(traffic.a))
    layout, beat = unit.control.shape(), unit.a.p.shape()
    first, payloads = True, []
    for payload, inputs in zip(traffic.a, traffic.controls, strict=True):
        fields = {name: inputs[name] for name, bits in traffic.config.control.items() if bits}
        bits = to_bits(layout, fields) if first else generator.getrandbits(layout.size)
        payloads.append(bits << beat.size | to_bits(beat, payload))
        first = payload["last"]
    stream = SimpleNamespace(
        payload=Cat(unit.a.payload.as_value(), unit.control.as_value()),
        valid=unit.a.valid,
        ready=unit.a.ready,
    )
    sources = {"a": Source(stream, payloads, stalls, "a")}
    if traffic.config.has_b:
        sources["b"] = Source(unit.b, traffic.b, stalls_of_b or stalls, "b")
    sink = Sink(unit.y, len(traffic.expected), stalls)
    simulate(unit, *sources.values(), sink)
    for number, (found, want) in enumerate(zip(sink.payloads, traffic.expected, strict=True)):
        mask = sum(0xFF << 8 * k for k in range(traffic.config.data_bytes) if want.keep >> k & 1)
        flags = found.flags.as_bits()
        shown = Result(found.data & mask, found.keep, bool(found.last), int(found.user), flags)
        assert shown == want, f"beat {number}, {stalls}"
    return sources, sink
