"""A DOORBELL too far ahead, or behind, stops the engine with a code, and so does a late answer."""

from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import COMPLETION_OFFSET, Mode, Op, Port, Status, register
from support.commands import logic
from support.rtl.bench import EngineBench, configuration, ending, rows
from support.rtl.records import Task
from support.seeds import seeds, slow

CIRCUITS: dict[str, dict[str, Any]] = {
    "32": {"data_width": 32},
    "64": {"data_width": 64},
    "128": {"data_width": 128},
    "one operation": {
        "data_width": 32,
        "ops": frozenset({Op.NOT}),
        "modes": frozenset({Mode.DENSE}),
        "loops": 1,
        "lanes": frozenset(),
        "read_ports": 1,
    },
    "2 slots": {"slots": 2},
    "block RAM": {"data_width": 32, "block_ram": True},
}
"""Options by circuit; they determine the cycles until a command reaches the bus."""
CHOSEN = [name if name == "64" else slow(name) for name in CIRCUITS]
"""Names of the circuits; the quick tier takes one."""


BAD = logic(Op.NOT, 0, None, 4096, 64, overrides={"LOOPS": 0})


async def fill(ctx: Any, bench: EngineBench) -> None:
    """Write commands into all slots from the next one on; each has its own 64 bytes of A and Y."""
    for n in range(bench.configuration.slots):
        await bench.load(ctx, logic(Op.NOT, 64 * n, None, 4096 + 64 * n, 64), n)


async def expect_refused(ctx: Any, bench: EngineBench, retired: int) -> None:
    """Expect that the engine stopped with BAD_DOORBELL after ``retired`` commands."""
    await ctx.tick().repeat(60)
    for name, field in (("STATUS", "FAULT"), ("STATUS", "DRAINED"), ("INTERRUPT", "PENDING")):
        assert await bench.register(ctx, name, field) == 1, field
    fault = Status.BAD_DOORBELL | Port.NONE << 8 | retired << 16
    found = await bench.registers(ctx, "FAULT", "FAULT_ADDRESS", "RETIRED")
    assert found == [fault, 0, retired]
    slot = retired % bench.configuration.slots
    completion = await bench.register(ctx, COMPLETION_OFFSET + 4 * slot)
    assert completion == Status.BAD_DOORBELL | retired << 8


async def recover(ctx: Any, bench: EngineBench) -> None:
    """Write CLEAR, then execute a full ring of commands with one doorbell."""
    await bench.clear(ctx)
    await ctx.tick().repeat(6)
    names = ("FAULT", "FAULT_ADDRESS", "DOORBELL", "RETIRED")
    assert await bench.registers(ctx, *names) == [0] * 4
    assert await bench.register(ctx, "STATUS") == register("STATUS").reset
    slots = bench.configuration.slots
    await fill(ctx, bench)
    await bench.ring(ctx, slots)
    await bench.settle(ctx)
    assert await bench.registers(ctx, "FAULT", "RETIRED") == [0, slots]


def test_fault_rises_3_cycles_after_a_bad_doorbell() -> None:
    bench = EngineBench(configuration())
    seen: list[int] = []

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "DOORBELL", bench.configuration.slots + 1)
        for _ in range(4):
            seen.append(ctx.get(bench.dut.fault))
            await ctx.tick()

    bench.run(host)
    assert seen == [0, 0, 1, 1], "from the cycle after the write on"


def test_a_stopped_engine_is_busy_while_doorbell_is_not_retired() -> None:
    """The counter of busy cycles goes on, until CLEAR or a DOORBELL that equals RETIRED."""
    bench = EngineBench(configuration(counters=True))
    busy: list[int] = []
    cycles: list[int] = []

    async def look(ctx: Any) -> None:
        await bench.set(ctx, "COUNTERS_CLEAR", 1)
        await ctx.tick().repeat(100)
        busy.append(await bench.register(ctx, "STATUS", "BUSY"))
        cycles.append(await bench.register(ctx, "BUSY_CYCLES"))

    async def host(ctx: Any) -> None:
        await bench.submit(ctx, BAD)
        await ctx.tick().repeat(60)
        await look(ctx)  # refused: DOORBELL 1, RETIRED 0
        await bench.clear(ctx)
        await look(ctx)
        await bench.set(ctx, "DOORBELL", bench.configuration.slots + 1)
        await look(ctx)  # BAD_DOORBELL, without a command
        await bench.set(ctx, "DOORBELL", 0)
        await look(ctx)  # DOORBELL is stored, although the engine stands
        await bench.clear(ctx)
        await look(ctx)

    bench.run(host)
    assert busy == [1, 0, 1, 0, 0]
    assert [count >= 100 for count in cycles] == [True, False, True, False, False]


