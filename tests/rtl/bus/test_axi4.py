"""The AXI4 managers are wires: what a native port asks appears on the bus in the same cycle."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from bitlane_rtl.bus.axi4 import Axi4, Axi4ReadManager, Axi4WriteManager, join_channels
from support.rtl.streams import ALL_STALLS, Sink, Source, Stalls, channel, simulate

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


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
@pytest.mark.parametrize("data_width", [32, 128])
def test_reads_appear_on_ar_and_come_back_from_r(data_width: int, stalls: Stalls) -> None:
    dut = Axi4ReadManager(ADDRESS_WIDTH, data_width)
    top = 1 << data_width - 1
    beats = [(top | index, index == 3, response) for index, response in enumerate(RESPONSES)]
    ask = Source(dut.port.request, REQUESTS, stalls, "request")
    asked = Sink(channel(dut.axi, "ar", *ADDRESS), len(REQUESTS), stalls, "ar")
    words = [data | last << data_width | resp << data_width + 1 for data, last, resp in beats]
    answer = Source(channel(dut.axi, "r", "data", "last", "resp"), words, stalls, "r")
    answered = Sink(dut.port.data, len(beats), stalls, "data")
    simulate(dut, ask, asked, answer, answered)

    assert asked.bits == address_words(data_width)
    assert ask.cycles == asked.cycles, "not in the same cycle"
    assert [(beat.data, beat.last, beat.error) for beat in answered.payloads] == [
        (data, last, response in (0b10, 0b11)) for data, last, response in beats
    ]
    assert answer.cycles == answered.cycles, "not in the same cycle"


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
@pytest.mark.parametrize("data_width", [32, 128])
def test_writes_appear_on_aw_and_w_and_are_answered_from_b(data_width: int, stalls: Stalls) -> None:
    dut = Axi4WriteManager(ADDRESS_WIDTH, data_width)
    strobes = data_width // 8
    top = 1 << data_width - 1
    beats = [
        {"data": top | index, "strobe": 1 << index | 1 << strobes - 1, "last": index == 2}
        for index in range(3)
    ]
    ask = Source(dut.port.request, REQUESTS, stalls, "request")
    asked = Sink(channel(dut.axi, "aw", *ADDRESS), len(REQUESTS), stalls, "aw")
    send = Source(dut.port.data, beats, stalls, "data")
    sent = Sink(channel(dut.axi, "w", "data", "strb", "last"), len(beats), stalls, "w")
    answer = Source(channel(dut.axi, "b", "resp"), RESPONSES, stalls, "b")
    answered = Sink(dut.port.response, len(RESPONSES), stalls, "response")
    simulate(dut, ask, asked, send, sent, answer, answered)

    assert asked.bits == address_words(data_width)
    assert sent.bits == [
        beat["data"] | beat["strobe"] << data_width | beat["last"] << data_width + strobes
        for beat in beats
    ]
    assert answered.bits == [0, 0, 1, 1]
    assert ask.cycles == asked.cycles, "not in the same cycle"
    assert send.cycles == sent.cycles, "not in the same cycle"
    assert answer.cycles == answered.cycles, "not in the same cycle"


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
    reads, writes = dut.reads.port, dut.writes.port
    read = Source(reads.request, REQUESTS[:2])
    write = Source(writes.request, REQUESTS[2:])
    ar = Sink(channel(dut.axi, "ar", *ADDRESS), 2)
    aw = Sink(channel(dut.axi, "aw", *ADDRESS), 2)
    r = Source(channel(dut.axi, "r", "data"), [5])
    b = Source(channel(dut.axi, "b", "resp"), [2])
    data, response = Sink(reads.data, 1), Sink(writes.response, 1)
    simulate(dut, read, write, ar, aw, r, b, data, response)
    assert ar.bits + aw.bits == address_words(64)
    assert data.payloads[0].data == 5
    assert response.bits == [1]


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
