"""Each record is refused with the code that the contract says, or with none.

The codes come from `bitlane_sim.fields`, which follows the words of `abi`.
"""

import random
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from bitlane_rtl.abi import COUNT_OPS, RECORD_WORDS, Lane, Mode, Op, Status
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.control.refusals import Refusals
from support.record import Record
from support.rtl.random_records import random_record
from support.rtl.streams import compiled, simulate
from support.seeds import slow

MEMORY = Configuration(memory_base=0x20000, memory_bytes=0x30000, length_bits=20, count_bits=18)
"""Neither the base nor the size of its memory is a multiple of the other."""

CONFIGURATIONS = {
    "all": MEMORY,
    "aligned memory": replace(MEMORY, memory_base=0, memory_bytes=1 << 28),
    "six loops": replace(MEMORY, loops=6, lanes=frozenset({Lane.BITS_8, Lane.BITS_16})),
    "one loop": replace(MEMORY, loops=1, ops=frozenset({Op.NOT, Op.XOR}), count_bits=1),
    "sums": replace(MEMORY, ops=COUNT_OPS | {Op.XOR}, modes=frozenset(Mode), length_bits=12),
    "no sums": replace(MEMORY, ops=COUNT_OPS | {Op.XOR}, modes=frozenset(Mode) - {Mode.SUM}),
    "dense count": replace(MEMORY, ops=frozenset({Op.COUNT}), modes=frozenset({Mode.DENSE})),
    "no repeat": replace(MEMORY, modes=frozenset({Mode.DENSE, Mode.STRIDED}), length_bits=32),
}


async def give(ctx: Any, dut: Refusals, words: list[int], stalls: random.Random) -> int:
    """Let ``dut`` take a record; the code that it then has. It forgets the record."""
    columns = len(dut.used)
    used = Record(words).used
    control = 0xFFFF_FFFF
    for position in range(-(-used // columns)):
        first = position * columns
        while stalls.random() < 0.3:
            ctx.set(dut.group.words, stalls.getrandbits(32 * columns))
            ctx.set(dut.group.take, 0)
            await ctx.tick()
        group = words[first : first + columns]
        ctx.set(dut.group.words, sum(word << 32 * column for column, word in enumerate(group)))
        ctx.set(dut.group.position, position)
        ctx.set(dut.used, sum(1 << column for column in range(columns) if first + column < used))
        ctx.set(dut.control, dut.control.shape().from_bits(control))
        ctx.set(dut.group.take, 1)
        await ctx.tick()
        control = words[0]
    ctx.set(dut.group.take, 0)
    ctx.set(dut.control, dut.control.shape().from_bits(control))
    ctx.set(dut.clear, 1)
    code = ctx.get(dut.code)
    await ctx.tick()
    ctx.set(dut.clear, 0)
    return int(code)


COLUMNS = (1, 2, 4)
"""Words of a record that arrive in a cycle."""

QUICK = {("all", columns) for columns in COLUMNS} | {
    (name, COLUMNS[number % 3]) for number, name in enumerate(CONFIGURATIONS)
}
"""Circuits of the quick tier: each configuration, and each number of columns."""


@pytest.mark.parametrize(
    ("name", "columns"),
    [each if each in QUICK else slow(*each) for each in product(CONFIGURATIONS, COLUMNS)],
)
def test_random_records(name: str, columns: int) -> None:
    configuration = replace(CONFIGURATIONS[name], data_width=32 * columns)
    dut = compiled(Refusals, configuration, columns)
    seed = f"{name} {columns}"
    generator = random.Random(seed)
    seen: Counter[Status] = Counter()

    async def bench(ctx: Any) -> None:
        for number in range(350):
            words = random_record(generator, configuration)
            assert len(words) == RECORD_WORDS
            expected = Record(words).refusal(configuration)
            seen[expected] += 1
            code = await give(ctx, dut, words, generator)
            told = f"seed {seed!r}, record {number}: {[hex(word) for word in words]}"
            assert code == expected, f"{Status(code).name}, expected {expected.name}, {told}"

    simulate(dut, bench, deadline=30_000)
    assert seen[Status.OK] > 60
    assert {status for status in Status if status < Status.MISALIGNED} <= set(seen)


def test_a_record_half_taken_and_cleared_leaves_nothing() -> None:
    dut = compiled(Refusals, MEMORY, 2)
    generator = random.Random(1)

    async def bench(ctx: Any) -> None:
        for _ in range(100):
            for _ in range(generator.randrange(4)):
                ctx.set(dut.group.words, generator.getrandbits(64))
                ctx.set(dut.used, 3)
                ctx.set(dut.group.take, 1)
                await ctx.tick()
            ctx.set(dut.group.take, generator.getrandbits(1))
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            words = random_record(generator, MEMORY)
            assert await give(ctx, dut, words, generator) == Record(words).refusal(MEMORY)

    simulate(dut, bench)