@pytest.mark.parametrize("ahead", ["one too far", "two rings", 0x8000, 0xFFFF])
@pytest.mark.parametrize("circuit", CHOSEN)
def test_a_doorbell_too_far_ahead_executes_nothing(circuit: str, ahead: str | int) -> None:
    """The records were prefetched, are being fetched, or were just written when it arrives."""
    bench = EngineBench(configuration(**CIRCUITS[circuit]))
    slots = bench.configuration.slots
    before = bench.memory.data.copy()
    number = {"one too far": slots + 1, "two rings": 2 * slots}.get(str(ahead), ahead)

    async def host(ctx: Any) -> None:
        for delay in (1, 2, 3, 5, 8, 20):
            await fill(ctx, bench)
            await ctx.tick().repeat(delay)
            await bench.set(ctx, "DOORBELL", int(number))
            await expect_refused(ctx, bench, 0)
            assert await bench.register(ctx, "DOORBELL") == number
            assert not any(server.requests for server in bench.servers), f"delay {delay}"
            await bench.set(ctx, "INTERRUPT", 0b10)
            await bench.set(ctx, "CLEAR", 1)
            await ctx.tick().repeat(6)
        assert np.array_equal(bench.memory.data, before)
        await recover(ctx, bench)

    bench.run(host)
    before[4096 : 4096 + 64 * slots] = ~before[: 64 * slots]
    assert np.array_equal(bench.memory.data, before)


@pytest.mark.parametrize("circuit", CHOSEN)
def test_a_doorbell_may_fill_the_ring_and_be_written_twice(circuit: str) -> None:
    bench = EngineBench(configuration(**CIRCUITS[circuit]), latency=40)
    slots = bench.configuration.slots
    expected = bench.memory.data.copy()

    async def host(ctx: Any) -> None:
        for rounds in (1, 2):
            await fill(ctx, bench)
            await bench.ring(ctx, slots - 1)
            await bench.ring(ctx, 1)
            await bench.ring(ctx, 0)
            await bench.settle(ctx)
            assert await bench.registers(ctx, "FAULT", "RETIRED") == [0, rounds * slots]

    bench.run(host)
    expected[4096 : 4096 + 64 * slots] = ~expected[: 64 * slots]
    assert np.array_equal(bench.memory.data, expected)


@pytest.mark.parametrize("step", [-1, slow(-2), 16, slow(0x7FFF)])
@pytest.mark.parametrize("width", [slow(32), 64])
def test_a_bad_doorbell_while_commands_run(width: int, step: int) -> None:
    """At any time: retired commands are complete, none starts behind them, and every byte that
    unfinished commands wrote is right."""
    for number in seeds(8, 20):
        delay = 1 + 21 * number % 60
        bench = EngineBench(configuration(data_width=width), latency=3)
        before = bench.memory.data.copy()
        found: list[int] = []

        async def host(
            ctx: Any, bench: EngineBench = bench, delay: int = delay, found: list[int] = found
        ) -> None:
            await fill(ctx, bench)
            await bench.ring(ctx, 3)
            await ctx.tick().repeat(delay)
            ahead = 3 + step if step < 0 else 3 + 14 + step
            await bench.set(ctx, "DOORBELL", ahead)
            await ctx.tick().repeat(60)
            found.append(await bench.register(ctx, "RETIRED"))
            await expect_refused(ctx, bench, found[0])

        bench.run(host)
        changed = np.flatnonzero(bench.memory.data != before)
        whole = before.copy()
        whole[4096 : 4096 + 3 * 64] = ~before[: 3 * 64]
        assert np.array_equal(bench.memory.data[changed], whole[changed])
        done = slice(4096, 4096 + 64 * found[0])
        assert np.array_equal(bench.memory.data[done], whole[done]), f"delay {delay}"
        assert all(address < 3 * 64 for _, address, _ in bench.read_a.requests), f"delay {delay}"
        requested = sum(beats for _, _, beats in bench.read_a.requests)
        assert len(bench.read_a.beats) == requested
        assert len(bench.writes.responses) == len(bench.writes.requests)


@pytest.mark.parametrize("earlier", [False, True])
def test_the_first_of_two_faults_is_the_fault(earlier: bool) -> None:
    """A bad DOORBELL is one before the record that it submits, unless that was refused before."""
    bench = EngineBench(configuration())

    async def host(ctx: Any) -> None:
        await bench.load(ctx, BAD)
        if earlier:
            await bench.ring(ctx)
        await ctx.tick().repeat(30)
        await bench.set(ctx, "DOORBELL", 17)
        if not earlier:
            await expect_refused(ctx, bench, 0)
        await ctx.tick().repeat(20)
        code = Status.BAD_CONTROL if earlier else Status.BAD_DOORBELL
        assert await bench.registers(ctx, "FAULT", "DOORBELL") == [code | Port.NONE << 8, 17]
        await recover(ctx, bench)

    bench.run(host)


