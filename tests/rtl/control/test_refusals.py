"""Each record is refused with the code that the contract says, or with none.

The codes come from `bitlane_sim.fields`, which follows the words of `abi`. Commands are counted in
and out, and the first fault stops all; the ring stores their records.
"""

import random
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from bitlane_rtl.abi import (
    COMPLETION,
    COUNT_OPS,
    RECORD_WORDS,
    Lane,
    Mode,
    Op,
    Port,
    Status,
    register,
)
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import small
from bitlane_rtl.control import Completions, Refusals, Retirement, Ring
from support.record import Record, random_record
from support.rtl.streams import clocked, compiled, simulate
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


# --- retirement -----------------------------------------------------------------------------------


LEVELS = ("clear", "drained", "failure")
"""Inputs that stay until they are set again; the others are 1 for one cycle."""

OUTPUTS = ("idle", "stop", "flush", "fault", "retired", "completion")
REPORT = {"code": Status.READ_ERROR, "port": Port.READ_B, "address": 0x1230}


def trace(*cycles: dict[str, Any], names: tuple[str, ...] = OUTPUTS) -> dict[str, list[Any]]:
    """Return the outputs ``names`` in each cycle, while the inputs are those of ``cycles``."""
    inputs = {"drained": 1, "failure": REPORT, "refusal": Status.BAD_CONTROL}
    given: list[dict[str, Any]] = []
    for cycle in cycles:
        given.append(inputs | cycle)
        inputs = {name: 0 for name in cycle if name not in LEVELS}
    found = clocked(compiled(Retirement, small()), given, *names)
    return {name: [*levels] for name, levels in zip(names, found, strict=True)}


def test_a_command_retires_with_one_completion() -> None:
    seen = trace({"start": 1}, {}, {"retire": 1}, {}, {}, {})
    assert seen["idle"] == [1, 0, 0, 0, 1, 1]
    assert seen["retired"] == [0, 0, 0, 1, 1, 1]
    assert seen["completion"] == [0, 0, 0, 1, 0, 0]
    assert not any(seen["stop"] + seen["fault"])


def test_a_command_may_end_in_the_cycle_after_its_start() -> None:
    names = ("idle", "retired", "completion_interrupt")
    seen = trace({"start": 1, "interrupt": 1}, {"retire": 1}, {}, {}, names=names)
    assert seen["idle"] == [1, 0, 0, 1]
    assert seen["retired"] == [0, 0, 1, 1]
    assert seen["completion_interrupt"] == [0, 0, 1, 0]


def test_idle_waits_for_every_command() -> None:
    start, end = {"start": 1}, {"retire": 1}
    seen = trace(start, start, {}, end, {}, {}, {"start": 1, "retire": 1}, {}, end, {}, {}, {})
    assert seen["idle"] == [1] + [0] * 9 + [1, 1]


@pytest.mark.parametrize("interrupt", [0, 1])
def test_a_completion_raises_the_interrupt_of_its_command(interrupt: int) -> None:
    names = ("completion_index", "completion_status", "completion_interrupt")
    first = {"start": 1, "interrupt": interrupt}
    second = {"start": 1, "interrupt": 1 - interrupt}
    seen = trace(first, second, {}, {"retire": 1}, {"retire": 1}, {}, {}, names=names)
    assert seen["completion_interrupt"] == [0, 0, 0, 0, interrupt, 1 - interrupt, 0]
    assert seen["completion_index"][4:6] == [0, 1]
    assert set(seen["completion_status"]) == {Status.OK}


def test_a_failure_stops_in_one_cycle_and_is_latched_in_two() -> None:
    seen = trace({"start": 1}, {}, {"failed": 1}, {}, {"retire": 1}, {}, {})
    assert seen["stop"] == [0, 0, 0, 1, 1, 1, 1]
    assert seen["fault"] == [0, 0, 0, 0, 1, 1, 1]
    assert seen["completion"] == [0, 0, 0, 0, 1, 0, 0]
    assert seen["retired"] == [0] * 7, "nothing retires after a fault"


