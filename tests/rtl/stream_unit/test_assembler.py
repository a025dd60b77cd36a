"""The truth value of a packet is that of all its bits, even if their number is 0 modulo 2**32."""

from typing import Any

import pytest

from bitlane_rtl.abi import Lane
from bitlane_rtl.stream_unit.assembler import PacketAssembler
from bitlane_rtl.stream_unit.configuration import StreamConfiguration
from support.rtl.streams import Sink, Source, elaborated, simulate


@pytest.mark.parametrize("negate", [0, 1])
def test_a_sum_that_comes_back_to_zero_is_not_none(negate: int) -> None:
    def result(total: int, *, last: bool) -> dict[str, Any]:
        side = {"keep": 0xFF, "last": last, "sums": 1, "truth": 1, "negate": negate}
        edge = {"last": last, "end": last}
        lanes = {"lane": Lane.BITS_32, "out_lane": Lane.BITS_32}
        data = {"data": total << 32 | total, "partial": not last, "edge": edge, **lanes}
        return {"result": data, "sideband": side}

    packets = [(0, 1 << 31, 0), (0, 0), (0xFFFF_FFFF,), (0,)]
    sent = [
        result(total, last=number == len(packet) - 1)
        for packet in packets
        for number, total in enumerate(packet)
    ]
    circuit = elaborated(PacketAssembler, StreamConfiguration())
    source, sink = Source(circuit.i, sent), Sink(circuit.o, len(packets))
    simulate(circuit, source, sink)
    assert [beat.data & 0xFF for beat in sink.payloads] == [1 - negate, negate, 1 - negate, negate]
    assert {beat.keep for beat in sink.payloads} == {1}
