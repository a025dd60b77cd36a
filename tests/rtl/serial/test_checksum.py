"""The checksum is `zlib.crc32`, given out or compared byte by byte."""

import random
from typing import Any
from zlib import crc32

import pytest

from bitlane_rtl.serial.checksum import Checksum
from support.rtl.streams import compiled, simulate

STEP = 9
"""Cycles from one ``start`` to the next."""


async def step(ctx: Any, dut: Checksum, byte: int, *, closing: bool) -> tuple[int, bool]:
    """One byte; returns ``byte`` at the end, and whether it differed from the CRC's."""
    ctx.set(dut.start, 1)
    ctx.set(dut.data, byte)
    await ctx.tick()
    ctx.set(dut.start, 0)
    ctx.set(dut.data, byte ^ 0xFF)
    ctx.set(dut.closing, closing)
    assert ctx.get(dut.byte) == byte
    differs = False
    for _ in range(STEP - 1):
        assert ctx.get(dut.busy)
        differs |= bool(ctx.get(dut.differs))
        await ctx.tick()
    assert not ctx.get(dut.busy)
    assert not ctx.get(dut.differs)
    return ctx.get(dut.byte), differs


async def clear(ctx: Any, dut: Checksum) -> None:
    ctx.set(dut.clear, 1)
    await ctx.tick()
    ctx.set(dut.clear, 0)


MESSAGES = [b"", b"\x00", b"\xff", b"123456789", bytes(20), b"\xff" * 20] + [
    random.Random(seed).randbytes(seed) for seed in range(1, 12)
]


def test_the_crc_is_given_out() -> None:
    dut = compiled(Checksum)

    async def bench(ctx: Any) -> None:
        for message in MESSAGES:
            for byte in message:
                assert await step(ctx, dut, byte, closing=False) == (byte, False)
            given = bytes([(await step(ctx, dut, 0x5A, closing=True))[0] for _ in range(4)])
            assert given == crc32(message).to_bytes(4, "little"), message.hex()
            await clear(ctx, dut)

    simulate(dut, bench)


@pytest.mark.parametrize("flipped", [None, *range(32)])
def test_a_crc_is_compared(flipped: int | None) -> None:
    dut = compiled(Checksum)
    message = random.Random(flipped).randbytes(5)
    right = crc32(message)
    received = (right if flipped is None else right ^ 1 << flipped).to_bytes(4, "little")

    async def bench(ctx: Any) -> None:
        for byte in message:
            await step(ctx, dut, byte, closing=False)
        differs = [(await step(ctx, dut, byte, closing=True))[1] for byte in received]
        assert differs == [flipped is not None and flipped // 8 == n for n in range(4)]

    simulate(dut, bench)


def test_any_time_may_pass_between_bytes() -> None:
    dut = compiled(Checksum)
    message = random.Random(0).randbytes(9)

    async def bench(ctx: Any) -> None:
        for gap, byte in enumerate(message):
            await step(ctx, dut, byte, closing=False)
            for _ in range(gap):
                await ctx.tick()
                assert ctx.get(dut.byte) == byte
        given = bytes([(await step(ctx, dut, 0, closing=True))[0] for _ in range(4)])
        assert given == crc32(message).to_bytes(4, "little")

    simulate(dut, bench)
