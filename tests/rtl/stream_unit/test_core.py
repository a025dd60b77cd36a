"""The stream core passes packets between its buses, with the flags above TUSER of A."""

import pytest
from amaranth.hdl import Cat

from bitlane_rtl.abi import Op
from bitlane_rtl.stream_unit.configuration import StreamConfiguration
from bitlane_rtl.stream_unit.core import StreamCore
from bitlane_rtl.stream_unit.unit import StreamUnit
from support.rtl.packets import UNEQUAL
from support.rtl.streams import Sink, Source, channel, elaborated, simulate

FIELDS = ("data", "keep", "last", "user")


@pytest.mark.parametrize("registers", [False, True])
def test_packets_between_the_buses(registers: bool) -> None:
    config = StreamConfiguration(data_width=8, user_width=2, ops=frozenset({Op.XOR, Op.NOT}))
    core = elaborated(StreamCore, config, registers=registers)
    assert core.latency == StreamUnit(config).latency
    a, y = (channel(bus, "t", *FIELDS) for bus in (core.s_axis_a, core.m_axis_y))
    b = channel(core.s_axis_b, "t", *FIELDS[:3])
    if not registers:
        a.payload = Cat(a.payload, core.control.op)
    # Registers begin with the lowest operation that was built, XOR.
    beats = [(0x5A, 1, 0, 0b10), (0xFF, 1, 1, 0b01), (0x00, 1, 1, 0b11)]
    packed = [d | k << 8 | e << 9 | u << 10 | Op.XOR << 12 for d, k, e, u in beats]
    others = [d | 1 << 8 | e << 9 for d, e in ((0x0F, 0), (0xF0, 1), (0x11, 0), (0x22, 1))]
    if registers:
        packed = [word & 0xFFF for word in packed]
    sink = Sink(y, 3)
    simulate(core, Source(a, packed), Source(b, others), sink)
    found = [(x & 0xFF, x >> 8 & 1, x >> 9 & 1, x >> 10) for x in sink.bits]
    assert found == [
        (0x55, 1, 0, 0b10),
        (0x0F, 1, 1, 0b01),
        (0x11, 1, 1, 0b11 | UNEQUAL << 2),
    ]
