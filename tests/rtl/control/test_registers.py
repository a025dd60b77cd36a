"""The control window reads and writes what `abi` says, and nothing else."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bitlane_rtl.abi import (
    ABI_VERSION,
    COMPLETION_OFFSET,
    CONTROL_SIZE,
    IDENTITY,
    LOGIC_OPS,
    RECORD_BYTES,
    REGISTERS,
    RING_OFFSET,
    Access,
    Lane,
    Mode,
    Op,
    Port,
    register,
)
from bitlane_rtl.abi.rows import Rows
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.control.registers import EVENTS, Registers
from support.rtl.streams import elaborated, simulate

CONFIGURATION = Configuration(
    memory_base=0x1000_0000,
    memory_bytes=0x2000_0000,
    length_bits=20,
    count_bits=18,
    slots=8,
    rows=Rows(size_log2=12, banks_log2=2, word_bytes_log2=1),
)


async def write(ctx: Any, dut: Registers, offset: int, word: int) -> None:
    ctx.set(dut.control.address, offset)
    ctx.set(dut.control.write_data, word)
    ctx.set(dut.control.write, 1)
    await ctx.tick()
    ctx.set(dut.control.write, 0)
    ctx.set(dut.control.write_data, ~word & 0xFFFF_FFFF)
    ctx.set(dut.control.address, 0x3FFC)


async def read(ctx: Any, dut: Registers, offset: int) -> int:
    ctx.set(dut.control.address, offset)
    ctx.set(dut.control.read, 1)
    await ctx.tick()
    ctx.set(dut.control.read, 0)
    ctx.set(dut.control.address, 0x3FFC)
    word: int = ctx.get(dut.control.read_data)
    return word


async def read_by_name(ctx: Any, dut: Registers, name: str) -> int:
    return await read(ctx, dut, register(name).offset)


def check(
    bench: Callable[[Any, Registers], Awaitable[None]], configuration: Configuration = CONFIGURATION
) -> None:
    dut = elaborated(Registers, configuration)

    async def testbench(ctx: Any) -> None:
        await bench(ctx, dut)

    simulate(dut, testbench)


def test_what_the_circuit_is() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        assert await read_by_name(ctx, dut, "IDENTITY") == IDENTITY
        assert await read_by_name(ctx, dut, "VERSION") == ABI_VERSION
        assert await read_by_name(ctx, dut, "MEMORY_BASE") == 0x1000_0000
        assert await read_by_name(ctx, dut, "MEMORY_LAST") == 0x2FFF_FFFF
        word = await read_by_name(ctx, dut, "GEOMETRY")
        fields = {bits.name: bits.extract(word) for bits in register("GEOMETRY").bits}
        assert fields == {
            "DATA_BYTES_LOG2": 3,
            "LOOPS": 4,
            "SLOTS_LOG2": 3,
            "ROWS_LOG2": 12,
            "LENGTH_BITS": 20,
            "WORD_BYTES_LOG2": 1,
            "COUNT_BITS": 18,
            "BANKS_LOG2": 2,
        }

    check(bench)


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (
            Configuration(),
            {"OPS": 0xF3FF, "LANES": 0xF, "MODES": 15, "READ_PORTS": 2, "COUNTERS": 1},
        ),
        (
            Configuration(ops=frozenset({Op.NOT}), modes=frozenset({Mode.DENSE}), counters=False),
            {"OPS": 0x80, "LANES": 0, "MODES": 1, "READ_PORTS": 1, "COUNTERS": 0},
        ),
        (
            Configuration(ops=LOGIC_OPS, read_ports=1),
            {"OPS": 0xFF, "LANES": 0, "MODES": 7, "READ_PORTS": 1, "COUNTERS": 1},
        ),
        (
            Configuration(
                ops=frozenset({Op.XOR, Op.COUNT}), lanes=frozenset({Lane.BITS_8, Lane.BITS_32})
            ),
            {"OPS": 0x8004, "LANES": 5, "MODES": 15, "READ_PORTS": 2, "COUNTERS": 1},
        ),
    ],
)
def test_what_the_circuit_can_do(configuration: Configuration, expected: dict[str, int]) -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        word = await read_by_name(ctx, dut, "CAPABILITIES")
        assert {b.name: b.extract(word) for b in register("CAPABILITIES").bits} == expected

    check(bench, configuration)


def test_what_reset_leaves() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        ctx.set(dut.drained, 1)
        for entry in REGISTERS:
            if entry.reset is not None:
                assert await read(ctx, dut, entry.offset) == entry.reset, entry.name

    check(bench)


def test_state_of_the_engine() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        status = register("STATUS")
        for name in ("busy", "fault", "drained"):
            ctx.set(getattr(dut, name), 1)
            assert await read_by_name(ctx, dut, "STATUS") == status[name.upper()].insert(1)
            ctx.set(getattr(dut, name), 0)
        ctx.set(dut.retired, 0xBEEF)
        assert await read_by_name(ctx, dut, "RETIRED") == 0xBEEF

    check(bench)


def test_a_fault_shows_only_while_there_is_one() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        ctx.set(dut.fault_code, 0xA5)
        ctx.set(dut.fault_port, 2)
        ctx.set(dut.fault_index, 0xC3D2)
        ctx.set(dut.fault_address, 0x87654321)
        for name in ("FAULT", "FAULT_ADDRESS"):
            assert await read_by_name(ctx, dut, name) == 0
        ctx.set(dut.fault, 1)
        word = await read_by_name(ctx, dut, "FAULT")
        entry = register("FAULT")
        assert entry["CODE"].extract(word) == 0xA5
        assert entry["PORT"].extract(word) == 2
        assert entry["INDEX"].extract(word) == 0xC3D2
        assert await read_by_name(ctx, dut, "FAULT_ADDRESS") == 0x87654321

    check(bench)


def test_a_fault_without_a_port_has_no_address() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        ctx.set(dut.fault, 1)
        ctx.set(dut.fault_address, 0x87654321)
        for port in Port:
            ctx.set(dut.fault_port, port)
            address = 0 if port is Port.NONE else 0x87654321
            assert await read_by_name(ctx, dut, "FAULT_ADDRESS") == address
            assert register("FAULT")["PORT"].extract(await read_by_name(ctx, dut, "FAULT")) == port

    check(bench)


def test_the_doorbell_rings_in_the_next_cycle() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        assert ctx.get(dut.doorbell) == 0
        await write(ctx, dut, register("DOORBELL").offset, 0x9876_5432)
        assert ctx.get(dut.doorbell) == 0x5432
        assert await read_by_name(ctx, dut, "DOORBELL") == 0x5432

    check(bench)


@pytest.mark.parametrize("slots", [2, 8, 32])
def test_a_doorbell_is_bad_if_it_is_too_far_ahead_or_behind(slots: int) -> None:
    edges = {0, 1, slots - 1, slots, slots + 1, 2 * slots, 0x7FFF, 0x8000, 0xFFFF, -slots}

    async def bench(ctx: Any, dut: Registers) -> None:
        for retired in (0, 1, slots - 1, 0x7FFF, 0x8000, 0xFFFF, 0x10000 - slots):
            for before in (0, 1, slots - 1, slots):
                for ahead in sorted(edges | {before - 1, before + 1}):
                    ctx.set(dut.retired, retired)
                    await write(ctx, dut, register("DOORBELL").offset, retired + before & 0xFFFF)
                    await ctx.tick()
                    where = f"{retired}: {before}, then {ahead}"
                    assert ctx.get(dut.bad_doorbell) == 0, where
                    assert ctx.get(dut.rung) == 0, where
                    await write(ctx, dut, register("DOORBELL").offset, retired + ahead & 0xFFFF)
                    bad = not before <= ahead <= slots
                    assert ctx.get(dut.bad_doorbell) == bad, where
                    assert ctx.get(dut.rung) == 1, where
                    ctx.set(dut.flush, 1)
                    await ctx.tick()
                    ctx.set(dut.flush, 0)
                    ctx.set(dut.retired, 0)
                    assert ctx.get(dut.bad_doorbell) == 0, where

    check(bench, Configuration(slots=slots))


def test_clear_holds_until_the_engine_flushes() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        await write(ctx, dut, register("DOORBELL").offset, 7)
        await write(ctx, dut, register("CLEAR").offset, 0xFFFF_FFFE)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.clear) == 0, "writing 0 cleared"
        await write(ctx, dut, register("CLEAR").offset, 1)
        await ctx.tick()
        for _ in range(5):
            assert ctx.get(dut.clear) == 1
            assert ctx.get(dut.doorbell) == 7
            await ctx.tick()
        ctx.set(dut.flush, 1)
        assert ctx.get(dut.clear) == 1
        await ctx.tick()
        ctx.set(dut.flush, 0)
        assert ctx.get(dut.clear) == 0
        assert ctx.get(dut.doorbell) == 0
        assert await read_by_name(ctx, dut, "CLEAR") == 0

    check(bench)


def test_the_timeout_can_be_set() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        assert ctx.get(dut.timeout) == register("TIMEOUT").reset == 1 << 20
        await write(ctx, dut, register("TIMEOUT").offset, 0xFEDC_BA98)
        assert await read_by_name(ctx, dut, "TIMEOUT") == 0xFEDC_BA98
        assert ctx.get(dut.timeout) == 0xFEDC_BA98

    check(bench)


def test_the_interrupt_line_is_pending_and_enable() -> None:
    entry = register("INTERRUPT")
    enable, pending = entry["ENABLE"].insert(1), entry["PENDING"].insert(1)

    async def pulse(ctx: Any, dut: Registers) -> None:
        ctx.set(dut.interrupt_set, 1)
        await ctx.tick()
        ctx.set(dut.interrupt_set, 0)

    async def bench(ctx: Any, dut: Registers) -> None:
        await pulse(ctx, dut)
        assert ctx.get(dut.irq) == 0, "not enabled yet"
        assert await read(ctx, dut, entry.offset) == pending
        await write(ctx, dut, entry.offset, enable)
        assert await read(ctx, dut, entry.offset) == pending | enable
        assert ctx.get(dut.irq) == 1
        await write(ctx, dut, entry.offset, enable | pending)
        assert await read(ctx, dut, entry.offset) == enable
        assert ctx.get(dut.irq) == 0
        await pulse(ctx, dut)
        assert ctx.get(dut.irq) == 1
        # A new cause in the very cycle of the acknowledgement is not lost.
        await write(ctx, dut, entry.offset, enable | pending)
        await pulse(ctx, dut)
        assert ctx.get(dut.irq) == 1
        await write(ctx, dut, entry.offset, pending)
        assert await read(ctx, dut, entry.offset) == 0

    check(bench)


def test_each_counter_counts_its_own_event() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        expected = {}
        for cycles, event in enumerate(EVENTS, start=1):
            name = "BUSY_CYCLES" if event == "busy" else event.upper() + "S"
            ctx.set(getattr(dut, event), 1)
            await ctx.tick().repeat(cycles)
            ctx.set(getattr(dut, event), 0)
            expected[name] = cycles
        await ctx.tick()
        assert {name: await read_by_name(ctx, dut, name) for name in expected} == expected
        await write(ctx, dut, register("COUNTERS_CLEAR").offset, 0xFFFF_FFFE)
        assert {name: await read_by_name(ctx, dut, name) for name in expected} == expected
        await write(ctx, dut, register("COUNTERS_CLEAR").offset, 1)
        assert [await read_by_name(ctx, dut, name) for name in expected] == [0] * len(expected)

    check(bench)


def test_without_counters_they_read_0() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        for event in EVENTS:
            ctx.set(getattr(dut, event), 1)
        await ctx.tick().repeat(5)
        assert not any([await read_by_name(ctx, dut, name) for name in EVENTS.values()])

    check(bench, Configuration(counters=False))


@pytest.mark.parametrize("slots", [2, 8, 32])
def test_only_the_words_of_the_ring_reach_it(slots: int) -> None:
    words = slots * RECORD_BYTES // 4
    rng = random.Random(slots)
    edges = [RING_OFFSET - 4, RING_OFFSET, RING_OFFSET + 4 * words - 4, RING_OFFSET + 4 * words]
    inside = [RING_OFFSET + 4 * rng.randrange(words) for _ in range(40)]
    anywhere = [4 * rng.randrange(CONTROL_SIZE // 4) for _ in range(100)]

    async def bench(ctx: Any, dut: Registers) -> None:
        for offset in edges + inside + anywhere:
            word = rng.getrandbits(32)
            assert ctx.get(dut.ring_write) == 0
            await write(ctx, dut, offset, word)
            hit = RING_OFFSET <= offset < RING_OFFSET + 4 * words
            assert ctx.get(dut.ring_write) == hit, hex(offset)
            if hit:
                assert ctx.get(dut.ring_write_address) == (offset - RING_OFFSET) // 4
                assert ctx.get(dut.ring_write_data) == word
            await ctx.tick()

    check(bench, Configuration(slots=slots))


@pytest.mark.parametrize("slots", [2, 32])
def test_completions_are_read_through_the_window(slots: int) -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        for slot in range(slots):
            ctx.set(dut.control.address, COMPLETION_OFFSET + 4 * slot)
            ctx.set(dut.control.read, 1)
            assert ctx.get(dut.completion_address) == slot
            await ctx.tick()
            ctx.set(dut.control.read, 0)
            ctx.set(dut.completion_data, 0x8000_0001 + slot)
            assert ctx.get(dut.control.read_data) == 0x8000_0001 + slot
        assert await read(ctx, dut, COMPLETION_OFFSET + 4 * slots) == 0
        assert await read(ctx, dut, COMPLETION_OFFSET - 4) == 0

    check(bench, Configuration(slots=slots))


def test_what_is_not_mapped_reads_0() -> None:
    mapped = {entry.offset for entry in REGISTERS}
    mapped |= {COMPLETION_OFFSET + 4 * slot for slot in range(CONFIGURATION.slots)}

    async def bench(ctx: Any, dut: Registers) -> None:
        ctx.set(dut.completion_data, 0xFFFF_FFFF)
        for event in EVENTS:
            ctx.set(getattr(dut, event), 1)
        ctx.set(dut.control.read, 1)
        for offset in range(0, CONTROL_SIZE, 4):
            if offset not in mapped:
                ctx.set(dut.control.address, offset)
                await ctx.tick()
                assert ctx.get(dut.control.read_data) == 0, hex(offset)

    check(bench)


def test_writes_elsewhere_and_reads_change_nothing() -> None:
    writable = {entry.offset for entry in REGISTERS if entry.access != Access.READ}
    names = [entry.name for entry in REGISTERS]

    async def bench(ctx: Any, dut: Registers) -> None:
        before = [await read_by_name(ctx, dut, name) for name in names]
        ctx.set(dut.control.write_data, 0xFFFF_FFFF)
        for offset in range(0, CONTROL_SIZE, 4):
            ctx.set(dut.control.address, offset)
            ctx.set(dut.control.write, offset not in writable)
            ctx.set(dut.control.read, offset in writable)
            await ctx.tick()
            assert ctx.get(dut.clear) == ctx.get(dut.irq) == 0, hex(offset)
        ctx.set(dut.control.write, 0)
        ctx.set(dut.control.read, 0)
        assert [await read_by_name(ctx, dut, name) for name in names] == before

    check(bench)


def test_a_read_after_a_write_sees_it_without_a_pause() -> None:
    async def bench(ctx: Any, dut: Registers) -> None:
        rng = random.Random(1)
        for _ in range(50):
            name = rng.choice(["DOORBELL", "TIMEOUT"])
            word = rng.getrandbits(32)
            await write(ctx, dut, register(name).offset, word)
            seen = await read_by_name(ctx, dut, name)
            assert seen == word & (0xFFFF if name == "DOORBELL" else 0xFFFF_FFFF)

    check(bench)
