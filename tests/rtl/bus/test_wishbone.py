"""The Wishbone manager transfers every beat once, in the cycles that its docstring states."""

import random
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory as Storage

from bitlane_rtl.bus import BURSTS_PER_TURN, Wishbone, WishboneManager
from support.rtl.bursts import beats_to_write, bursts_of
from support.rtl.memory import Memory, WishboneMemory
from support.rtl.streams import Sink, Source, Stalls, compiled, later, simulate
from support.seeds import slow

SIZE = 1 << 12
BLOCK = 16
"""Beats of the longest burst."""

Burst = tuple[int, int]
"""The first beat, and the number of beats."""


def manager(width: int = 32, in_flight: int = 16, *, block_ram: bool = False) -> WishboneManager:
    return compiled(WishboneManager, 16, width, in_flight, block_ram=block_ram)


def memory(width: int, bad: range = range(0)) -> Memory:
    data = np.random.default_rng(width).integers(0, 256, SIZE, np.uint8)
    return Memory(data, width // 8, lambda address: address in bad)


def requests(bursts: Sequence[Burst], width: int = 32) -> list[dict[str, int]]:
    return [{"address": beat * width // 8, "length": length - 1} for beat, length in bursts]


def transfer(
    dut: WishboneManager,
    slave: WishboneMemory,
    width: int = 32,
    *,
    reads: Sequence[Burst] = (),
    writes: Sequence[Burst] = (),
    **options: Any,
) -> Any:
    """Run the bursts on ``dut`` before ``slave``; return the sources and sinks, by port."""
    ports = bursts_of(
        SimpleNamespace(a=dut.read, write=dut.write),
        a=requests(reads, width),
        write=requests(writes, width),
        **options,
    )
    due = sum(length for _, length in reads) + len(writes)

    async def falls(ctx: Any) -> None:
        await ctx.tick().repeat(2)
        assert not ctx.get(dut.bus.cyc), "CYC stays"

    def is_answered() -> bool:
        return due == sum(len(x.bits) for x in ports.values() if isinstance(x, Sink))

    simulate(dut, *ports.values(), later(falls, is_answered), background=[slave])
    return SimpleNamespace(**ports)


def drawn(rng: random.Random, count: int, low: int, high: int) -> list[Burst]:
    """Return bursts of beats ``low`` to ``high - 1`` that stay within blocks."""
    starts = [rng.randrange(low, high) for _ in range(count)]
    return [(start, rng.randint(1, BLOCK - start % BLOCK)) for start in starts]


@pytest.mark.parametrize(
    ("width", "in_flight", "block_ram"), [(32, 16, False), slow(64, 4, False), (128, 16, True)]
)
def test_reads_and_writes_at_once(
    stalls: Stalls, width: int, in_flight: int, block_ram: bool
) -> None:
    """Errors of any beat included; the writes go to another half than the reads."""
    rng = random.Random(f"{stalls} {width}")
    half = SIZE // 2 // (width // 8)
    bad = range(SIZE // 4, SIZE * 3 // 4)
    store = memory(width, bad)
    before = store.data.copy()
    reads, writes = drawn(rng, 40, 0, half), drawn(rng, 40, half, 2 * half)
    beats = beats_to_write(requests(writes, width), rng, width)
    dut = manager(width, in_flight, block_ram=block_ram)
    slave = WishboneMemory(dut.bus, store, rng.randint(1, 9), stalls)
    ran = transfer(dut, slave, width, reads=reads, writes=writes, beats=beats, stalls=stalls)
    model = Memory(before.copy(), width // 8, store.bad)
    expected = [
        (*model.read((beat + offset) * width // 8), offset == length - 1)
        for beat, length in reads
        for offset in range(length)
    ]
    found = [(x.data, bool(x.error), bool(x.last)) for x in ran.a.payloads]
    assert [x[1:] for x in found] == [x[1:] for x in expected]
    assert [x[0] for x in found if not x[1]] == [x[0] for x in expected if not x[1]]
    sent = iter(beats)
    failed = []
    for beat, length in writes:
        here = [next(sent) for _ in range(length)]
        outcomes = [
            model.write((beat + offset) * width // 8, x["data"], x["strobe"])
            for offset, x in enumerate(here)
        ]
        failed.append(any(outcomes))
    assert [bool(x) for x in ran.response.bits] == failed
    assert any(failed)
    assert not all(failed)
    assert np.array_equal(store.data, model.data)
    asked = [x for x in slave.requests if not x[1]]
    assert all(x[3] == (1 << width // 8) - 1 for x in asked), "a read without all bytes"
    assert slave.most <= in_flight


@pytest.mark.parametrize("block_ram", [False, True])
@pytest.mark.parametrize("latency", [1, 2, 11])
def test_n_beats_take_n_cycles_and_a_constant(latency: int, block_ram: bool) -> None:
    dut, blocks = manager(block_ram=block_ram), [(16 * i, 16) for i in range(5)]
    late = latency + 1 + block_ram
    slave = WishboneMemory(dut.bus, memory(32), latency)
    ran = transfer(dut, slave, reads=blocks)
    assert [x[0] for x in slave.requests] == list(range(1, 81))
    assert ran.a.cycles == list(range(late + 1, late + 81))
    slave = WishboneMemory(dut.bus, memory(32), latency)
    ran = transfer(dut, slave, writes=blocks)
    assert [x[0] for x in slave.requests] == list(range(1, 81))
    assert ran.beats.cycles == list(range(80))
    assert ran.response.cycles == [16 * (i + 1) + late for i in range(5)]


@pytest.mark.parametrize(("latency", "full"), [(12, True), (13, False)])
def test_the_latency_up_to_which_every_cycle_has_a_request(latency: int, full: bool) -> None:
    dut = manager()
    slave = WishboneMemory(dut.bus, memory(32), latency)
    transfer(dut, slave, reads=[(16 * i, 16) for i in range(5)])
    assert ([x[0] for x in slave.requests] == list(range(1, 81))) == full


def test_bursts_of_one_beat_follow_each_other_at_once() -> None:
    dut = manager()
    slave = WishboneMemory(dut.bus, memory(32))
    ran = transfer(dut, slave, reads=[(3 * i, 1) for i in range(40)])
    assert ran.a.cycles == list(range(3, 43))


@pytest.mark.parametrize("latency", [1, 5])
def test_a_change_of_direction_costs_a_round_trip(latency: int) -> None:
    dut = manager()
    slave = WishboneMemory(dut.bus, memory(32), latency)
    bursts = 2 * BURSTS_PER_TURN
    reads, writes = ([(first + 16 * i, 16) for i in range(bursts)] for first in (0, 512))
    transfer(dut, slave, reads=reads, writes=writes)
    turn = 16 * BURSTS_PER_TURN
    cycles = [x[0] for x in slave.requests]
    assert [x[1] for x in slave.requests] == [i // turn % 2 == 1 for i in range(4 * turn)]
    gaps = [after - before for before, after in pairwise(cycles)]
    expected = [latency + 2 if (i + 1) % turn == 0 else 1 for i in range(4 * turn - 1)]
    assert gaps == expected


@pytest.mark.parametrize("writes_first", [False, True])
def test_a_burst_that_has_begun_ends_before_the_direction_changes(writes_first: bool) -> None:
    """The other direction begins to wait in the middle of a burst after a whole turn."""
    dut = manager()
    slave = WishboneMemory(dut.bus, memory(32))
    counts = {False: 1, True: 1} | {writes_first: BURSTS_PER_TURN + 2}
    asked = {way: requests([(16 * i, 16) for i in range(n)]) for way, n in counts.items()}
    waits = {way: 1 + (way != writes_first) * (16 * BURSTS_PER_TURN + 8) for way in counts}
    beats = beats_to_write(asked[True], random.Random(0))
    simulate(
        dut,
        later(Source(dut.read.request, asked[False]), waits[False]),
        later(Source(dut.write.request, asked[True]), waits[True]),
        later(Source(dut.write.data, beats), waits[True]),
        Sink(dut.read.data, 16 * counts[False]),
        Sink(dut.write.response, counts[True]),
        background=[slave],
    )
    first = 16 * (BURSTS_PER_TURN + 1)
    expected = [writes_first] * first + [not writes_first] * 16 + [writes_first] * 16
    assert [x[1] for x in slave.requests] == expected


class Classic(wiring.Component):
    """The manager before a memory of classic cycles: ACK every second cycle, STALL until then."""

    def __init__(self) -> None:
        self.dut = WishboneManager(16, 32)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        m.submodules.storage = storage = Storage(shape=32, depth=SIZE // 4, init=range(SIZE // 4))
        read, write, bus = storage.read_port(), storage.write_port(granularity=8), self.dut.bus
        ack = Signal()
        m.d.sync += ack.eq(bus.cyc & bus.stb & ~ack)
        m.d.comb += [
            read.addr.eq(bus.adr[2:]),
            write.addr.eq(bus.adr[2:]),
            write.data.eq(bus.dat_w),
            write.en.eq(bus.sel & (ack & bus.stb & bus.we).replicate(4)),
            bus.dat_r.eq(read.data),
            bus.ack.eq(ack),
            bus.stall.eq(bus.cyc & ~ack),
        ]
        return m


def test_a_memory_of_classic_cycles_answers_in_the_cycle_of_the_request() -> None:
    circuit = compiled(Classic)
    dut = circuit.dut
    beats = [{"data": 1000 + i, "strobe": 15, "last": i in (15, 20)} for i in range(21)]
    responses = Sink(dut.write.response, 2)
    data = Sink(dut.read.data, 48)
    read = Source(dut.read.request, requests([(16 * i, 16) for i in range(3)]))
    simulate(
        circuit,
        Source(dut.write.request, requests([(16, 16), (32, 5)])),
        Source(dut.write.data, beats),
        responses,
        data,
        later(read, lambda: len(responses.bits) == 2),
    )
    assert responses.bits == [0, 0]
    expected = [*range(16), *range(1000, 1021), *range(37, 48)]
    assert [x.data for x in data.payloads] == expected
    assert data.cycles == list(range(data.cycles[0], data.cycles[0] + 96, 2))


def test_a_slow_memory_has_no_more_in_flight_than_the_parameter_says() -> None:
    dut = manager(in_flight=4)
    slave = WishboneMemory(dut.bus, memory(32), 30)
    transfer(dut, slave, reads=[(16 * i, 16) for i in range(3)])
    assert slave.most == 4


def test_reads_pass_a_write_that_lacks_data() -> None:
    """Y of a command waits for A: a write that has begun must not hold up the reads."""
    dut = manager()
    slave = WishboneMemory(dut.bus, memory(32))
    data, response = Sink(dut.read.data, 32), Sink(dut.write.response, 1)
    first, last = ({"data": 77 + beat, "strobe": 0xF, "last": beat} for beat in range(2))

    async def late(ctx: Any) -> None:
        await Source(dut.write.data, [first]).run(ctx)
        await later(Source(dut.write.data, [last]), lambda: len(data.bits) == 32)(ctx)

    simulate(
        dut,
        Source(dut.read.request, requests([(0, 16), (16, 16)])),
        Source(dut.write.request, requests([(512, 2)])),
        late,
        data,
        response,
        background=[slave],
    )
    assert response.bits == [0]


def test_the_signature_shows_its_widths() -> None:
    assert repr(Wishbone(14, 32)) == "Wishbone(14, 32)"
