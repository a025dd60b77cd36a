"""The circuit obeys `docs/registers.md` on refusals and words in use: each sentence has a row."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import RECORD, RECORD_WORDS, Lane, Mode, Op, Port, Status, record_words
from support.commands import logic
from support.rtl.bench import (
    ARRAY,
    ROW,
    SIZE,
    SMALL,
    B,
    EngineBench,
    Y,
    configuration,
    on,
    searching,
    sums,
)
from support.rtl.records import Task, pack, reseal
from support.rtl.walks import Walk
from support.seeds import slow

NARROW = {"data_width": 32}
ODD = {"A_BASE": 65, "A_STRIDE": 1, "A_JUMP_1": 33, "Y_BASE": 4097, "Y_STRIDE": 1, "Y_JUMP_1": 35}


def walk(base: int, lane: Lane, mode: Mode = Mode.DENSE) -> Walk:
    """Return 2 runs of 4 elements; STRIDED elements are 16 bytes apart."""
    step = {Mode.DENSE: lane.bytes, Mode.STRIDED: 16, Mode.REPEAT: 0, Mode.SUM: 0}[mode]
    return Walk(base, [4, 2], [step, 128], mode, lane)


def task(op: Op, lane: Lane = Lane.BITS_8, out_lane: Lane | None = None, **modes: Mode) -> Task:
    """Return a command with a `walk` for A, for B if ``op`` reads it, and for Y."""
    b = walk(1024, lane, modes.get("b", Mode.DENSE)) if op.reads_b else None
    y = walk(4096, lane if out_lane is None else out_lane, modes.get("y", Mode.DENSE))
    return Task(op, walk(64, lane, modes.get("a", Mode.DENSE)), b, y)


@dataclass
class Claim:
    """A record, and its code according to the page; ``OK`` if it is executed."""

    status: Status
    task: Task
    overrides: dict[str, int] = field(default_factory=dict)
    circuit: dict[str, Any] = field(default_factory=dict)


BAD_OP, BAD_LANE, BAD_CONTROL = Status.BAD_OP, Status.BAD_LANE, Status.BAD_CONTROL
BAD_SIZE, MISALIGNED, PAST_MEMORY = Status.BAD_SIZE, Status.MISALIGNED, Status.PAST_MEMORY
OK = Status.OK
DENSE, STRIDED, REPEAT, SUM = Mode.DENSE, Mode.STRIDED, Mode.REPEAT, Mode.SUM
BITS_8, BITS_16, BITS_32, BITS_64 = Lane
COUNT = task(Op.COUNT, BITS_8, BITS_32)
WIDE_COUNT_OR = task(Op.COUNT_OR, BITS_64, BITS_32)
WIDE_COUNT = task(Op.COUNT, BITS_64, BITS_32)
STRIDED_COUNT = task(Op.COUNT, BITS_64, BITS_32, y=STRIDED)
TWO_BYTES = task(Op.NOT, BITS_16)
ODD_XOR = Task(
    Op.XOR,
    *(
        Walk(base, [4, 2], [2, step], DENSE, BITS_16)
        for base, step in ((65, 33), (1027, 21), (4097, 35))
    ),
)

LANES = {
    "SUM of A, in a beat": Claim(BAD_CONTROL, WIDE_COUNT, {"A_MODE": SUM}),
    "SUM of A, wider": Claim(BAD_LANE, WIDE_COUNT, {"A_MODE": SUM}, NARROW),
    "SUM of B, in a beat": Claim(BAD_CONTROL, WIDE_COUNT_OR, {"B_MODE": SUM}),
    "SUM of B, wider": Claim(BAD_LANE, WIDE_COUNT_OR, {"B_MODE": SUM}, NARROW),
    "SUM of A, not built": Claim(BAD_LANE, TWO_BYTES, {"A_MODE": SUM}, SMALL),
    "B_MODE without B, in a beat": Claim(BAD_CONTROL, WIDE_COUNT, {"B_MODE": REPEAT}),
    "B_MODE without B, wider": Claim(BAD_LANE, WIDE_COUNT, {"B_MODE": REPEAT}, NARROW),
    "REPEAT of Y, in a beat": Claim(BAD_CONTROL, WIDE_COUNT, {"Y_MODE": REPEAT}),
    "REPEAT of Y, wider": Claim(BAD_LANE, WIDE_COUNT, {"Y_MODE": REPEAT}, NARROW),
    "only Y is STRIDED, in a beat": Claim(OK, STRIDED_COUNT),
    "only Y is STRIDED, LANE is wider": Claim(BAD_LANE, STRIDED_COUNT, {}, NARROW),
    "only Y is STRIDED, OUT_LANE is not built": Claim(
        OK, task(Op.COUNT, BITS_8, BITS_32, y=STRIDED), {}, SMALL
    ),
    "SUM of Y, LANE is wider": Claim(OK, task(Op.COUNT, BITS_64, BITS_32, y=SUM), {}, NARROW),
    "DENSE, LANE is wider": Claim(OK, WIDE_COUNT, {}, NARROW),
    "DENSE logic, not built": Claim(OK, TWO_BYTES, {}, SMALL),
    "STRIDED logic, not built": Claim(BAD_LANE, task(Op.NOT, BITS_16, a=STRIDED), {}, SMALL),
}

ALIGNMENT = {
    "DENSE logic": Claim(OK, TWO_BYTES, {"A_STRIDE": 1, "Y_STRIDE": 1, "B_STRIDE": 1}),
    "DENSE logic from odd addresses": Claim(
        OK, ODD_XOR, {"A_STRIDE": 1, "B_STRIDE": 3, "Y_STRIDE": 5}
    ),
    **{
        f"A is {mode.name}, {name}": Claim(MISALIGNED, task(Op.NOT, BITS_16, a=mode), {name: value})
        for mode in (STRIDED, REPEAT)
        for name, value in ODD.items()
    },
    **{
        f"Y is STRIDED, {name}": Claim(
            MISALIGNED if name[0] == "Y" else OK,
            task(Op.NOT, BITS_16, y=STRIDED),
            {name: value} if name[0] == "Y" else {"A_STRIDE": 1},
        )
        for name, value in ODD.items()
    },
    **{
        f"Y of {op.name}, {name}": Claim(MISALIGNED, task(op, BITS_32), {name: value})
        for op in (Op.SHIFT_LEFT, Op.COUNT)
        for name, value in ODD.items()
        if name[0] == "Y"
    },
    "SUM, Y_STRIDE": Claim(MISALIGNED, task(Op.COUNT, BITS_8, BITS_32, y=SUM), {"Y_STRIDE": 2}),
    "counts, Y by OUT_LANE": Claim(MISALIGNED, COUNT, {"Y_STRIDE": 2}),
    "counts, A by LANE": Claim(OK, task(Op.COUNT, BITS_8, BITS_32, a=REPEAT), {"A_STRIDE": 1}),
    "DENSE A of a shift": Claim(OK, task(Op.SHIFT_LEFT, BITS_32), {"A_STRIDE": 1}),
    "DENSE B, A is STRIDED": Claim(OK, task(Op.XOR, BITS_16, a=STRIDED), {"B_STRIDE": 1}),
    "REPEAT of B": Claim(MISALIGNED, task(Op.XOR, BITS_16, b=REPEAT), {"B_STRIDE": 1}),
    "no B": Claim(
        OK,
        task(Op.NOT, BITS_16, a=STRIDED, y=STRIDED),
        {"B_STRIDE": 1, "B_JUMP_1": 1, "B_BASE": 0xFFFF_FFFF, "B_LAST": 0xFFFF_FFFF},
    ),
}

IGNORED = {
    **{
        f"SATURATE and ARITHMETIC of {op.name}": Claim(
            OK, task(op, BITS_32), {"SATURATE": 1, "ARITHMETIC": 1}
        )
        for op in (Op.XOR, Op.NOT, Op.COPY, Op.COUNT, Op.COUNT_AND)
    },
    "ARITHMETIC of SHIFT_LEFT": Claim(OK, task(Op.SHIFT_LEFT, BITS_32), {"ARITHMETIC": 1}),
    **{
        f"{name} below BASE": Claim(OK, task(Op.XOR), {name: 0})
        for name in ("A_LAST", "B_LAST", "Y_LAST")
    },
    "A_LAST beyond what A touches": Claim(OK, task(Op.XOR), {"A_LAST": 8191}),
}

TESTS = {
    **{
        f"{name} of {lane.bits} bits, {mode.name}": Claim(
            OK, replace(task(Op.COUNT_AND, lane, BITS_32, y=mode), test=True, negate=negate)
        )
        for name, negate in (("TEST", False), ("NEGATE", True))
        for lane in Lane
        for mode in (DENSE, STRIDED, SUM)
    },
    "to 8 bits": Claim(OK, replace(task(Op.COUNT_XOR, BITS_64, BITS_8), test=True)),
    "TEST of logic": Claim(BAD_CONTROL, task(Op.XOR), {"TEST": 1}),
    "TEST of a shift": Claim(BAD_CONTROL, task(Op.SHIFT_LEFT, BITS_32), {"TEST": 1}),
    "NEGATE of logic": Claim(BAD_CONTROL, task(Op.XOR), {"NEGATE": 1}),
    "NEGATE without TEST": Claim(BAD_CONTROL, COUNT, {"NEGATE": 1}),
    "counts that are not built": Claim(BAD_OP, COUNT, {"TEST": 1}, {"ops": frozenset({Op.XOR})}),
    "logic, counts are not built": Claim(
        BAD_CONTROL, task(Op.XOR), {"TEST": 1}, {"ops": frozenset({Op.XOR})}
    ),
}

NOT = logic(Op.NOT, 0, None, 4096, 64)
XOR = logic(Op.XOR, 0, 128, 4096, 64)
GATHER = Task(
    Op.COUNT,
    Walk(0, [8, 2], [8, 64], STRIDED, BITS_32),
    None,
    Walk(4096, [8, 2], [4, 32], DENSE, BITS_32),
)
SUMS = sums(Op.COUNT, Walk(0, [8, 2], [1, 64], DENSE, BITS_8), None)
SEARCH = searching(4, 2)

REFUSED = [
    (BAD_OP, NOT, {"OP": 11}),
    (BAD_LANE, NOT, {"OUT_LANE": 1}),
    (BAD_LANE, GATHER, {"OUT_LANE": 1}),
    (BAD_LANE, SUMS, {"OUT_LANE": 0}),
    (BAD_LANE, SUMS, {"OUT_LANE": 3}),
    (BAD_LANE, SEARCH, {"LANE": 1}),
    (BAD_LANE, SEARCH, {"OUT_LANE": 0}),
    (BAD_CONTROL, SUMS, {"OP": Op.COPY, "OUT_LANE": 0}),
    (BAD_CONTROL, SUMS, {"A_MODE": SUM}),
    (BAD_CONTROL, SUMS, {"NEGATE": 1}),
    (BAD_CONTROL, XOR, {"TEST": 1, "NEGATE": 1}),
    (BAD_CONTROL, GATHER, {"NEGATE": 1}),
    (BAD_CONTROL, GATHER, {"RESERVED": 1}),
    (BAD_CONTROL, SUMS, {"OP": Op.COUNT_OR, "B_MODE": SUM}),
    (BAD_CONTROL, NOT, {"LOOPS": 0}),
    (BAD_CONTROL, NOT, {"LOOPS": 5, "COUNT_4": 1}),
    (BAD_CONTROL, XOR, {"LOOPS": 6, "B_JUMP_5": 8}),
    (BAD_CONTROL, NOT, {"LOOPS": 7, "COUNT_1": 1}),
    (BAD_CONTROL, NOT, {"A_MODE": 3}),
    (BAD_CONTROL, NOT, {"Y_MODE": 2}),
    (BAD_CONTROL, NOT, {"B_MODE": 2}),
    (BAD_CONTROL, SEARCH, {"LOOPS": 2, "COUNT_1": 1}),
    (BAD_CONTROL, SEARCH, {"A_MODE": REPEAT}),
    (BAD_CONTROL, SEARCH, {"Y_MODE": SUM}),
    (BAD_SIZE, NOT, {"RUN": 0}),
    (BAD_SIZE, NOT, {"RUN": 1 << 24}),
    (BAD_SIZE, NOT, {"RUN": 1 << 23, "LANE": 1, "OUT_LANE": 1}),
    (BAD_SIZE, GATHER, {"COUNT_1": 0}),
    (BAD_SIZE, GATHER, {"COUNT_1": 1 << 24}),
    (BAD_SIZE, SUMS, {"RUN": 0}),
    (BAD_SIZE, SUMS, {"RUN": 1 << 23, "LANE": 1}),
    (BAD_SIZE, SEARCH, {"RUN": 4 * ROW + 8}),
    (BAD_SIZE, SEARCH, {"RUN": 0}),
    (BAD_SIZE, SEARCH, {"B_LAST": B + 2 * ROW}),
    (BAD_SIZE, SEARCH, {"B_LAST": B - 1}),
    (BAD_SIZE, SEARCH, {"B_LAST": B - 1, "Y_LAST": Y - 1}),
    (BAD_SIZE, SEARCH, {"B_LAST": B + 9 * ROW - 1, "Y_LAST": Y + 9 * 16 - 1}),
    (BAD_SIZE, SEARCH, {"Y_LAST": Y + 2 * 16 + 7}),
    (MISALIGNED, GATHER, {"Y_BASE": 4097}),
    (MISALIGNED, GATHER, {"A_BASE": 2}),
    (MISALIGNED, GATHER, {"A_STRIDE": 6}),
    (MISALIGNED, GATHER, {"Y_JUMP_1": 30}),
    (MISALIGNED, SUMS, {"Y_BASE": 4098}),
    (MISALIGNED, SUMS, {"Y_JUMP_1": 5}),
    (MISALIGNED, SEARCH, {"Y_BASE": Y + 4, "Y_LAST": Y + 2 * 16 + 3}),
    (PAST_MEMORY, NOT, {"A_BASE": SIZE}),
    (PAST_MEMORY, NOT, {"A_LAST": SIZE}),
    (PAST_MEMORY, NOT, {"Y_BASE": SIZE}),
    (PAST_MEMORY, NOT, {"Y_LAST": 1 << 31}),
    (PAST_MEMORY, XOR, {"B_BASE": SIZE}),
    (PAST_MEMORY, XOR, {"B_LAST": SIZE}),
    (PAST_MEMORY, SUMS, {"Y_LAST": SIZE}),
    (PAST_MEMORY, SEARCH, {"A_LAST": SIZE}),
]

CLAIMS = {
    "lanes": LANES,
    "alignment": ALIGNMENT,
    "ignored": IGNORED,
    "tests": TESTS,
    "search": {
        "SATURATE and ARITHMETIC": Claim(
            OK, SEARCH, {"SATURATE": 1, "ARITHMETIC": 1}, {"search": ARRAY}
        ),
    },
    "refused": {
        f"{given.op.name}, {width} bits, {overrides}": Claim(
            status,
            given,
            overrides,
            {"data_width": width} | ({"search": ARRAY} if given is SEARCH else {}),
        )
        for status, given, overrides in REFUSED
        for width in ((32, 64) if given is SEARCH else (32, 64, 128))
    },
}


def claims() -> Iterator[Any]:
    for topic, topics in CLAIMS.items():
        for name, claim in topics.items():
            yield on(claim.circuit, claim, name=f"{topic}: {name}")
            if claim.circuit is SMALL:
                circuit = {"lanes": SMALL["lanes"]}
                yield on(circuit, claim, name=f"{topic}: {name}, lacks lanes alone")


@pytest.mark.parametrize(("circuit", "claim"), list(claims()))
def test_what_the_page_says_of_records(circuit: dict[str, Any], claim: Claim) -> None:
    """A bad record causes no traffic; the command before it is done, the one after it is not."""
    bench = EngineBench(configuration(**circuit))
    given = replace(claim.task, overrides=claim.overrides)
    if claim.status is OK:
        bench.check([given])
        return
    op = min(bench.configuration.ops)
    good = logic(op, 512, 640 if op.reads_b else None, 5000, 40)
    expected = bench.after(good)
    tasks = [good, given, good][: bench.configuration.slots]
    assert bench.execute(tasks) == (claim.status, Port.NONE, 1, 1)
    assert bench.fault_address == 0
    assert np.array_equal(bench.memory.data, expected)
    assert sum(len(server.requests) for server in bench.servers) == 2 + op.reads_b


# --- words in use -----------------------------------------------------------------------------

LENGTHS = (6, 8, 12, 16, 20, 24, 28, 32)

IN_USE: list[tuple[int, dict[str, int]]] = [
    (6, {"OP": Op.NOT, "LOOPS": 1}),
    (6, {"OP": Op.NOT, "LOOPS": 1, "A_MODE": REPEAT}),
    (8, {"OP": Op.XOR, "LOOPS": 1, "A_MODE": REPEAT, "B_MODE": REPEAT}),
    (6, {"OP": Op.COUNT, "LOOPS": 1, "OUT_LANE": 2, "Y_MODE": SUM}),
    (8, {"OP": Op.COUNT_OR, "LOOPS": 1, "OUT_LANE": 2, "Y_MODE": SUM}),
    (6, {"OP": Op.NOT, "LOOPS": 1, "A_MODE": SUM}),
    (12, {"OP": Op.NOT, "LOOPS": 1, "A_MODE": STRIDED}),
    (12, {"OP": Op.XOR, "LOOPS": 1, "Y_MODE": STRIDED}),
    (12, {"OP": Op.NOT, "LOOPS": 1, "B_MODE": STRIDED}),
    (20, {"OP": Op.NOT, "LOOPS": 3, "B_MODE": STRIDED}),
    (6, {"OP": 10, "LOOPS": 1}),
    (12, {"OP": 10, "LOOPS": 1, "Y_MODE": STRIDED}),
    (16, {"OP": 10, "LOOPS": 2}),
    (8, {"OP": Op.SEARCH, "LOOPS": 1, "OUT_LANE": 2}),
    (8, {"OP": Op.SHIFT_LEFT, "LOOPS": 1}),
    (24, {"OP": Op.NOT, "LOOPS": 4}),
    (28, {"OP": Op.NOT, "LOOPS": 5}),
    (32, {"OP": Op.XOR, "LOOPS": 6}),
    (6, {"OP": Op.NOT, "LOOPS": 0}),
    (8, {"OP": Op.XOR, "LOOPS": 0}),
    (12, {"OP": Op.XOR, "LOOPS": 0, "A_MODE": STRIDED}),
    (6, {"OP": Op.NOT, "LOOPS": 7}),
    (8, {"OP": Op.XOR, "LOOPS": 7}),
    (12, {"OP": Op.NOT, "LOOPS": 7, "Y_MODE": STRIDED}),
]
"""Number of words in use, and the fields of CONTROL that determine it."""


@pytest.mark.parametrize(
    ("width", "options"),
    [(64, SMALL), *(slow(width, {"ops": SMALL["ops"]}) for width in (32, 64, 128))],
)
def test_how_many_words_of_a_record_are_in_use(width: int, options: dict[str, Any]) -> None:
    """Only a seal over exactly these words is right. The circuit lacks SEARCH and SHIFT_LEFT, and
    has four loops; all addresses are outside the memory, so that nothing can be executed."""
    bench = EngineBench(configuration(data_width=width, **options))
    words = [0xFFFF_0000] * RECORD_WORDS
    for bit, length in enumerate(LENGTHS):
        words[length - 1] |= 1 << bit

    async def host(ctx: Any) -> None:
        for expected, fields in IN_USE:
            modes = tuple(fields.get(f"{stream}_MODE", 0) for stream in "ABY")
            assert record_words(fields["OP"], fields["LOOPS"], modes) == expected
            words[0] = sum(bits.insert(fields.get(bits.name, 0)) for bits in RECORD["CONTROL"].bits)
            for length in LENGTHS:
                await bench.finish(ctx, reseal(words, length))
                code = Status(await bench.register(ctx, "FAULT", "CODE"))
                right = length == expected
                assert (code is not Status.BAD_SEAL) == right, f"{fields}, sealed {length}: {code}"
                assert code is not OK
                await bench.clear(ctx)
                await ctx.tick().repeat(4)

    bench.run(host, deadline=60_000)
    assert not any(server.requests for server in bench.servers)


@pytest.mark.parametrize("width", [64, slow(128)])
def test_words_beyond_those_in_use_are_not_read(width: int) -> None:
    bench = EngineBench(configuration(data_width=width))
    expected = bench.after(NOT)
    words = pack(NOT)
    assert len(words) == record_words(Op.NOT, 1, (DENSE,) * 3) == 6
    assert reseal(words, 6) == words

    async def host(ctx: Any) -> None:
        await bench.finish(ctx, words + [0xDEADBEEF] * (RECORD_WORDS - 6))

    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


def test_a_record_with_any_flipped_bit_is_refused(width: int) -> None:
    """Those of the seal, and others at random; a flip in CONTROL may change the words in use."""
    bench = EngineBench(configuration(data_width=width))
    words, before = pack(GATHER), bench.memory.data.copy()
    others = random.Random(width).sample(range(32 * len(words)), 16)

    async def host(ctx: Any) -> None:
        for bit in (*range(24, 32), *others):
            flipped = list(words)
            flipped[bit // 32] ^= 1 << bit % 32
            await bench.finish(ctx, flipped)
            assert await bench.register(ctx, "FAULT", "CODE") != OK, f"bit {bit}"
            await bench.clear(ctx)
            await ctx.tick().repeat(4)

    bench.run(host)
    assert np.array_equal(bench.memory.data, before)
