"""Stream buffers pass on payloads in order, at full rate, after a known latency.

The helpers of all tests with streams must see every breach of the stream contract. Counts of
credits are proven in `tests/formal/test_stream_buffers.py`.
"""

import random
import re
from collections.abc import Callable, Iterable
from itertools import accumulate, count
from operator import sub
from typing import Any, NamedTuple

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.streams import (
    Credit,
    Fifo,
    ForwardRegister,
    HalfRateRegister,
    PingPongBuffer,
    ReverseRegister,
    SkidBuffer,
    StreamBuffer,
    TwoWriteFifo,
    Wire,
)
from support.rtl.streams import (
    NO_STALLS,
    STALLS,
    Sink,
    Source,
    Stalls,
    clocked,
    compiled,
    simulate,
    transfer,
)
from support.seeds import seeds

KINDS: dict[str, tuple[Callable[[], StreamBuffer], int, int]] = {
    # name: constructor of an 8-bit buffer, payloads held, latency in cycles
    "skid buffer": (lambda: SkidBuffer(8), 2, 1),
    "ping-pong buffer": (lambda: PingPongBuffer(8), 2, 1),
    "reverse register": (lambda: ReverseRegister(8), 1, 0),
    "depth 2": (lambda: Fifo(8, 2), 2, 1),
    "depth 2, block RAM": (lambda: Fifo(8, 2, block_ram=True), 2, 1),
    "depth 4": (lambda: Fifo(8, 4), 4, 1),
    "depth 16": (lambda: Fifo(8, 16), 16, 1),
    "depth 4, block RAM": (lambda: Fifo(8, 4, block_ram=True), 4, 2),
    "depth 16, block RAM": (lambda: Fifo(8, 16, block_ram=True), 16, 2),
    "depth 16, registered": (lambda: Fifo(8, 16, registered=True), 16, 2),
}


class Seen(NamedTuple):
    """The outputs of a buffer in a cycle; ``level`` is None if it has none."""

    ready: int
    valid: int
    payload: Any
    level: int | None = None


