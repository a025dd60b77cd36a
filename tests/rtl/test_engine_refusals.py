"""The whole engine: what cannot be executed is refused with a code, and causes no traffic."""

import random
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import RECORD_WORDS, Lane, Mode, Op, Port, Status, record_words
from support.commands import logic
from support.rtl.bench import SIZE, EngineBench, configuration
from support.rtl.records import Task, pack, reseal
from support.rtl.walks import Walk
from support.seeds import slow

NOT = logic(Op.NOT, 0, None, 4096, 64)
XOR = logic(Op.XOR, 0, 128, 4096, 64)
STRIDED_COUNT = Task(
    Op.COUNT,
    Walk(0, [8, 2], [8, 64], Mode.STRIDED, Lane.BITS_32),
    None,
    Walk(4096, [8, 2], [4, 32], Mode.DENSE, Lane.BITS_32),
)

SUMS = Task(
    Op.COUNT,
    Walk(0, [8, 2], [1, 64], Mode.DENSE, Lane.BITS_8),
    None,
    Walk(4096, [8, 2], [1, 4], Mode.SUM, Lane.BITS_32),
)

REFUSED = [
    (Status.BAD_OP, NOT, {"OP": 11}),
    (Status.BAD_LANE, NOT, {"OUT_LANE": 1}),
    (Status.BAD_LANE, STRIDED_COUNT, {"OUT_LANE": 1}),
    (Status.BAD_LANE, SUMS, {"OUT_LANE": 0}),
    (Status.BAD_LANE, SUMS, {"OUT_LANE": 3}),
    (Status.BAD_CONTROL, SUMS, {"OP": Op.COPY, "OUT_LANE": 0}),
    (Status.BAD_CONTROL, SUMS, {"A_MODE": Mode.SUM}),
    (Status.BAD_CONTROL, SUMS, {"NEGATE": 1}),
    (Status.BAD_CONTROL, NOT, {"TEST": 1}),
    (Status.BAD_CONTROL, XOR, {"TEST": 1, "NEGATE": 1}),
    (Status.BAD_CONTROL, STRIDED_COUNT, {"NEGATE": 1}),
    (Status.BAD_CONTROL, SUMS, {"OP": Op.COUNT_OR, "B_MODE": Mode.SUM}),
    (Status.BAD_SIZE, SUMS, {"RUN": 0}),
    (Status.BAD_SIZE, SUMS, {"RUN": 1 << 23, "LANE": 1}),
    (Status.MISALIGNED, SUMS, {"Y_BASE": 4098}),
    (Status.MISALIGNED, SUMS, {"Y_JUMP_1": 5}),
    (Status.PAST_MEMORY, SUMS, {"Y_LAST": SIZE}),
    (Status.BAD_CONTROL, NOT, {"LOOPS": 0}),
    (Status.BAD_CONTROL, NOT, {"LOOPS": 5, "COUNT_4": 1}),
    (Status.BAD_CONTROL, XOR, {"LOOPS": 6, "B_JUMP_5": 8}),
    (Status.BAD_CONTROL, NOT, {"LOOPS": 7, "COUNT_1": 1}),
    (Status.BAD_CONTROL, NOT, {"A_MODE": 3}),
    (Status.BAD_CONTROL, NOT, {"Y_MODE": 2}),
    (Status.BAD_CONTROL, NOT, {"B_MODE": 2}),
    (Status.BAD_CONTROL, STRIDED_COUNT, {"RESERVED": 1}),
    (Status.BAD_SIZE, NOT, {"RUN": 0}),
    (Status.BAD_SIZE, NOT, {"RUN": 1 << 24}),
    (Status.BAD_SIZE, NOT, {"RUN": 1 << 23, "LANE": 1, "OUT_LANE": 1}),
    (Status.BAD_SIZE, STRIDED_COUNT, {"COUNT_1": 0}),
    (Status.BAD_SIZE, STRIDED_COUNT, {"COUNT_1": 1 << 24}),
    (Status.MISALIGNED, STRIDED_COUNT, {"Y_BASE": 4097}),
    (Status.MISALIGNED, STRIDED_COUNT, {"A_BASE": 2}),
    (Status.MISALIGNED, STRIDED_COUNT, {"A_STRIDE": 6}),
    (Status.MISALIGNED, STRIDED_COUNT, {"Y_JUMP_1": 30}),
    (Status.PAST_MEMORY, NOT, {"A_BASE": SIZE}),
    (Status.PAST_MEMORY, NOT, {"A_LAST": SIZE}),
    (Status.PAST_MEMORY, NOT, {"Y_BASE": SIZE}),
    (Status.PAST_MEMORY, NOT, {"Y_LAST": 1 << 31}),
    (Status.PAST_MEMORY, XOR, {"B_BASE": SIZE}),
    (Status.PAST_MEMORY, XOR, {"B_LAST": SIZE}),
]


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize(("status", "task", "overrides"), REFUSED)
def test_refusal(width: int, status: Status, task: Task, overrides: dict[str, int]) -> None:
    """A bad command causes no traffic; the one before it is done, the one after it is not."""
    bench = EngineBench(configuration(data_width=width))
    before = bench.memory.data.copy()
    bad = Task(task.op, task.a, task.b, task.y, overrides=overrides)
    good = logic(Op.NOT, 512, None, 5000, 40)
    assert bench.execute([good, bad, good]) == (status, Port.NONE, 1, 1)
    before[5000:5040] = ~before[512:552]
    assert np.array_equal(bench.memory.data, before)
    assert len(bench.read_a.requests) == (41 + width // 8) // (2 * width) + 1


def test_a_refused_command_has_no_address_whatever_was_written_before() -> None:
    bench = EngineBench(configuration())
    good = logic(Op.NOT, 0, None, 4096, 4096)  # more bursts than can be open
    bad = logic(Op.NOT, SIZE, None, 4096, 64)
    assert bench.execute([good, bad]).retired == 1
    assert bench.fault_address == 0


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize("task", [logic(Op.XOR, 3, 1030, 4099, 50), STRIDED_COUNT])
def test_every_flipped_bit_of_a_record_is_refused(width: int, task: Task) -> None:
    """One engine takes the record with one bit flipped after another, cleared in between."""
    bench = EngineBench(configuration(data_width=width))
    before = bench.memory.data.copy()
    words = pack(task)
    generator = random.Random(width)
    bits = generator.sample(range(32 * len(words)), 20)

    async def host(ctx: Any) -> None:
        for bit in bits:
            flipped = list(words)
            flipped[bit // 32] ^= 1 << bit % 32
            await bench.load(ctx, flipped)
            await bench.ring(ctx)
            await bench.settle(ctx)
            code = await bench.register(ctx, "FAULT", "CODE")
            # A flip in CONTROL may change how many words are in use: refused all the same.
            assert code != Status.OK, f"bit {bit}"
            await bench.clear(ctx)
            await ctx.tick().repeat(4)
            assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    assert np.array_equal(bench.memory.data, before)


@pytest.mark.parametrize("width", [64, slow(128)])
def test_words_beyond_those_in_use_are_not_read(width: int) -> None:
    bench = EngineBench(configuration(data_width=width))
    expected = bench.memory.data.copy()
    expected[4096:4160] = ~expected[:64]

    async def host(ctx: Any) -> None:
        words = pack(NOT)
        assert len(words) == record_words(Op.NOT, 1, (Mode.DENSE,) * 3) == 6
        await bench.load(ctx, words + [0xDEADBEEF] * (RECORD_WORDS - 6))
        await bench.ring(ctx)
        await bench.settle(ctx)

    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


def test_seal_covers_words_in_use() -> None:
    words = pack(NOT)
    assert reseal(words, 6) == words
