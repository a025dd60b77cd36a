"""Queues pass on payloads in order, one per cycle, after a known latency."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.streams.queue import Credit, ForwardRegister, Hold, Queue, Skid, Slack, Wire
from support.rtl.streams import ALL_STALLS, NO_STALLS, Stalls, elaborated, simulate, transfer
from support.seeds import seeds

KINDS: dict[str, tuple[Callable[[], Skid | Slack | Queue], int, int]] = {
    # name: constructor of an 8-bit queue, payloads held, latency in cycles
    "skid": (lambda: Skid(8), 2, 1),
    "slack": (lambda: Slack(8), 1, 0),
    "depth 2": (lambda: Queue(8, 2), 2, 1),
    "depth 2, block RAM": (lambda: Queue(8, 2, block_ram=True), 2, 1),
    "depth 4": (lambda: Queue(8, 4), 4, 1),
    "depth 16": (lambda: Queue(8, 16), 16, 1),
    "depth 4, block RAM": (lambda: Queue(8, 4, block_ram=True), 4, 2),
    "depth 16, block RAM": (lambda: Queue(8, 16, block_ram=True), 16, 2),
    "depth 16, registered": (lambda: Queue(8, 16, registered=True), 16, 2),
}


def run(
    queue: Skid | Slack | Queue | ForwardRegister, cycles: int, inputs: Callable, outputs: Callable
) -> None:
    """Clock ``queue``; ``inputs()`` returns (valid, payload, o.ready) for a cycle, ``outputs(...)``
    gets (i.ready, o.valid, o.payload, level) of that same cycle."""

    async def bench(ctx: Any) -> None:
        for _ in range(cycles):
            valid, payload, ready = inputs()
            ctx.set(queue.i.valid, valid)
            ctx.set(queue.i.payload, payload)
            ctx.set(queue.o.ready, ready)
            level = ctx.get(queue.level) if isinstance(queue, Queue) else None
            outputs(ctx.get(queue.i.ready), ctx.get(queue.o.valid), ctx.get(queue.o.payload), level)
            await ctx.tick()

    simulate(queue, bench)


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_appears_after_the_stated_latency(kind: str) -> None:
    make, _, latency = KINDS[kind]
    seen: list[tuple[int, int]] = []
    feed = iter([(1, 0x5A, 0)] + [(0, 0, 0)] * 9)
    run(
        elaborated(make),
        10,
        lambda: next(feed),
        lambda _, valid, payload, __: seen.append((valid, payload)),
    )
    first = next(cycle for cycle, (valid, _) in enumerate(seen) if valid)
    assert first == latency
    assert all(entry == (1, 0x5A) for entry in seen[first:]), "not held until taken"


@pytest.mark.parametrize("kind", KINDS)
def test_it_moves_one_payload_a_cycle(kind: str) -> None:
    make, _, latency = KINDS[kind]
    feed = iter((1, cycle, 1) for cycle in range(100))
    taken: list[int] = []
    readies: list[int] = []

    def outputs(ready: int, valid: int, payload: int, level: int | None) -> None:
        readies.append(ready)
        if valid:
            taken.append(payload)

    run(elaborated(make), 100, lambda: next(feed), outputs)
    assert taken == list(range(100 - latency))
    assert all(readies)


@pytest.mark.parametrize("kind", KINDS)
def test_it_holds_exactly_its_depth(kind: str) -> None:
    make, depth, _ = KINDS[kind]
    accepted = 0
    levels: list[int | None] = []

    def outputs(ready: int, valid: int, payload: int, level: int | None) -> None:
        nonlocal accepted
        accepted += ready
        levels.append(level)

    run(elaborated(make), depth + 5, lambda: (1, 0, 0), outputs)
    assert accepted == depth
    if levels[0] is not None:
        assert levels == [min(cycle, depth) for cycle in range(depth + 5)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_queue_takes_one_in_the_cycle_after_one_left(kind: str) -> None:
    make, depth, latency = KINDS[kind]
    full = depth + latency
    inputs = iter((1, 0, cycle == full) for cycle in range(full + 3))
    readies: list[int] = []
    run(elaborated(make), full + 3, lambda: next(inputs), lambda ready, *_: readies.append(ready))
    assert readies[full:] == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_queue_empties_without_a_gap(kind: str) -> None:
    make, depth, latency = KINDS[kind]
    full = depth + latency
    inputs = iter((cycle < depth, cycle, cycle >= full) for cycle in range(full + depth + 3))
    taken: list[tuple[int, int]] = []
    run(
        elaborated(make),
        full + depth + 3,
        lambda: next(inputs),
        lambda _, valid, payload, __: taken.append((valid, payload)),
    )
    assert taken[full : full + depth] == [(1, payload) for payload in range(depth)]
    assert not any(valid for valid, _ in taken[full + depth :])


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_random_stalls_lose_double_and_reorder_nothing(kind: str, seed: int) -> None:
    make, depth, _ = KINDS[kind]
    rng = random.Random(seed)
    sent: list[int] = []
    received: list[int] = []
    offer: int | None = None
    taking = False
    held: tuple[int, int] | None = None
    rates = (0.5, 0.5)

    def inputs() -> tuple[int, int, int]:
        nonlocal offer, taking, rates
        if rng.random() < 0.02:  # long spells in which one side is the slower one
            rates = rng.choice([(0.9, 0.2), (0.2, 0.9), (0.5, 0.5), (1.0, 1.0)])
        if offer is None and rng.random() < rates[0]:
            offer = rng.randrange(256)
        taking = rng.random() < rates[1]
        return offer is not None, offer or 0, taking

    def outputs(ready: int, valid: int, payload: int, level: int | None) -> None:
        nonlocal offer, held
        if held is not None:
            assert (valid, payload) == held, f"seed {seed}: payload changed before it was taken"
        if level is not None:
            assert level == len(sent) - len(received), f"seed {seed}"
            assert ready == (level < depth), f"seed {seed}"
        held = (valid, payload) if valid and not taking else None
        if valid and taking:
            received.append(payload)
        if offer is not None and ready:
            sent.append(offer)
            offer = None

    run(elaborated(make), 800, inputs, outputs)
    assert received == sent[: len(received)], f"seed {seed}"
    assert len(sent) - len(received) <= depth, f"seed {seed}"
    assert len(received) > 150, f"seed {seed}: too few to say anything"


def test_a_payload_may_be_a_layout() -> None:
    queue = Queue(data.StructLayout({"low": 3, "high": 5}), 4)
    seen: list[tuple[int, int]] = []
    feed = iter([(1, {"low": 5, "high": 17}, 0), (0, {"low": 0, "high": 0}, 0)])

    def outputs(ready: int, valid: int, payload: data.Const, level: int | None) -> None:
        if valid:
            seen.append((payload.low, payload.high))

    run(queue, 2, lambda: next(feed), outputs)
    assert seen == [(5, 17)]


@pytest.mark.parametrize("depth", [0, 1, 3, 12])
def test_a_depth_that_is_no_power_of_two_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=f"depth: {depth} is no power of two"):
        Queue(8, depth)


@pytest.mark.parametrize(("registered", "latency"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("depth", [4, 16])
def test_with_credit_it_keeps_what_fits(depth: int, registered: bool, latency: int) -> None:
    """The queue is filled to its depth and emptied without a gap, repeatedly, and half filled."""
    payloads = iter(range(1 << 8))
    received: list[int] = []
    counts: list[int] = []
    schedule: list[tuple[int, int]] = []
    for filled in (depth, depth, 1, depth - 1, depth // 2) * 2:
        schedule += [(1, 0)] * filled + [(0, 0)] * (latency - 1) + [(0, 1)] * filled + [(1, 1)] * 3
        schedule += [(0, 1)] * (latency + 1)
    feed = iter(schedule)
    sent: list[int] = []
    taking = 0

    def inputs() -> tuple[int, int, int]:
        nonlocal taking
        valid, taking = next(feed)
        if valid:
            sent.append(next(payloads))
        return valid, sent[-1] if valid else 0xEE, taking

    def outputs(ready: int, valid: int, payload: int, level: int | None) -> None:
        assert ready
        if valid and taking:
            received.append(payload)
        counts.append(len(sent) - len(received))

    queue = Queue(8, depth, registered=registered, credit=True)
    run(queue, len(schedule), inputs, outputs)
    assert received == sent
    assert max(counts) == depth


def test_credit_needs_a_depth_of_4() -> None:
    with pytest.raises(ValueError, match="depth: 2 is no power of two, 4 or more"):
        Queue(8, 2, credit=True)


def test_hold_passes_a_payload_every_second_cycle() -> None:
    hold = Hold(8)
    source, sink = transfer(hold, range(20), 20)
    assert sink.payloads == list(range(20))
    assert sink.cycles == [cycle + 1 for cycle in source.cycles]
    assert sink.cycles == list(range(1, 41, 2))


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_hold_loses_doubles_and_reorders_nothing(seed: int) -> None:
    hold = Hold(8)
    _, sink = transfer(hold, range(200), 200, Stalls(seed=seed, probability=0.5, longest=3))
    assert sink.payloads == list(range(200))


THROUGH: dict[str, tuple[Callable[[], Wire | ForwardRegister], int]] = {
    "wire": (lambda: Wire(8), 0),
    "register": (lambda: ForwardRegister(8), 1),
}


@pytest.mark.parametrize("stalls", ALL_STALLS)
@pytest.mark.parametrize("kind", THROUGH)
def test_wire_and_register_lose_double_and_reorder_nothing(kind: str, stalls: Stalls) -> None:
    make, latency = THROUGH[kind]
    dut = elaborated(make)
    source, sink = transfer(dut, range(200), 200, stalls)
    assert sink.payloads == list(range(200))
    if not latency:
        assert sink.cycles == source.cycles
    if stalls == NO_STALLS:
        assert source.cycles == list(range(200))
        assert sink.cycles == [cycle + latency for cycle in source.cycles]


def test_a_full_register_takes_the_next_payload_when_its_own_goes() -> None:
    found: list[tuple[int, int, int]] = []
    feed = iter([(1, 1, 0), (1, 2, 0), (1, 2, 1)])
    run(ForwardRegister(8), 3, lambda: next(feed), lambda *seen: found.append(seen[:3]))
    assert [ready for ready, _, _ in found] == [1, 0, 1]
    assert [(valid, payload) for _, valid, payload in found[1:]] == [(1, 1), (1, 1)]


class Credited(wiring.Component):
    """``way`` registers without back-pressure, a queue of ``depth``, and the credits of both."""

    i: stream.Interface
    o: stream.Interface

    def __init__(self, depth: int, way: int, *, registered: bool = False) -> None:
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})
        self._depth = depth
        self._way = way
        self._registered = registered

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.credit = credit = Credit(self._depth)
        m.submodules.first = first = Wire(8)
        queue = Queue(8, self._depth, credit=True, registered=self._registered)
        source = first.o
        for unit in (*(ForwardRegister(8) for _ in range(self._way)), queue):
            m.submodules += unit
            wiring.connect(m, source, unit.i)
            source = unit.o
        wiring.connect(m, source, wiring.flipped(self.o))
        m.d.comb += [
            first.i.payload.eq(self.i.payload),
            first.i.valid.eq(self.i.valid & credit.room),
            self.i.ready.eq(credit.room),
            credit.taken.eq(self.i.valid & credit.room),
            credit.returned.eq(self.o.valid & self.o.ready),
        ]
        return m


@pytest.mark.parametrize("stalls", ALL_STALLS)
@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize(("depth", "way"), [(4, 0), (4, 1), (16, 4), (16, 13)])
def test_nothing_is_lost_on_a_credited_way(
    depth: int, way: int, registered: bool, stalls: Stalls
) -> None:
    dut = elaborated(Credited, depth, way, registered=registered)
    source, sink = transfer(dut, range(256), 256, stalls)
    assert sink.payloads == list(range(256))
    for count, left in enumerate(sink.cycles, 1):
        assert sum(cycle <= left for cycle in source.cycles) <= count + depth - 1
    # A credit returns after its payload has passed the registers and the queue.
    between = way + 1 + registered
    if stalls == NO_STALLS and between <= depth - 2:
        assert sink.cycles == list(range(between, 256 + between))


@pytest.mark.parametrize("depth", [4, 16])
def test_a_credit_that_is_returned_can_be_taken_two_cycles_later(depth: int) -> None:
    credit = Credit(depth)
    rooms: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(credit.taken, 1)
        for _ in range(depth):
            rooms.append(ctx.get(credit.room))
            await ctx.tick()
        ctx.set(credit.taken, 0)
        for returned in (0, 1, 0, 0, 0):
            ctx.set(credit.returned, returned)
            rooms.append(ctx.get(credit.room))
            await ctx.tick()

    simulate(credit, bench)
    assert rooms == [1] * depth + [0, 0, 0, 1, 1]


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_credits_are_counted_whatever_comes_and_goes(seed: int) -> None:
    rng = random.Random(seed)
    credit = Credit(8)
    under_way = returned = 0

    async def bench(ctx: Any) -> None:
        nonlocal under_way, returned
        for _ in range(600):
            room = ctx.get(credit.room)
            assert room == (under_way < 8), f"seed {seed}"
            takes = room and rng.random() < 0.6
            gives = under_way > returned and rng.random() < 0.5
            ctx.set(credit.taken, takes)
            ctx.set(credit.returned, gives)
            under_way += takes - returned
            returned = gives
            await ctx.tick()

    simulate(credit, bench)
