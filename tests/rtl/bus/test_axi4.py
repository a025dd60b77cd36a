"""Whole beats alone reach a memory without byte enables, and no other byte changes.

The AXI4 managers are wires: a request of a native port is on the bus in the same cycle.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.bus import (
    Axi4,
    Axi4ReadManager,
    Axi4WholeBeats,
    Axi4WriteManager,
    WholeBeats,
    join_channels,
)
from bitlane_rtl.ports import ReadPort, WritePort
from support.rtl.bursts import BASE, BLOCKS, PARTIAL, beats_but, bursts_of, ragged, stored
from support.rtl.memory import Memory, ReadServer, WriteServer
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, channel, compiled, simulate
from support.seeds import seeds


class LateRequests(WriteServer):
    """A memory that takes beats in any cycle, and no request in the first 100 cycles."""

    def _stall(self, salt: str) -> Callable[[], bool]:
        cycle = itertools.count()
        return lambda: salt == "wq" and next(cycle) < 100


@dataclass
class WholeMemory(Memory):
    """A memory at `BASE` that takes whole beats only."""

    def read(self, address: int) -> tuple[int, bool]:
        return super().read(address - BASE)

    def write(self, address: int, value: int, strobe: int) -> bool:
        assert strobe == (1 << self.beat_bytes) - 1, f"strobes {strobe:b} at {address:#x}"
        return super().write(address - BASE, value, strobe)


class Faces(wiring.Component):
    """The circuit's AXI ports, between native ports."""

    write: Any
    whole: Any
    old: Any

    def __init__(self, address_width: int, width: int) -> None:
        self._widths = address_width, width
        super().__init__(
            {
                "write": In(WritePort(address_width, width)),
                "whole": Out(WritePort(address_width, width)),
                "old": Out(ReadPort(address_width, width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        writer: Any = Axi4WriteManager(*self._widths)
        m.submodules.writer = writer
        m.submodules.dut = dut = Axi4WholeBeats(*self._widths)
        wiring.connect(m, wiring.flipped(self.write), writer.port)
        for name, member in writer.axi.signature.members.items():
            ours, theirs = getattr(writer.axi, name), getattr(dut.s_axi, name)
            m.d.comb += theirs.eq(ours) if member.flow == Out else ours.eq(theirs)
        bus, asks, gives = dut.m_axi, self.whole.request, self.whole.data
        reads, comes = self.old.request, self.old.data
        m.d.comb += [
            asks.valid.eq(bus.awvalid),
            asks.p.address.eq(bus.awaddr),
            asks.p.length.eq(bus.awlen),
            bus.awready.eq(asks.ready),
            gives.valid.eq(bus.wvalid),
            gives.p.data.eq(bus.wdata),
            gives.p.strobe.eq(bus.wstrb),
            gives.p.last.eq(bus.wlast),
            bus.wready.eq(gives.ready),
            bus.bvalid.eq(self.whole.response.valid),
            bus.bresp.eq(self.whole.response.payload << 1),
            self.whole.response.ready.eq(bus.bready),
            reads.valid.eq(bus.arvalid),
            reads.p.address.eq(bus.araddr),
            reads.p.length.eq(bus.arlen),
            bus.arready.eq(reads.ready),
            bus.rvalid.eq(comes.valid),
            bus.rdata.eq(comes.p.data),
            bus.rlast.eq(comes.p.last),
            bus.rresp.eq(comes.p.error << 1),
            comes.ready.eq(bus.rready),
        ]
        return m


class Bench:
    """The circuit with bursts to write, and the memory behind it."""

    def __init__(
        self, width: int, latency: int = 0, stalls: Stalls = NO_STALLS, make: Any = WholeBeats
    ) -> None:
        self.dut = compiled(make, 32, width)
        self.memory = WholeMemory(np.zeros(BLOCKS * 2 * width, np.uint8), width // 8)
        self.writes = WriteServer(self.dut.whole, self.memory, latency, stalls)
        self.reads = ReadServer(self.dut.old, self.memory, latency, stalls)
        self._stalls = stalls

    def send(self, asked: list[dict[str, int]], beats: list[dict[str, int]]) -> Any:
        """Write these bursts; return the testbenches of the writer."""
        benches = bursts_of(self.dut, write=asked, beats=beats, stalls=self._stalls)
        simulate(self.dut, *benches.values(), background=[self.writes, self.reads])
        self._expect_no_write_under_way_at_a_read()
        return benches

    def _expect_no_write_under_way_at_a_read(self) -> None:
        for cycle, *_ in self.reads.requests:
            begun = sum(at < cycle for at, *_ in self.writes.requests)
            assert sum(at < cycle for at in self.writes.responses) == begun, cycle


@pytest.mark.parametrize(("make", "width"), [(WholeBeats, 32), (WholeBeats, 64), (Faces, 32)])
@pytest.mark.parametrize("latency", [0, 9])
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_bytes_beside_those_that_are_written_stay(
    make: Any, width: int, latency: int, stalls: Stalls, seed: int
) -> None:
    rng = random.Random(seed)
    bench = Bench(width, latency, stalls, make)
    before = rng.randbytes(BLOCKS * 2 * width)
    bench.memory.data[:] = np.frombuffer(before, np.uint8)
    asked, beats = ragged(rng, width, 40)
    benches = bench.send(asked, beats)
    assert list(bench.memory.data) == stored(asked, beats, width, before), (width, stalls, seed)
    assert benches["response"].bits == [0] * len(asked)


@pytest.mark.parametrize("partial", PARTIAL)
@pytest.mark.parametrize("latency", [0, 9])
def test_the_cycles_of_a_burst(partial: str, latency: int) -> None:
    """The docstring's formulas; without earlier bursts d is 0."""
    lacking, first, reads = PARTIAL[partial]
    bench = Bench(32, latency)
    benches = bench.send([{"address": BASE, "length": 15}], beats_but(lacking, 32))
    came, left = benches["beats"].cycles[-1], bench.writes.beats
    assert left == list(range(left[0], left[0] + 16))
    asked = [(address - BASE, beats) for _, address, beats in bench.reads.requests]
    assert asked == ([(4 * first, reads)] if reads else [])
    assert left[0] - came == ((1 + latency) + reads + 1 if reads else 1)


def test_whole_bursts_follow_each_other_without_a_gap() -> None:
    bench = Bench(32)
    lengths = [15] * 4 + [0, 0, 0, 1, 2]
    asked = [{"address": BASE, "length": length} for length in lengths]
    bench.send(asked, [beat for length in lengths for beat in beats_but(frozenset(), 32, length)])
    left = bench.writes.beats
    assert left == list(range(left[0], left[0] + len(left)))


@pytest.mark.parametrize("latency", [0, 40])
def test_a_burst_that_cannot_be_read_is_not_written(latency: int) -> None:
    """Its response does not overtake earlier ones."""
    bench = Bench(32)
    bench.writes.latency = latency
    bench.memory.bad = lambda address: address == 4 * 20
    asked = [{"address": BASE + 64 * block, "length": 15} for block in (0, 1, 0)]
    beats = [
        *beats_but(frozenset({3}), 32),
        *beats_but(frozenset({2, 7}), 32),
        *beats_but(frozenset({9}), 32),
    ]
    benches = bench.send(asked, beats)
    assert benches["response"].bits == [0, 1, 0]
    assert not bench.memory.data[64:].any()
    assert list(bench.memory.data[0:64:4]) == list(range(16))


def test_beats_may_be_taken_long_before_their_request() -> None:
    """More bursts of one beat come meanwhile than there is room for."""
    bench = Bench(32)
    bench.writes = LateRequests(bench.dut.whole, bench.memory, 0, NO_STALLS)
    asked = [{"address": BASE + 4 * (beat % 16), "length": 0} for beat in range(48)]
    beats = [{"data": beat, "strobe": 15, "last": True} for beat in range(48)]
    benches = bench.send(asked, beats)
    assert bench.writes.beats[0] < 10 < 100 < bench.writes.requests[0][0]
    assert list(bench.memory.data[0:64:4]) == list(range(32, 48))
    assert benches["response"].bits == [0] * 48


def test_an_error_of_the_memory_reaches_the_writer() -> None:
    bench = Bench(32)
    bench.memory.bad = lambda address: address == 4
    asked = [{"address": BASE + at, "length": 0} for at in (0, 4, 8)]
    assert bench.send(asked, beats_but(frozenset(), 32, 0) * 3)["response"].bits == [0, 1, 0]


# --- AXI4 -----------------------------------------------------------------------------------------


ADDRESS_WIDTH = 32
REQUESTS = [
    {"address": address, "length": length}
    for address, length in ((0, 0), (0x1000, 15), (0xFFFF_FFC0, 7), (0x8000_0040, 1))
]
RESPONSES = (0b00, 0b01, 0b10, 0b11)  # OKAY, EXOKAY, SLVERR, DECERR


def address_words(data_width: int) -> list[int]:
    """``REQUESTS`` as addr, len(8), size(3), burst(2), prot(3), cache(4)."""
    size = {32: 2, 64: 3, 128: 4}[data_width]
    return [
        request["address"] | request["length"] << 32 | size << 40 | 0b01 << 43 | 0b0010 << 48
        for request in REQUESTS
    ]


ADDRESS = ("addr", "len", "size", "burst", "prot", "cache")


def pass_through(
    dut: Any, stalls: Stalls, *ways: tuple[Any, Sequence[Any], Any]
) -> list[list[int]]:
    """Send payloads along each of ``ways``, in the same cycle; return the bits received."""
    sources = [Source(i, given, stalls, f"in {n}") for n, (i, given, _) in enumerate(ways)]
    sinks = [Sink(o, len(given), stalls, f"out {n}") for n, (_, given, o) in enumerate(ways)]
    simulate(dut, *sources, *sinks)
    for source, sink in zip(sources, sinks, strict=True):
        assert source.cycles == sink.cycles, "not in the same cycle"
    return [sink.bits for sink in sinks]


@pytest.mark.parametrize("data_width", [32, 128])
def test_reads_appear_on_ar_and_come_back_from_r(data_width: int, stalls: Stalls) -> None:
    dut = Axi4ReadManager(ADDRESS_WIDTH, data_width)
    top = 1 << data_width - 1
    beats = [(top | index, index == 3, response) for index, response in enumerate(RESPONSES)]
    words = [data | last << data_width | resp << data_width + 1 for data, last, resp in beats]
    asked, answered = pass_through(
        dut,
        stalls,
        (dut.port.request, REQUESTS, channel(dut.axi, "ar", *ADDRESS)),
        (channel(dut.axi, "r", "data", "last", "resp"), words, dut.port.data),
    )
    assert asked == address_words(data_width)
    shape = dut.port.data.payload.shape()
    assert [(x.data, x.last, x.error) for x in map(shape.from_bits, answered)] == [
        (data, last, response in (0b10, 0b11)) for data, last, response in beats
    ]


@pytest.mark.parametrize("data_width", [32, 128])
def test_writes_appear_on_aw_and_w_and_are_answered_from_b(data_width: int, stalls: Stalls) -> None:
    dut = Axi4WriteManager(ADDRESS_WIDTH, data_width)
    strobes = data_width // 8
    top = 1 << data_width - 1
    beats = [
        {"data": top | index, "strobe": 1 << index | 1 << strobes - 1, "last": index == 2}
        for index in range(3)
    ]
    asked, sent, answered = pass_through(
        dut,
        stalls,
        (dut.port.request, REQUESTS, channel(dut.axi, "aw", *ADDRESS)),
        (dut.port.data, beats, channel(dut.axi, "w", "data", "strb", "last")),
        (channel(dut.axi, "b", "resp"), RESPONSES, dut.port.response),
    )
    assert asked == address_words(data_width)
    assert sent == [
        beat["data"] | beat["strobe"] << data_width | beat["last"] << data_width + strobes
        for beat in beats
    ]
    assert answered == [0, 0, 1, 1]


class Both(wiring.Component):
    """A read and a write manager on one bus."""

    def __init__(self) -> None:
        super().__init__({"axi": Out(Axi4(32, 64))})
        self.reads = Axi4ReadManager(32, 64)
        self.writes = Axi4WriteManager(32, 64)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reads = self.reads
        m.submodules.writes = self.writes
        join_channels(m, self.reads.axi, self.axi)
        join_channels(m, self.writes.axi, self.axi)
        return m


def test_both_managers_join_into_one_bus() -> None:
    dut = Both()
    ar, aw, data, response = pass_through(
        dut,
        NO_STALLS,
        (dut.reads.port.request, REQUESTS[:2], channel(dut.axi, "ar", *ADDRESS)),
        (dut.writes.port.request, REQUESTS[2:], channel(dut.axi, "aw", *ADDRESS)),
        (channel(dut.axi, "r", "data"), [5], dut.reads.port.data),
        (channel(dut.axi, "b", "resp"), [2], dut.writes.port.response),
    )
    assert ar + aw == address_words(64)
    assert (data, response) == ([5], [1])


@pytest.mark.parametrize(
    ("read", "write", "prefixes"),
    [
        (True, True, {"ar", "r", "aw", "w", "b"}),
        (True, False, {"ar", "r"}),
        (False, True, {"aw", "w", "b"}),
    ],
)
def test_a_bus_has_only_the_channels_that_were_asked_for(
    read: bool, write: bool, prefixes: set[str]
) -> None:
    members = Axi4(32, 64, read=read, write=write).members
    names = {name for name in members if name.endswith("valid")}
    assert names == {prefix + "valid" for prefix in prefixes}
