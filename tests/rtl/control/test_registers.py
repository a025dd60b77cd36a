"""The registers of the control window, and the activity of the readers that they count."""

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
    Rows,
    register,
)
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.control import EVENTS, ReadActivity, Registers
from support.rtl.bench import Host
from support.rtl.streams import clocked, compiled, simulate

CONFIGURATION = Configuration(
    memory_base=0x1000_0000,
    memory_bytes=0x2000_0000,
    length_bits=20,
    count_bits=18,
    slots=8,
    rows=Rows(size_log2=12, banks_log2=2, word_bytes_log2=1),
)


Bench = Callable[[Host], Awaitable[None]]


def check(bench: Bench, configuration: Configuration = CONFIGURATION) -> None:
    dut = compiled(Registers, configuration)
    simulate(dut, lambda ctx: bench(Host(ctx, dut)))


def simulated(bench: Bench) -> Callable[[], None]:
    """Make a test of a testbench for the registers of `CONFIGURATION`."""
    return lambda: check(bench)


@simulated
async def test_what_the_circuit_is(host: Host) -> None:
    assert await host.read("IDENTITY") == IDENTITY
    assert await host.read("VERSION") == ABI_VERSION
    assert await host.read("MEMORY_BASE") == 0x1000_0000
    assert await host.read("MEMORY_LAST") == 0x2FFF_FFFF
    assert await host.fields("GEOMETRY") == {
        "DATA_BYTES_LOG2": 3,
        "LOOPS": 4,
        "SLOTS_LOG2": 3,
        "ROWS_LOG2": 12,
        "LENGTH_BITS": 20,
        "WORD_BYTES_LOG2": 1,
        "COUNT_BITS": 18,
        "BANKS_LOG2": 2,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0xF3FF, 0xF, 15, 2, 1]),
        ({"ops": {Op.NOT}, "modes": {Mode.DENSE}, "counters": False}, [0x80, 0, 1, 1, 0]),
        ({"ops": LOGIC_OPS, "read_ports": 1}, [0xFF, 0, 7, 1, 1]),
        ({"ops": {Op.XOR, Op.COUNT}, "lanes": {Lane.BITS_8, Lane.BITS_32}}, [0x8004, 5, 15, 2, 1]),
    ],
)
def test_what_the_circuit_can_do(options: dict[str, Any], expected: list[int]) -> None:
    names = ("OPS", "LANES", "MODES", "READ_PORTS", "COUNTERS")

    async def bench(host: Host) -> None:
        assert await host.fields("CAPABILITIES") == dict(zip(names, expected, strict=True))

    sets = {name: frozenset(x) if isinstance(x, set) else x for name, x in options.items()}
    check(bench, Configuration(**sets))


@simulated
async def test_what_reset_leaves(host: Host) -> None:
    host.set(drained=1)
    for entry in REGISTERS:
        if entry.reset is not None:
            assert await host.read(entry.name) == entry.reset, entry.name


@simulated
async def test_state_of_the_engine(host: Host) -> None:
    status = register("STATUS")
    for name in ("busy", "fault", "drained"):
        host.set(**{name: 1})
        assert await host.read("STATUS") == status[name.upper()].insert(1)
        host.set(**{name: 0})
    host.set(retired=0xBEEF)
    assert await host.read("RETIRED") == 0xBEEF


@simulated
async def test_a_fault_shows_while_there_is_one_and_an_address_if_it_has_a_port(host: Host) -> None:
    for port in Port:
        host.set(retired=0xC3D2, report={"code": 0xA5, "port": port, "address": 0x87654321})
        host.set(fault=0)
        for name in ("FAULT", "FAULT_ADDRESS"):
            assert await host.read(name) == 0
        host.set(fault=1)
        assert await host.fields("FAULT") == {"CODE": 0xA5, "PORT": port, "INDEX": 0xC3D2}
        assert await host.read("FAULT_ADDRESS") == (0 if port is Port.NONE else 0x87654321)


@simulated
async def test_the_doorbell_rings_in_the_next_cycle(host: Host) -> None:
    assert host.get("doorbell") == 0
    await host.write("DOORBELL", 0x9876_5432)
    assert host.get("doorbell") == 0x5432
    assert await host.read("DOORBELL") == 0x5432