# --- TIMEOUT and FAULT_ADDRESS ----------------------------------------------------------------

BOUND = 30
TWO_RUNS = Task(Op.NOT, rows(64, 4, 2, 128), None, rows(4096, 4, 2, 128))


def ends(
    bench: EngineBench, given: Task, hanging: str = "", after: int = 0
) -> tuple[Status, Port, int, int]:
    """Return the fault's status and port, RETIRED and FAULT_ADDRESS of a command.

    TIMEOUT is `BOUND`.

    ``hanging`` names servers, with spaces between, that hang from ``after`` cycles on.
    """
    found: list[int] = []

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "TIMEOUT", BOUND)
        await bench.submit(ctx, given, gap=20)
        await ctx.tick().repeat(1 + after)
        for server in hanging.split():
            getattr(bench, server).hang = True
        await ctx.tick().repeat(300)
        found.extend(await bench.registers(ctx, "FAULT", "RETIRED", "FAULT_ADDRESS"))

    bench.run(host)
    end = ending(*found[:2])
    assert end.index == 0
    return end.status, end.port, end.retired, found[2]


def silence(bench: EngineBench) -> int:
    """Return the longest time between two handshakes on any ports, in cycles."""
    cycles = {cycle for server in bench.servers for cycle, _, _ in server.requests}
    cycles |= {cycle for server in bench.servers for cycle in server.beats}
    return int(np.diff(sorted(cycles | set(bench.writes.responses))).max())


@pytest.mark.parametrize("width", [slow(32), 64])
@pytest.mark.parametrize(
    ("port", "size", "most", "ahead"),
    [
        pytest.param(Port.READ_A, 64, BOUND + 1, 0, id="read data"),
        pytest.param(Port.WRITE, 8, BOUND + 2, 0, id="a response before the last"),
        pytest.param(Port.WRITE, 64, BOUND + 2, 0, id="the last one"),
        pytest.param(Port.WRITE, 256, BOUND + 2, 16, id="a response, while beats are sent"),
    ],
)
def test_how_late_an_answer_may_be(
    width: int, port: Port, size: int, most: int, ahead: int
) -> None:
    """The time counts from the last handshake: beats of a second burst take ``ahead`` cycles."""
    seen = {}
    given = TWO_RUNS if size == 8 else logic(Op.NOT, 0, None, 4096, size * width // 64)
    for latency in range(BOUND - 3 + ahead, BOUND + 8 + ahead):
        bench = EngineBench(configuration(data_width=width))
        server = bench.read_a if port is Port.READ_A else bench.writes
        server.latency = latency
        *end, _ = ends(bench, given)
        seen[silence(bench)] = tuple(end)
    good, late = (Status.OK, Port(0), 1), (Status.TIMEOUT, port, 0)
    assert seen == {silent: good if silent <= most else late for silent in seen}
    assert {most, most + 1} <= set(seen)


@pytest.mark.parametrize(
    "hanging", [slow("read_a"), "read_b", "writes", "read_a writes", slow("writes read_b")]
)
def test_a_timeout_names_the_oldest_burst_that_is_not_answered(hanging: str) -> None:
    """A takes precedence over B and B over Y, whether a burst was accepted or only requested."""
    for number in seeds(6, 17):
        after = 15 * number % 51
        bench = EngineBench(configuration(), latency=9)
        end = ends(bench, logic(Op.XOR, 0, 2048, 4096, 1024), hanging, after)
        name = min(hanging.split())
        port, first, answered = {
            "read_a": (Port.READ_A, 0, len(bench.read_a.beats) // 16),
            "read_b": (Port.READ_B, 2048, len(bench.read_b.beats) // 16),
            "writes": (Port.WRITE, 4096, len(bench.writes.responses)),
        }[name]
        assert end == (Status.TIMEOUT, port, 0, first + 128 * answered), after


@pytest.mark.parametrize("bad", [4096, 4096 + 8 * 15, 4096 + 8 * 37])
def test_an_error_names_its_burst_by_its_first_beat(bad: int) -> None:
    for given in (logic(Op.NOT, 0, None, 4096 + 3, 400), logic(Op.NOT, 4096 + 3, None, 0, 400)):
        bench = EngineBench(configuration())
        bench.memory.bad = lambda address: address == bad
        bench.execute([given])
        assert bench.fault_address == bad - bad % 128
