"""The mover accesses each word of a request once, at its address, when the memory is ready."""

import random
from typing import Any

import pytest

from bitlane_rtl.link.word_mover import WordMover
from support.rtl.streams import compiled, simulate

FIRST, WORDS = 0x1230, 20


@pytest.mark.parametrize("haste", [1.0, 0.4])
@pytest.mark.parametrize("write", [False, True])
def test_each_word_is_accessed_once(write: bool, haste: float) -> None:
    dut = compiled(WordMover, 16)
    rng = random.Random(1)
    data = [rng.getrandbits(32) for _ in range(WORDS)]
    seen: list[tuple[int, int, int]] = []
    moved: list[int] = []
    cycles = 0

    async def memory(ctx: Any) -> None:
        port = dut.memory
        access = (port.enable, port.address, port.strobe, port.write_data)
        while True:
            ready = rng.random() < haste
            ctx.set(port.ready, ready)
            *_, enable, address, strobe, word = await ctx.tick().sample(*access)
            ctx.set(port.read_data, rng.getrandbits(32))
            if enable and ready:
                seen.append((address, strobe, word if strobe else 0))
                if not strobe:
                    ctx.set(port.read_data, data[(address - FIRST) // 4])

    async def executor(ctx: Any) -> None:
        nonlocal cycles
        transfer = dut.transfer
        for number in range(WORDS):
            ctx.set(transfer.address, FIRST + 4 * number)
            ctx.set(transfer.words.p.data, data[number])
            ctx.set(transfer.words.p.strobe, number % 15 + 1)
            ctx.set(transfer.words.valid, write)
            ctx.set(transfer.read.ready, not write)
            done = 0
            while not done:
                sampled = ctx.tick().sample(
                    transfer.words.ready if write else transfer.read.valid, transfer.read.payload
                )
                *_, done, word = await sampled
                cycles += 1
            moved.append(word)
        ctx.set(transfer.words.valid, 0)
        ctx.set(transfer.read.ready, 0)
        await ctx.tick().repeat(4)

    simulate(dut, executor, background=[memory])
    assert [address for address, _, _ in seen] == [FIRST + 4 * n for n in range(WORDS)]
    if write:
        assert [(strobe, word) for _, strobe, word in seen] == [
            (n % 15 + 1, data[n]) for n in range(WORDS)
        ]
    else:
        assert moved == data
    if haste == 1.0:
        assert cycles == WORDS * (1 if write else 2)