@pytest.mark.parametrize("slots", [2, 8, 32])
def test_a_doorbell_is_bad_if_it_is_too_far_ahead_or_behind(slots: int) -> None:
    edges = {0, 1, slots - 1, slots, slots + 1, 2 * slots, 0x7FFF, 0x8000, 0xFFFF, -slots}

    async def bench(host: Host) -> None:
        for retired in (0, 1, slots - 1, 0x7FFF, 0x8000, 0xFFFF, 0x10000 - slots):
            for before in (0, 1, slots - 1, slots):
                for ahead in sorted(edges | {before - 1, before + 1}):
                    host.set(retired=retired)
                    await host.write("DOORBELL", retired + before & 0xFFFF)
                    await host.tick()
                    where = f"{retired}: {before}, then {ahead}"
                    assert host.get("bad_doorbell") == 0, where
                    assert host.get("rung") == 0, where
                    await host.write("DOORBELL", retired + ahead & 0xFFFF)
                    bad = not before <= ahead <= slots
                    assert host.get("bad_doorbell") == bad, where
                    assert host.get("rung") == 1, where
                    await host.pulse("flush")
                    host.set(retired=0)
                    assert host.get("bad_doorbell") == 0, where

    check(bench, Configuration(slots=slots))


@simulated
async def test_clear_holds_until_the_engine_flushes(host: Host) -> None:
    await host.write("DOORBELL", 7)
    await host.write("CLEAR", 0xFFFF_FFFE)
    await host.tick(3)
    assert host.get("clear") == 0, "writing 0 cleared"
    await host.write("CLEAR", 1)
    await host.tick()
    for _ in range(5):
        assert host.get("clear") == 1
        assert host.get("doorbell") == 7
        await host.tick()
    host.set(flush=1)
    assert host.get("clear") == 1
    await host.tick()
    host.set(flush=0)
    assert host.get("clear") == 0
    assert host.get("doorbell") == 0
    assert await host.read("CLEAR") == 0


@simulated
async def test_the_timeout_can_be_set(host: Host) -> None:
    assert host.get("timeout") == register("TIMEOUT").reset == 1 << 20
    await host.write("TIMEOUT", 0xFEDC_BA98)
    assert await host.read("TIMEOUT") == 0xFEDC_BA98
    assert host.get("timeout") == 0xFEDC_BA98


@simulated
async def test_the_interrupt_line_is_pending_and_enable(host: Host) -> None:
    entry = register("INTERRUPT")
    enable, pending = entry["ENABLE"].insert(1), entry["PENDING"].insert(1)
    await host.pulse("interrupt_set")
    assert host.get("irq") == 0, "not enabled yet"
    assert await host.read(entry.name) == pending
    await host.write("INTERRUPT", enable)
    assert await host.read(entry.name) == pending | enable
    assert host.get("irq") == 1
    await host.write("INTERRUPT", enable | pending)
    assert await host.read(entry.name) == enable
    assert host.get("irq") == 0
    await host.pulse("interrupt_set")
    assert host.get("irq") == 1
    # A new cause in the very cycle of the acknowledgement is not lost.
    await host.write("INTERRUPT", enable | pending)
    await host.pulse("interrupt_set")
    assert host.get("irq") == 1
    await host.write("INTERRUPT", pending)
    assert await host.read(entry.name) == 0


@simulated
async def test_each_counter_counts_its_own_event(host: Host) -> None:
    expected = {}
    for cycles, event in enumerate(EVENTS, start=1):
        name = "BUSY_CYCLES" if event == "busy" else event.upper() + "S"
        await host.pulse(event, cycles)
        expected[name] = cycles
    await host.tick()
    assert {name: await host.read(name) for name in expected} == expected
    await host.write("COUNTERS_CLEAR", 0xFFFF_FFFE)
    assert {name: await host.read(name) for name in expected} == expected
    await host.write("COUNTERS_CLEAR", 1)
    assert [await host.read(name) for name in expected] == [0] * len(expected)


def test_without_counters_they_read_0() -> None:
    async def bench(host: Host) -> None:
        host.set(**dict.fromkeys(EVENTS, 1))
        await host.tick(5)
        assert not any([await host.read(name) for name in EVENTS.values()])

    check(bench, Configuration(counters=False))


