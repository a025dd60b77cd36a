"""Answers are framed as the contract requires, and fast enough that the line never idles."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.link.words import AnswerWord
from bitlane_rtl.serial.transmitter import AnswerTransmitter
from bitlane_rtl.serial.uart import UartTransmitter
from support.rtl.streams import ALL_STALLS, STALLS, Sink, Source, Stalls, compiled, simulate
from support.serial.frames import answer_content, answer_line, uart_bytes


def payloads(contents: Sequence[bytes]) -> list[dict[str, int]]:
    return [
        {"data": int.from_bytes(content[n : n + 4], "little"), "last": n == len(content) - 4}
        for content in contents
        for n in range(0, len(content), 4)
    ]


def transmit(
    contents: Sequence[bytes], stalls: Stalls = STALLS[0], deadline: int = 20_000
) -> tuple[Source, Sink]:
    dut = compiled(AnswerTransmitter)
    expected = b"".join(map(answer_line, contents))
    source = Source(dut.i, payloads(contents), stalls)
    sink = Sink(dut.o, len(expected), stalls, idle=40)
    simulate(dut, source, sink, deadline=deadline)
    assert bytes(sink.bits) == expected
    return source, sink


SHORT = [b"\0\0\0\0", b"\1\0\0\0", b"\0\0\0\1", b"\7\x80\xff\0", bytes(12), b"\xff" * 12]


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=["full", "halves", "long"])
def test_short_answers(stalls: Stalls) -> None:
    transmit(SHORT + [random.Random(n).randbytes(4 * n + 4) for n in range(8)], stalls)


@pytest.mark.parametrize("size", [244, 248, 252, 256, 504, 508, 516])
def test_blocks_that_are_full(size: int) -> None:
    transmit([b"\xff" * size, b"\x01" * (size - 1) + b"\x00"])


def test_a_full_block_that_ends_with_the_frame() -> None:
    """The code 255 of the full block is followed by the code of an empty block."""
    content = next(
        content
        for content in (b"\x01" * 502 + n.to_bytes(2, "little") for n in range(0x101, 0x10000))
        if 0 not in answer_line(content)[:-1]
    )
    line = answer_line(content)
    assert line[-3:] == b"\xff\x01\x00"
    assert answer_content(line[:-1]) == content
    transmit([content, b"\x05\x06\x07\x08"])


def test_a_full_block_within_the_crc() -> None:
    transmit([b"\x02" * 252])


def test_cycles() -> None:
    source, sink = transmit([b"\x01\x02\x00\x03"])
    # Each byte of the input takes 11 cycles; the last code and the delimiter follow at once.
    assert source.cycles == [0]
    assert sink.cycles[:4] == [9, 20, 31, 42]
    assert np.diff(sink.cycles).tolist() == [11, 11, 11, 10, 10, 10, 10, 2, 1]
    # The code of a full block takes 2 more cycles.
    source, _ = transmit([b"\x01" * 260])
    assert np.diff(source.cycles).tolist() == [44] * 63 + [46]


class _Line(wiring.Component):
    """The transmitter connected to a UART."""

    i: In(stream.Signature(AnswerWord))
    tx: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transmitter = transmitter = AnswerTransmitter()
        m.submodules.uart = uart = UartTransmitter(8)
        wiring.connect(m, wiring.flipped(self.i), transmitter.i)
        wiring.connect(m, transmitter.o, uart.i)
        m.d.comb += self.tx.eq(uart.tx)
        return m


def test_the_line_is_never_idle() -> None:
    """Neither codes between the bytes nor the start of the next answer leave a gap."""
    contents = [b"\xff" * 260, b"\x00" * 4, b"\x01\x02\x03\x04", b"\x01" * 252]
    dut = compiled(_Line)
    source = Source(dut.i, payloads(contents))
    levels: list[int] = []
    expected = b"".join(map(answer_line, contents))

    async def line(ctx: Any) -> None:
        for _ in range(80 * len(expected) + 200):
            _, _, level = await ctx.tick().sample(dut.tx)
            levels.append(level)

    simulate(dut, source, line, deadline=60_000)
    data, begins = uart_bytes(np.array(levels, np.uint8), 8)
    assert data == expected
    assert np.diff(begins).tolist() == [80] * (len(expected) - 1)
