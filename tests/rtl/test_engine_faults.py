"""The whole engine: what cannot be finished becomes a code, and CLEAR ends it well."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import COMPLETION_OFFSET, Lane, Mode, Op, Port, Status, register
from support.commands import dense, logic
from support.rtl.bench import SIZE, SMALL, EngineBench, configuration, ending
from support.rtl.records import Task, apply, pack
from support.rtl.streams import Stalls
from support.rtl.walks import Walk
from support.seeds import slow


@pytest.mark.parametrize("bad", [0x0, 0x48, 0xF8])
@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("ports", [slow(1), 2])
def test_read_error(bad: int, which: str, ports: int) -> None:
    """The command stops at the beat that could not be read; CLEAR makes the engine work again."""
    bench = EngineBench(configuration(read_ports=ports))
    before = bench.memory.data.copy()
    base = 0 if which == "a" else 1024
    bench.memory.bad = lambda address: address == base + bad
    task = logic(Op.XOR, 0, 1024, 4096, 256)
    first = logic(Op.NOT, 2048, None, 6000, 100)
    port = Port.READ_A if which == "a" else Port.READ_B
    burst = base + bad // 128 * 128

    async def host(ctx: Any) -> None:
        await bench.finish(ctx, first, task, first)
        fault = Status.READ_ERROR | port << 8 | 1 << 16
        found = await bench.registers(ctx, "FAULT", "FAULT_ADDRESS", "RETIRED")
        assert found == [fault, burst, 1]
        traffic = len(bench.writes.beats)
        await ctx.tick().repeat(200)
        assert len(bench.writes.beats) == traffic, "no write follows a fault"
        bench.memory.bad = lambda address: False
        await bench.clear(ctx)
        await bench.finish(ctx, task)
        assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    before[6000:6100] = ~before[2048:2148]
    before[4096:4352] = before[:256] ^ before[1024:1280]
    assert np.array_equal(bench.memory.data, before)


@pytest.mark.parametrize("wrong", ["read", "write"])
def test_what_later_commands_have_written_after_an_error(wrong: str) -> None:
    """Nothing if it could not be read; if not be written perhaps some bytes, all of them right."""
    bench = EngineBench(configuration(), latency=12)
    tasks = [
        logic(Op.NOT, 1024 * index, None, 4096 + 1024 * index, 64 + 64 * index)
        for index in range(3)
    ]
    bench.memory.bad = lambda address: address == {"read": 0, "write": 4096}[wrong]
    before = bench.memory.data.copy()
    end = bench.execute(tasks)
    assert (end.status, end.index, end.retired) == (Status[f"{wrong.upper()}_ERROR"], 0, 0)
    changed = np.flatnonzero(bench.memory.data != before)
    assert np.array_equal(bench.memory.data[changed], ~before[changed - 4096])
    later = changed[changed >= 4096 + 1024]
    assert bool(later.size) == (wrong == "write")
    assert set(later) < set(range(5120, 5248)) | set(range(6144, 6336)), "else it shows nothing"


@pytest.mark.parametrize("options", [SMALL, slow({"slots": 2})])
def test_clear_leaves_what_belongs_to_no_command(options: dict[str, Any]) -> None:
    bench = EngineBench(configuration(**options))
    kept = ("INTERRUPT", "TIMEOUT", "A_BEATS")
    found: list[list[int]] = []

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "INTERRUPT", 0b01)
        await bench.set(ctx, "TIMEOUT", 5000)
        await bench.finish(ctx, *(logic(Op.NOT, a, None, 4096, 64) for a in (0, SIZE)))
        for _ in range(2):
            words = await bench.registers(ctx, *kept)
            words += [await bench.read(ctx, COMPLETION_OFFSET + 4 * slot) for slot in range(2)]
            found.append(words)
            await bench.set(ctx, "CLEAR", 1)
            await ctx.tick().repeat(4)
        names = ("FAULT", "FAULT_ADDRESS", "DOORBELL", "RETIRED")
        assert await bench.registers(ctx, *names) == [0] * 4
        assert await bench.register(ctx, "STATUS") == register("STATUS").reset
        bench.submitted = 0  # the first slot still holds its record
        await bench.ring(ctx)
        await bench.settle(ctx)
        assert await bench.registers(ctx, "FAULT", "RETIRED") == [0, 1]

    bench.run(host)
    assert found[0] == found[1] == [0b11, 5000, 8, 0, 1 << 8 | Status.PAST_MEMORY]


LEAVING = [
    (Op.NOT, Lane.BITS_8, Lane.BITS_8),
    slow(Op.XOR, Lane.BITS_8, Lane.BITS_8),
    (Op.COUNT, Lane.BITS_64, Lane.BITS_8),
    slow(Op.COUNT, Lane.BITS_64, Lane.BITS_32),
    slow(Op.COUNT, Lane.BITS_8, Lane.BITS_32),
    (Op.COUNT_XOR, Lane.BITS_64, Lane.BITS_8),
    (Op.SHIFT_LEFT, Lane.BITS_64, Lane.BITS_64),
]


@pytest.mark.parametrize("width", [slow(32), 64, slow(128)])
@pytest.mark.parametrize(("op", "lane", "out_lane"), LEAVING)
def test_a_walk_that_leaves_the_memory_ends(width: int, op: Op, lane: Lane, out_lane: Lane) -> None:
    """Whatever a burst that is never asked for would have given: all of a run, or half of one
    element, or what completes no beat."""
    bench = EngineBench(configuration(data_width=width))
    generator = random.Random(f"{width} {op} {lane}")
    streams = "ABY" if op.reads_b else "AY"

    async def host(ctx: Any) -> None:
        for _ in range(24):
            # As many bytes as the output's runs have room for.
            most = 200 // max(out_lane.bytes, lane.bytes // 4)
            elements, leaving = generator.choice([1, 2, 9, most]), generator.choice(streams)
            walks, last = {}, {}
            for place, name in enumerate(streams):
                each = out_lane if name == "Y" else lane
                step = generator.choice([SIZE, -SIZE]) if name == leaving else 256
                base = 2048 * (1 + place) + generator.randrange(0, 64, each.bytes)
                base += generator.randrange(each.bytes) if name == "A" else 0
                walks[name] = Walk(base, [elements, 2], [each.bytes, step], Mode.DENSE, each)
                last[f"{name}_LAST"] = base + elements * each.bytes - 1
            task = Task(op, walks["A"], walks.get("B"), walks["Y"], overrides=last)
            before = bench.memory.data.copy()
            written = list(Walk.bytes(replace(walks["Y"], counts=[elements, 1])))
            await bench.finish(ctx, task)
            end = ending(*await bench.registers(ctx, "FAULT", "RETIRED"))
            assert end == (Status.PAST_MEMORY, Port("ABY".index(leaving)), 0, 0), str(task)
            changed = np.flatnonzero(bench.memory.data != before)
            assert set(changed) <= set(written), str(task)
            await bench.clear(ctx)
            await ctx.tick().repeat(8)

    bench.run(host)


def test_data_may_be_taken_before_their_address() -> None:
    """A subordinate that waits for W before it takes AW is served (AXI4 A3.3.1)."""
    bench = EngineBench(configuration(), stalls=Stalls(seed=3, probability=0.7, longest=9))
    bench.check([logic(Op.NOT, 64 * index, None, 4096 + 64 * index, 64) for index in range(8)])
    asked = {cycle: beats for cycle, _, beats in bench.writes.requests}
    due = [sum(beats for at, beats in asked.items() if at <= cycle) for cycle in bench.writes.beats]
    assert any(number > least for number, least in enumerate(due, start=1))


def test_write_error() -> None:
    bench = EngineBench(configuration())
    bench.memory.bad = lambda address: address == 4096 + 0x88
    tasks = [logic(Op.NOT, 0, None, 5000, 10), logic(Op.NOT, 0, None, 4096, 512)]
    assert bench.execute(tasks) == (Status.WRITE_ERROR, Port.WRITE, 1, 1)


@pytest.mark.parametrize("which", ["read_a", "read_b", "writes"])
def test_hung_memory_is_a_fault_and_recovers(which: str) -> None:
    bench = EngineBench(configuration())
    server = getattr(bench, which)
    task = logic(Op.XOR, 0, 1024, 4096, 512)
    port = {"read_a": Port.READ_A, "read_b": Port.READ_B, "writes": Port.WRITE}[which]
    fault = Status.TIMEOUT | port << 8

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "TIMEOUT", 100)
        await bench.submit(ctx, task)
        await ctx.tick().repeat(12)
        server.hang = True
        await ctx.tick().repeat(250)
        status = 0b011  # busy, fault, not drained
        assert await bench.registers(ctx, "STATUS", "FAULT") == [status, fault]
        await bench.clear(ctx)
        await ctx.tick().repeat(50)
        assert await bench.register(ctx, "FAULT") == fault, "CLEAR waits until the bus is legal"
        server.hang = False
        await ctx.tick().repeat(200)
        assert await bench.register(ctx, "FAULT") == 0
        await bench.finish(ctx, task)
        assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    data = bench.memory.data
    assert np.array_equal(data[4096:4608], data[:512] ^ data[1024:1536])


def test_clear_drops_commands_at_every_cycle_of_a_short_job() -> None:
    """Whenever CLEAR comes, the bus stays legal and the next job is right."""
    task = logic(Op.XOR, 1, 1026, 4099, 200)
    again = logic(Op.NOT, 300, None, 6001, 70)
    for delay in range(2, 60, 5):
        bench = EngineBench(configuration(), latency=5, seed=delay)
        expected = bench.memory.data.copy()

        async def host(ctx: Any, bench: EngineBench = bench, delay: int = delay) -> None:
            await bench.submit(ctx, task)
            await ctx.tick().repeat(delay)
            await bench.clear(ctx)
            await ctx.tick().repeat(60)
            assert await bench.register(ctx, "STATUS") & 0b11 == 0
            await bench.finish(ctx, again)
            assert await bench.register(ctx, "RETIRED") == 1

        bench.run(host)
        expected[6001:6071] = ~expected[300:370]
        got = bench.memory.data.copy()
        got[4099:4299] = expected[4099:4299]
        assert np.array_equal(got, expected), f"CLEAR after {delay} cycles"
        requested = sum(beats for _, _, beats in bench.read_a.requests)
        assert len(bench.read_a.beats) == requested
        assert len(bench.writes.responses) == len(bench.writes.requests)


def test_nothing_retires_in_the_cycle_after_an_error_response() -> None:
    bench = EngineBench(configuration())
    bench.memory.bad = lambda address: address == 4096
    a, y = (Walk(base, [8, 2], [1, 64], Mode.DENSE, Lane.BITS_8) for base in (0, 4096))
    rows = Task(Op.NOT, a, None, y)
    assert bench.execute([rows]) == (Status.WRITE_ERROR, Port.WRITE, 0, 0)
    assert bench.writes.responses[1] == bench.writes.responses[0] + 1, "else it shows nothing"


def test_no_burst_begins_two_cycles_after_an_error_response() -> None:
    bench = EngineBench(configuration(), latency=8)
    bench.memory.bad = lambda address: address == 4096
    y = Walk(4096, [100], [16], Mode.STRIDED, Lane.BITS_16)
    bench.execute([Task(Op.NOT, dense(0, 100, Lane.BITS_16), None, y)])
    # The first cycle after the response has `stop`; what begins then is on the port in the second.
    assert bench.writes.requests[-1][0] == bench.writes.responses[0] + 2


@pytest.mark.parametrize("delay", range(1, 14))
@pytest.mark.parametrize("width", [slow(32), 64])
def test_clear_waits_for_what_is_asked_for_as_it_comes(delay: int, width: int) -> None:
    """No request is dropped, and none is left over, whenever CLEAR meets the first one."""
    task = logic(Op.XOR, 1, 1026, 4099, 200)
    bench = EngineBench(configuration(data_width=width), latency=30)

    async def host(ctx: Any) -> None:
        await bench.load(ctx, pack(task))
        await ctx.tick().repeat(12)
        await bench.ring(ctx)
        await ctx.tick().repeat(delay)
        await bench.clear(ctx)
        while await bench.register(ctx, "DOORBELL"):
            pass
        for wait in (100, 1):
            for server in bench.servers:
                assert len(server.beats) == sum(beats for _, _, beats in server.requests)
            await ctx.tick().repeat(wait)

    bench.run(host)


@pytest.mark.parametrize("width", [slow(32), 64])
def test_what_precedes_half_an_element_in_error_is_written(width: int) -> None:
    """However much of it waits for the memory when the error comes."""
    bench = EngineBench(configuration(data_width=width))
    good = logic(Op.NOT, 0, None, 4096, 16 * width // 8)
    walk = Walk(SIZE - 8, [100], [8], Mode.DENSE, Lane.BITS_64)
    last = {"A_LAST": SIZE - 1}
    b, y = replace(walk, base=1024), replace(walk, base=5120)
    bad = Task(Op.SHIFT_LEFT, walk, b, y, overrides=last)
    expected = bench.memory.data.copy()
    apply(good, expected)

    async def host(ctx: Any) -> None:
        await bench.submit(ctx, good, bad)
        bench.writes.hang = True
        await ctx.tick().repeat(600)
        bench.writes.hang = False
        await bench.settle(ctx)
        end = ending(*await bench.registers(ctx, "FAULT", "RETIRED"))
        assert (end.status, end.index, end.retired) == (Status.PAST_MEMORY, 1, 1)

    bench.run(host)
    assert np.array_equal(bench.memory.data[:5120], expected[:5120])


@pytest.mark.parametrize("latency", [46, 50, 51, 52, *map(slow, (47, 48, 49, 53, 54, 55))])
def test_an_answer_in_the_last_cycle_is_no_timeout_of_the_next_command(latency: int) -> None:
    bench = EngineBench(configuration())
    bench.writes.latency = latency

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "TIMEOUT", 50)
        await bench.submit(ctx, logic(Op.NOT, 0, None, 4096, 64))
        await ctx.tick().repeat(400)
        end = ending(*await bench.registers(ctx, "FAULT", "RETIRED"))
        # An answer takes a cycle more than its latency, and the 51st cycle is the last in time.
        expected = (Status.OK, 1) if latency <= 51 else (Status.TIMEOUT, 0)
        assert (end.status, end.retired) == expected
        assert end.index == 0

    bench.run(host)


@pytest.mark.parametrize("latency", [67, 68])
def test_an_answer_in_the_last_cycle_is_in_time_if_another_is_due(latency: int) -> None:
    bench = EngineBench(configuration())
    bench.writes.latency = latency

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "TIMEOUT", 50)
        await bench.submit(ctx, logic(Op.NOT, 0, None, 4096, 256))
        await ctx.tick().repeat(400)
        end = ending(*await bench.registers(ctx, "FAULT", "RETIRED"))
        # The last beat follows 16 cycles after that of the first burst, whose answer is awaited.
        expected = (Status.OK, 1) if latency <= 51 + 16 else (Status.TIMEOUT, 0)
        assert (end.status, end.retired) == expected

    bench.run(host)