@pytest.mark.parametrize("slots", [2, 8, 32])
def test_only_the_words_of_the_ring_reach_it(slots: int) -> None:
    words = slots * RECORD_BYTES // 4
    rng = random.Random(slots)
    edges = [RING_OFFSET - 4, RING_OFFSET, RING_OFFSET + 4 * words - 4, RING_OFFSET + 4 * words]
    inside = [RING_OFFSET + 4 * rng.randrange(words) for _ in range(40)]
    anywhere = [4 * rng.randrange(CONTROL_SIZE // 4) for _ in range(100)]

    async def bench(host: Host) -> None:
        for offset in edges + inside + anywhere:
            word = rng.getrandbits(32)
            assert host.get("ring.enable") == 0
            await host.write(offset, word)
            hit = RING_OFFSET <= offset < RING_OFFSET + 4 * words
            assert host.get("ring.enable") == hit, hex(offset)
            if hit:
                assert host.get("ring.address") == (offset - RING_OFFSET) // 4
                assert host.get("ring.data") == word
            await host.tick()

    check(bench, Configuration(slots=slots))


@pytest.mark.parametrize("slots", [2, 32])
def test_completions_are_read_through_the_window(slots: int) -> None:
    async def bench(host: Host) -> None:
        for slot in range(slots):
            host.access(COMPLETION_OFFSET + 4 * slot, read=1)
            assert host.get("completion_address") == slot
            await host.tick()
            host.access(read=0)
            host.set(completion_data=0x8000_0001 + slot)
            assert host.get("control.read_data") == 0x8000_0001 + slot
        assert await host.read(COMPLETION_OFFSET + 4 * slots) == 0
        assert await host.read(COMPLETION_OFFSET - 4) == 0

    check(bench, Configuration(slots=slots))


@simulated
async def test_what_is_not_mapped_reads_0(host: Host) -> None:
    mapped = {entry.offset for entry in REGISTERS}
    mapped |= {COMPLETION_OFFSET + 4 * slot for slot in range(CONFIGURATION.slots)}
    host.set(completion_data=0xFFFF_FFFF)
    host.set(**dict.fromkeys(EVENTS, 1))
    host.access(read=1)
    for offset in range(0, CONTROL_SIZE, 4):
        if offset not in mapped:
            host.access(offset)
            await host.tick()
            assert host.get("control.read_data") == 0, hex(offset)


@simulated
async def test_writes_elsewhere_and_reads_change_nothing(host: Host) -> None:
    writable = {entry.offset for entry in REGISTERS if entry.access != Access.READ}
    names = [entry.name for entry in REGISTERS]
    before = [await host.read(name) for name in names]
    host.access(write_data=0xFFFF_FFFF)
    for offset in range(0, CONTROL_SIZE, 4):
        host.access(offset, write=offset not in writable, read=offset in writable)
        await host.tick()
        assert host.get("clear") == host.get("irq") == 0, hex(offset)
    host.access(write=0, read=0)
    assert [await host.read(name) for name in names] == before


@simulated
async def test_a_read_after_a_write_sees_it_without_a_pause(host: Host) -> None:
    rng = random.Random(1)
    for _ in range(50):
        name = rng.choice(["DOORBELL", "TIMEOUT"])
        word = rng.getrandbits(32)
        await host.write(name, word)
        seen = await host.read(name)
        assert seen == word & (0xFFFF if name == "DOORBELL" else 0xFFFF_FFFF)


# --- activity of readers --------------------------------------------------------------------------


def test_beats_and_stalls_of_two_bursts() -> None:
    """A burst of 2 beats, then one of 1 that is requested while the last beat arrives."""
    given = zip("1000100000", "1000000000", "0010100100", strict=True)
    inputs = [
        dict(zip(("request", "length", "data"), map(int, each), strict=True)) for each in given
    ]
    beats, stalls = clocked(ReadActivity(), inputs, "beat", "stall")
    shown = (
        "b" if beat else "s" if stall else "." for beat, stall in zip(beats, stalls, strict=True)
    )
    assert "".join(shown) == "..sbsbssb."
