"""One memory port serves two readers and a writer, a word in every cycle that has work."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from bitlane_rtl.bus.sram import SramPort
from support.rtl.bursts import (
    BASE,
    WORDS,
    blocks,
    bursts_of,
    check_at_random,
    filled,
    transfer_bursts,
)
from support.rtl.streams import ALL_STALLS, Stalls, compiled, simulate


class Circuit(wiring.Component):
    """The port before a memory, of which the lower half is filled."""

    def __init__(self, read_ports: int = 2, data_width: int = 32) -> None:
        self.dut = SramPort(32, data_width, WORDS, read_ports=read_ports)
        self.accesses = Signal(32)
        self._data_width = data_width
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        init = [filled(index) for index in range(WORDS // 2)]
        storage = Memory(shape=self._data_width, depth=WORDS, init=init)
        m.submodules.storage = storage
        read, write, bus = storage.read_port(), storage.write_port(granularity=8), self.dut.memory
        was_read = Signal()
        reads = bus.enable & ~bus.strobe.any()
        m.d.sync += [was_read.eq(reads), self.accesses.eq(self.accesses + bus.enable)]
        m.d.comb += [
            read.addr.eq(bus.address),
            read.en.eq(reads),
            write.addr.eq(bus.address),
            write.data.eq(bus.write_data),
            write.en.eq(bus.strobe & bus.enable.replicate(len(bus.strobe))),
            bus.read_data.eq(0xDEADBEEF),
        ]
        with m.If(was_read):
            m.d.comb += bus.read_data.eq(read.data)
        return m


class Holder:
    """Holds the memory at random, and fails if it is accessed meanwhile."""

    def __init__(self, dut: SramPort, probability: float) -> None:
        self._dut = dut
        self._probability = probability
        self._rng = random.Random(0)

    async def run(self, ctx: Any) -> None:
        while True:
            hold = self._rng.random() < self._probability
            ctx.set(self._dut.hold, hold)
            _, _, enable = await ctx.tick().sample(self._dut.memory.enable)
            assert not (hold and enable), "an access while another has the memory"


@pytest.mark.parametrize("holds", [0, 0.3], ids=["alone", "held"])
@pytest.mark.parametrize("read_ports", [1, 2])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_reads_and_writes_reach_the_right_bytes(
    stalls: Stalls, read_ports: int, holds: float
) -> None:
    circuit = compiled(Circuit, read_ports)
    holder = Holder(circuit.dut, holds)
    check_at_random(circuit, read_ports, stalls, background=[holder])


def test_a_word_is_accessed_at_once_and_comes_a_cycle_later() -> None:
    ran = transfer_bursts(compiled(Circuit), a=[{"address": BASE + 40, "length": 1}])
    assert ran.ask_a.cycles == [1], "the request is taken with its last word"
    assert ran.a.cycles == [1, 2]


def test_a_write_is_answered_a_cycle_after_its_last_beat() -> None:
    ran = transfer_bursts(compiled(Circuit), write=blocks(1, 0))
    assert ran.beats.cycles == list(range(16))
    assert ran.write.cycles == [15]
    assert ran.response.cycles == [16]


@pytest.mark.parametrize("length", [1, 16])
def test_a_stream_alone_has_every_cycle(length: int) -> None:
    count = 48 // length
    requests = [{"address": BASE + 64 * (i % 16), "length": length - 1} for i in range(count)]
    circuit = compiled(Circuit)
    assert transfer_bursts(circuit, b=requests).b.cycles == list(range(1, 49))
    assert transfer_bursts(circuit, write=requests).beats.cycles == list(range(48))


def test_three_busy_streams_have_a_third_each() -> None:
    """As in an XOR: the writer writes a word once both of its operands are there."""
    circuit = compiled(Circuit)
    dut = circuit.dut
    total = 16 * 8
    ports = bursts_of(dut, a=blocks(8, 0), b=blocks(8, 0), write=blocks(8, 8))
    del ports["beats"]
    a, b = ports["a"], ports["b"]
    writes: list[int] = []

    async def write(ctx: Any) -> None:
        for cycle in range(10_000):
            there = min(len(a.bits), len(b.bits)) > len(writes)
            ctx.set(dut.write.data.valid, there)
            ctx.set(dut.write.data.payload.last, len(writes) % 16 == 15)
            _, _, taken = await ctx.tick().sample(dut.write.data.ready & dut.write.data.valid)
            if taken:
                writes.append(cycle)
            if len(writes) == total:
                ctx.set(dut.write.data.valid, 0)
                return

    simulate(circuit, *ports.values(), write)
    # The first word of B is there after A's first burst.
    assert writes[-1] + 1 <= 3 * total + 20, f"{3 * total} words took {writes[-1] + 1} cycles"


def test_reads_and_writes_take_turns() -> None:
    ran = transfer_bursts(compiled(Circuit, read_ports=1), a=blocks(4, 0), write=blocks(4, 8))
    assert ran.a.cycles == ran.beats.cycles == list(range(1, 129, 2))


def test_a_beat_that_is_not_taken_does_not_hold_up_writes() -> None:
    circuit = compiled(Circuit)
    dut = circuit.dut
    seen: list[tuple[int, int]] = []

    async def stuck(ctx: Any) -> None:
        ctx.set(dut.a.request.payload.address, BASE + 4 * 7)
        ctx.set(dut.a.request.payload.length, 3)
        ctx.set(dut.a.request.valid, 1)
        for _ in range(40):
            await ctx.tick()
            seen.append((ctx.get(dut.a.data.valid), ctx.get(dut.a.data.payload.data)))

    ran = transfer_bursts(circuit, stuck, write=blocks(2, 4))
    assert ran.beats.cycles == [*range(1, 33)]
    assert seen == [(1, filled(7))] * 40


def test_a_cycle_that_is_held_is_lost_and_no_more() -> None:
    circuit = compiled(Circuit)
    dut = circuit.dut

    async def hold(ctx: Any) -> None:
        await ctx.tick().repeat(10)
        ctx.set(dut.hold, 1)
        await ctx.tick()
        ctx.set(dut.hold, 0)

    ran = transfer_bursts(circuit, hold, a=blocks(2, 0))
    assert ran.a.cycles == [*range(1, 11), *range(12, 34)]


def test_read_ports_other_than_1_or_2_are_refused() -> None:
    with pytest.raises(ValueError, match="read_ports: 3 is neither 1 nor 2"):
        SramPort(32, 32, WORDS, read_ports=3)