def run(buffer: StreamBuffer, inputs: Iterable[tuple[int, Any, int]]) -> list[Seen]:
    """Clock ``buffer`` with (valid, payload, o.ready) of each cycle; return its outputs."""
    names = ("i.valid", "i.payload", "o.ready")
    given = [dict(zip(names, cycle, strict=True)) for cycle in inputs]
    levels = ["level"] if isinstance(buffer, Fifo) else []
    outputs = clocked(buffer, given, "i.ready", "o.valid", "o.payload", *levels)
    return [Seen(*cycle) for cycle in zip(*outputs, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_appears_after_the_stated_latency(kind: str) -> None:
    make, _, latency = KINDS[kind]
    seen = run(compiled(make), [(1, 0x5A, 0)] + [(0, 0, 0)] * 9)
    assert [each.valid for each in seen] == [0] * latency + [1] * (10 - latency)
    assert {each.payload for each in seen[latency:]} == {0x5A}, "not held until taken"


@pytest.mark.parametrize("kind", KINDS)
def test_it_moves_one_payload_a_cycle(kind: str) -> None:
    make, _, latency = KINDS[kind]
    seen = run(compiled(make), [(1, cycle, 1) for cycle in range(100)])
    assert [each.payload for each in seen if each.valid] == list(range(100 - latency))
    assert all(each.ready for each in seen)


@pytest.mark.parametrize("kind", KINDS)
def test_it_holds_exactly_its_depth(kind: str) -> None:
    make, depth, _ = KINDS[kind]
    seen = run(compiled(make), [(1, 0, 0)] * (depth + 5))
    assert sum(each.ready for each in seen) == depth
    if seen[0].level is not None:
        assert [each.level for each in seen] == [min(cycle, depth) for cycle in range(depth + 5)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_buffer_takes_one_in_the_cycle_after_one_left(kind: str) -> None:
    make, depth, latency = KINDS[kind]
    full = depth + latency
    seen = run(compiled(make), [(1, 0, cycle == full) for cycle in range(full + 3)])
    assert [each.ready for each in seen[full:]] == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_buffer_empties_without_a_gap(kind: str) -> None:
    make, depth, latency = KINDS[kind]
    full = depth + latency
    inputs = [(cycle < depth, cycle, cycle >= full) for cycle in range(full + depth + 3)]
    taken = [(each.valid, each.payload) for each in run(compiled(make), inputs)[full:]]
    assert taken[:depth] == [(1, payload) for payload in range(depth)]
    assert not any(valid for valid, _ in taken[depth:])


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_random_stalls_lose_double_and_reorder_nothing(kind: str, seed: int) -> None:
    make, depth, _ = KINDS[kind]
    dut = compiled(make)
    # Stalls are long, so that each side is the slower one for a while.
    stalls = Stalls(seed=seed, probability=0.2, longest=16)
    source, sink = Source(dut.i, range(250), stalls), Sink(dut.o, 250, stalls)
    levels: list[tuple[int, int]] = []

    async def watch(ctx: Any) -> None:
        while isinstance(dut, Fifo):
            _, _, ready, level = await ctx.tick().sample(dut.i.ready, dut.level)
            levels.append((ready, level))

    simulate(dut, source, sink, background=[watch])
    assert sink.payloads == list(range(250)), f"seed {seed}"
    for cycle, shown in enumerate(levels):
        entered, left = (sum(at < cycle for at in side.cycles) for side in (source, sink))
        assert shown == (entered - left < depth, entered - left), f"seed {seed}, cycle {cycle}"


def test_a_payload_may_be_a_layout() -> None:
    buffer = Fifo(data.StructLayout({"low": 3, "high": 5}), 4)
    _, second = run(buffer, [(1, {"low": 5, "high": 17}, 0), (0, {"low": 0, "high": 0}, 0)])
    assert (second.valid, second.payload.low, second.payload.high) == (1, 5, 17)


@pytest.mark.parametrize(
    ("depth", "options", "style"),
    [
        (16, {}, None),
        (32, {}, "distributed"),
        (32, {"block_ram": True}, None),
        (4, {"registered": True}, None),
        (8, {"registered": True}, "distributed"),
    ],
)
def test_deep_storage_is_kept_out_of_block_ram(
    depth: int, options: dict[str, bool], style: str | None
) -> None:
    """Yosys chooses the storage of a shallow one, so that it fits devices without LUT RAM."""
    netlist = rtlil.convert(Fifo(8, depth, **options))
    assert re.findall(r'ram_style "(.*)"', netlist) == [style] * (style is not None)


@pytest.mark.parametrize(("registered", "latency"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("depth", [4, 16])
def test_with_credit_it_keeps_what_fits(depth: int, registered: bool, latency: int) -> None:
    """The FIFO is filled to its depth and emptied without a gap, repeatedly, and half filled."""
    schedule: list[tuple[int, int]] = []
    for filled in (depth, depth, 1, depth - 1, depth // 2) * 2:
        schedule += [(1, 0)] * filled + [(0, 0)] * (latency - 1) + [(0, 1)] * filled + [(1, 1)] * 3
        schedule += [(0, 1)] * (latency + 1)
    number = count()
    inputs = [(valid, next(number) if valid else 0xEE, taking) for valid, taking in schedule]
    seen = run(Fifo(8, depth, registered=registered, credit=True), inputs)
    assert all(each.ready for each in seen)
    enters = [valid for valid, _ in schedule]
    leaves = [each.valid and taking for each, (_, taking) in zip(seen, schedule, strict=True)]
    received = [each.payload for each, left in zip(seen, leaves, strict=True) if left]
    assert received == list(range(sum(enters)))
    assert max(accumulate(map(sub, enters, leaves))) == depth


THROUGH: dict[str, tuple[Callable[[], StreamBuffer], int, int]] = {
    # name: constructor of an 8-bit buffer, latency, cycles from one payload to the next
    "wire": (lambda: Wire(8), 0, 1),
    "register": (lambda: ForwardRegister(8), 1, 1),
    "half-rate register": (lambda: HalfRateRegister(8), 1, 2),
}


@pytest.mark.parametrize("kind", THROUGH)
def test_wire_and_registers_lose_double_and_reorder_nothing(kind: str, stalls: Stalls) -> None:
    make, latency, period = THROUGH[kind]
    source, sink = transfer(compiled(make), range(200), 200, stalls)
    assert sink.payloads == list(range(200))
    if not latency:
        assert sink.cycles == source.cycles
    if stalls == NO_STALLS:
        assert source.cycles == list(range(0, 200 * period, period))
        assert sink.cycles == [cycle + latency for cycle in source.cycles]


def test_a_full_register_takes_the_next_payload_when_its_own_goes() -> None:
    seen = run(ForwardRegister(8), [(1, 1, 0), (1, 2, 0), (1, 2, 1)])
    assert [each.ready for each in seen] == [1, 0, 1]
    assert [(each.valid, each.payload) for each in seen[1:]] == [(1, 1), (1, 1)]


class Credited(wiring.Component):
    """``way`` registers without back-pressure, a FIFO of ``depth``, and the credits of both."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def __init__(self, depth: int, way: int, *, registered: bool = False) -> None:
        super().__init__()
        self._depth = depth
        self._way = way
        self._registered = registered

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.credit = credit = Credit(self._depth)
        m.submodules.first = first = Wire(8)
        buffer = Fifo(8, self._depth, credit=True, registered=self._registered)
        source = first.o
        for unit in (*(ForwardRegister(8) for _ in range(self._way)), buffer):
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


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize(("depth", "way"), [(4, 0), (4, 1), (16, 4), (16, 13)])
def test_nothing_is_lost_on_a_credited_way(
    depth: int, way: int, registered: bool, stalls: Stalls
) -> None:
    dut = compiled(Credited, depth, way, registered=registered)
    source, sink = transfer(dut, range(256), 256, stalls)
    assert sink.payloads == list(range(256))
    for number, left in enumerate(sink.cycles, 1):
        assert sum(cycle <= left for cycle in source.cycles) <= number + depth - 1
    # A credit returns after its payload has passed the registers and the FIFO.
    between = way + 1 + registered
    if stalls == NO_STALLS and between <= depth - 2:
        assert sink.cycles == list(range(between, 256 + between))


@pytest.mark.parametrize("depth", [4, 16])
def test_a_credit_that_is_returned_can_be_taken_two_cycles_later(depth: int) -> None:
    inputs = [{"taken": 1}] * depth
    inputs += [{"taken": 0, "returned": returned} for returned in (0, 1, 0, 0, 0)]
    (rooms,) = clocked(Credit(depth), inputs, "room")
    assert rooms == (1,) * depth + (0, 0, 0, 1, 1)


# --- FIFOs with two write ports -------------------------------------------------------------------


DEPTH = 8


def test_payloads_leave_in_order_and_fill_every_place(stalls: Stalls) -> None:
    """The source fills the FIFO up; payloads are valid two cycles after entry at the earliest."""
    generator = random.Random(stalls.seed)
    payloads = [generator.getrandbits(16) for _ in range(300)]
    dut = TwoWriteFifo(16, DEPTH)
    sink = Sink(dut.o, len(payloads), stalls)
    entered: list[int] = []

    async def fill(ctx: Any) -> None:
        cycle = 0
        while len(entered) < len(payloads):
            left = sum(done < cycle for done in sink.cycles)
            room = min(DEPTH - len(entered) + left, len(payloads) - len(entered))
            number = min(room, generator.choice((0, 1, 2, 2)))
            for i in dut.i:
                ctx.set(i.valid, 0)
                ctx.set(i.payload, generator.getrandbits(16))
            for _ in range(number):
                entrance = dut.i[len(entered) % 2]
                ctx.set(entrance.valid, 1)
                ctx.set(entrance.payload, payloads[len(entered)])
                entered.append(cycle)
            await ctx.tick()
            cycle += 1
        for i in dut.i:
            ctx.set(i.valid, 0)

    simulate(dut, sink, fill)
    assert sink.payloads == payloads, stalls
    earliest = [cycle + 2 for cycle in entered]
    assert all(cycle >= first for cycle, first in zip(sink.cycles, earliest, strict=True)), stalls
    if not stalls.probability:
        due = -1
        for cycle, first in zip(sink.cycles, earliest, strict=True):
            due = max(first, due + 1)
            assert cycle == due, stalls


# --- the helpers ----------------------------------------------------------------------------------


class Register(wiring.Component):
    """A one-deep pipeline register, with a bug to plant."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def __init__(self, bug: str = "") -> None:
        super().__init__()
        self._bug = bug

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        with m.Elif(self._bug == "withdraws"):
            m.d.sync += self.o.valid.eq(0)
        with m.Elif(self._bug == "changes"):
            m.d.sync += self.o.payload.eq(self.o.payload + 1)
        return m


class Repeater(wiring.Component):
    """Never stops sending."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.i.ready.eq(1), self.o.valid.eq(1)]
        return m


def test_payloads_arrive_in_order(stalls: Stalls) -> None:
    circuit = Register()
    sent = list(range(100))
    source, sink = transfer(circuit, sent, len(sent), stalls)
    assert sink.payloads == sent
    assert all(got > put for put, got in zip(source.cycles, sink.cycles, strict=True))
    if stalls is NO_STALLS:
        assert source.cycles == list(range(100))
        assert sink.cycles == list(range(1, 101))


@pytest.mark.parametrize(
    ("bug", "message"),
    [("withdraws", "withdrawn"), ("changes", "changed"), ("repeats", "more than")],
)
def test_a_breach_of_the_contract_is_seen(bug: str, message: str) -> None:
    circuit = Repeater() if bug == "repeats" else Register(bug)
    with pytest.raises(AssertionError, match=message):
        transfer(circuit, range(50), 50, STALLS[1])


def test_a_circuit_that_hangs_meets_the_deadline() -> None:
    circuit = Register()
    with pytest.raises(AssertionError, match="not finished after 100 cycles"):
        simulate(circuit, Source(circuit.i, range(3)), Sink(circuit.o, 4), deadline=100)


def test_a_circuit_without_registers_can_be_simulated() -> None:
    class Inverter(Elaboratable):
        i = Signal(8)
        o = Signal(8)

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.d.comb += self.o.eq(~self.i)
            return m

    assert clocked(Inverter(), [{"i": 0x5A}], "o") == [(0xA5,)]