def test_a_refusal_waits_for_its_doorbell_and_is_latched_in_one_cycle() -> None:
    seen = trace({"rung": 1, "refused": 1}, {"refused": 1}, {}, {})
    assert seen["fault"] == seen["stop"] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("cause", "code", "port"),
    [
        ({"failed": 1}, Status.READ_ERROR, Port.READ_B),
        ({"refused": 1}, Status.BAD_CONTROL, Port.NONE),
        ({"rung": 1, "bad_doorbell": 1}, Status.BAD_DOORBELL, Port.NONE),
    ],
)
def test_the_report_names_the_first_cause(cause: dict[str, Any], code: int, port: int) -> None:
    later = {"failed": 1, "failure": {"code": Status.TIMEOUT, "port": Port.WRITE, "address": 0}}
    seen = trace({"start": 1}, {}, cause, {}, later, {}, {}, names=("report", "fault"))
    assert seen["fault"][-1] == 1
    report = seen["report"][-1]
    assert (report["code"], report["port"]) == (code, port)


def test_clear_waits_until_the_bus_is_drained() -> None:
    """While a command runs, `drained` counts from the second cycle of `stop` on."""
    seen = trace({"start": 1}, {"clear": 1}, {}, {}, {}, {})
    assert seen["flush"] == [0, 0, 0, 0, 1, 0]
    late = [{"start": 1}, {"clear": 1, "drained": 0}, {}, {}, {"drained": 1}, {}, {"clear": 0}, {}]
    seen = trace(*late)
    assert seen["stop"] == [0, 0, 1, 1, 1, 1, 1, 0]
    assert seen["flush"] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert seen["idle"][-2:] == [1, 1]


# --- the ring -------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [2, 16])
def test_a_group_of_words_is_read_while_others_are_written(slots: int, width: int) -> None:
    """The group has the words of all cycles before, and stays until the next read."""
    rng, columns = random.Random(slots * width), width // 32
    order = rng.sample(range(slots * RECORD_WORDS), slots * RECORD_WORDS)
    stored: dict[int, int] = {}
    inputs: list[dict[str, int]] = []
    expected: list[int | None] = [None]
    for word in [*order, *rng.choices(order, k=1500)]:
        others = set(range(len(order) // columns)) - {word // columns}
        address, data = rng.choice(sorted(others)), rng.getrandbits(32)
        write, read = len(stored) < len(order) or rng.random() < 0.7, rng.random() < 0.7
        inputs.append({"write.enable": write, "write.address": word, "write.data": data})
        inputs[-1] |= {"read.enable": read, "read.address": address}
        expected.append(expected[-1])
        if read:
            words = [stored.get(columns * address + column, -1) for column in range(columns)]
            joined = sum(each << 32 * column for column, each in enumerate(words))
            expected[-1] = None if -1 in words else joined
        if write:
            stored[word] = data
    (found,) = clocked(Ring(slots, columns), [*inputs, {}], "read.words")
    wrong = [n for n, want in enumerate(expected) if want not in (None, found[n])]
    assert not wrong, f"cycles {wrong}"
    assert sum(want is not None for want in expected) > 1000


def test_completions_come_back_by_slot() -> None:
    slots, rng = 16, random.Random(5)
    words = [0] * slots
    inputs, expected = list[dict[str, int]](), [0]
    for _ in range(300):
        slot, other = rng.randrange(slots), rng.randrange(slots)
        status, index = rng.getrandbits(8), rng.getrandbits(12) << 4 | slot
        write = rng.random() < 0.5 and slot != other
        inputs.append({"write": write, "status": status, "index": index, "read_slot": other})
        expected.append(words[other])
        if write:
            words[slot] = index << 8 | status
    (found,) = clocked(Completions(slots), [*inputs, {}], "read_data")
    assert [*found] == expected


def test_a_completion_has_room_for_what_the_circuit_counts() -> None:
    """A completion's index has as many bits as the counters in RETIRED and FAULT."""
    dut = Completions(2)
    _, index = COMPLETION
    assert (index.low, len(dut.index)) == (8, index.width)
    assert index.width == register("RETIRED")["COUNT"].width == register("FAULT")["INDEX"].width
