"""The whole engine executes the records in its ring, and reports faults as codes."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import (
    COMPLETION_OFFSET,
    RECORD,
    RECORD_WORDS,
    RING_OFFSET,
    Lane,
    Mode,
    Op,
    Status,
)
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.engine import Engine
from support.commands import RandomCommands, logic
from support.rtl.bench import SIZE, SMALL, EngineBench, configuration
from support.rtl.records import Task
from support.rtl.streams import NO_STALLS, STALLS, Stalls
from support.rtl.walks import Walk
from support.seeds import seeds, slow

REDUCED = [
    {"ops": frozenset({Op.NOT}), "loops": 1, "modes": frozenset({Mode.DENSE})},
    {"ops": frozenset({Op.COUNT}), "loops": 2},
    {"ops": frozenset({Op.XOR, Op.COUNT}), "loops": 6, "slots": 32},
    {"ops": frozenset({Op.NOT, Op.COUNT_XOR}), "loops": 2},
    {"lanes": frozenset({Lane.BITS_8, Lane.BITS_16}), "block_ram": True},
    {"loops": 2, "modes": frozenset({Mode.DENSE, Mode.STRIDED}), "block_ram": True},
    {"bursts": 2, "fifo_beats": 32, "counters": False},
]
"""Options of engines that lack a feature."""


def random_tasks(generator: random.Random, config: Configuration, count: int = 6) -> list[Task]:
    """Return random operations; inputs are in the lower half of memory, Y in the upper."""
    commands = RandomCommands(configuration=config, size=SIZE // 2)
    return [commands.draw(generator, SIZE // 2) for _ in range(count)]


@pytest.mark.parametrize(
    ("width", "ports"), [(32, 2), (64, 2), slow(32, 1), slow(64, 1), slow(128, 1), slow(128, 2)]
)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_random_commands(width: int, ports: int, stalls: Stalls, seed: int) -> None:
    generator = random.Random(f"{width} {ports} {seed}")
    config = configuration(data_width=width, read_ports=ports)
    bench = EngineBench(config, generator.choice([0, 7]), stalls, seed)
    bench.check(random_tasks(generator, config))


@pytest.mark.slow
def test_compiled_engines_do_in_less_time_what_amaranths_simulator_shows(
    record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configuration(data_width=64, read_ports=2)
    seconds, shown = list[float](), list[Any]()
    for mode in ("always", "off"):
        monkeypatch.setenv("CPPSIM", mode)
        generator = random.Random(1)
        bench = EngineBench(config, 7, STALLS[1], 1)
        started = time.process_time()
        bench.check(random_tasks(generator, config))
        seconds.append(time.process_time() - started)
        shown.append((bench.cycle, bench.memory.data.tobytes()))
    assert shown[0] == shown[1]
    text = f"a test of the engine, {shown[0][0]} cycles: {seconds[0]:.2f} s of processor time in"
    record_property("report", f"{text} cppsim, {seconds[1]:.2f} s in Amaranth's simulator")


@pytest.mark.parametrize("options", REDUCED)
@pytest.mark.parametrize("width", [32, 64])
def test_reduced_engines_have_the_ports_that_they_use(options: dict[str, Any], width: int) -> None:
    config = configuration(data_width=width, **options)
    ports = Engine(config).signature.members
    reads_b = config.read_ports == 2 and any(op.reads_b for op in config.ops)
    assert {"read_a": True, "read_b": reads_b, "write": True} == {
        port: port in ports for port in ("read_a", "read_b", "write")
    }


@pytest.mark.slow
@pytest.mark.parametrize("options", REDUCED)
@pytest.mark.parametrize("width", [32, 64])
def test_reduced_engines(options: dict[str, Any], width: int) -> None:
    generator = random.Random(f"{sorted(options)} {width}")
    config = configuration(data_width=width, **options)
    EngineBench(config).check(random_tasks(generator, config, 8))


@pytest.mark.parametrize("op", [Op.NOT, Op.XOR])
def test_no_idle_cycle_between_queued_commands(width: int, op: Op) -> None:
    bench = EngineBench(configuration(data_width=width))
    b = 2048 if op.reads_b else None
    bench.check([logic(op, 64 * i, b, 4096 + 64 * i, 64) for i in range(12)])
    beats = bench.writes.beats
    assert beats[-1] - beats[0] == 12 * 512 // width - 1


@pytest.mark.parametrize("latency", [0, 40])
def test_a_fenced_command_starts_2_cycles_after_the_last_response(latency: int) -> None:
    """It reads what the command before it has written."""
    bench = EngineBench(configuration(), latency)
    bench.check([logic(Op.NOT, 0, None, 4096, 256), logic(Op.NOT, 4096, None, 0, 256, fence=True)])
    second = next(cycle for cycle, address, _ in bench.read_a.requests if address >= 4096)
    assert second == bench.writes.responses[1] + 2 + 3, "steps, splitter, requests"


@pytest.mark.parametrize(
    ("options", "latency"),
    [
        slow({"data_width": 32, "ops": frozenset({Op.NOT})}, 9),
        ({"data_width": 32}, 12),
        slow({"data_width": 32, "read_ports": 1}, 12),
        slow({"data_width": 32, "operand_registers": True}, 13),
        slow({"data_width": 32, "block_ram": True}, 13),
        slow({"data_width": 64, "ops": frozenset({Op.NOT})}, 11),
        ({"data_width": 64}, 14),
        slow({"data_width": 64, "operand_registers": True}, 15),
        slow({"data_width": 64, "block_ram": True}, 14),
    ],
)
def test_latency_of_a_short_command(options: dict[str, Any], latency: int) -> None:
    """The target for N beats is N + 12 cycles at 32 bits, and N + 14 at 64."""
    bench = EngineBench(configuration(**options))
    bench.check([logic(Op.NOT, 0, None, 4096, 64)])
    beats = 64 // bench.configuration.data_bytes
    assert bench.writes.responses[-1] - bench.doorbells[0] == beats + latency


@pytest.mark.parametrize("ahead", [0, 1, 3, 8, 100])
@pytest.mark.parametrize("stalls", [NO_STALLS, STALLS[1]])
def test_a_step_may_read_what_a_later_one_writes(ahead: int, stalls: Stalls) -> None:
    bench = EngineBench(configuration(), stalls=stalls)
    first = logic(Op.XOR, 1000 + ahead, 3000, 1000, 999)
    bench.check([first, logic(Op.NOT, 1000 + ahead, None, 1000, 7)])


def test_completions_tell_how_each_command_ended() -> None:
    bench = EngineBench(configuration())
    words = []

    async def host(ctx: Any) -> None:
        good = logic(Op.NOT, 0, None, 4096, 64)
        await bench.finish(ctx, good, good, replace(good, overrides={"OP": 11}))
        words.extend([await bench.register(ctx, COMPLETION_OFFSET + 4 * n) for n in range(3)])

    bench.run(host)
    assert words == [0, 1 << 8, 2 << 8 | Status.BAD_OP]


def test_counters() -> None:
    bench = EngineBench(configuration())

    async def host(ctx: Any) -> None:
        await bench.finish(ctx, logic(Op.XOR, 0, 1024, 4096, 512), gap=12)
        names = ("A_BEATS", "B_BEATS", "Y_BEATS", "Y_STALLS", "BUSY_CYCLES")
        assert await bench.registers(ctx, *names) == [64, 64, 64, 0, 64 + 14]
        await bench.set(ctx, "COUNTERS_CLEAR", 1)
        await ctx.tick().repeat(3)
        assert await bench.register(ctx, "A_BEATS") == 0

    bench.run(host)


@pytest.mark.slow
@pytest.mark.parametrize("stalls", [NO_STALLS, STALLS[1]])
def test_ring_goes_round(stalls: Stalls) -> None:
    bench = EngineBench(configuration(slots=2), stalls=stalls)
    tasks = [
        logic(Op.NOT, 100 * index, None, 4096 + 101 * index, 99, interrupt=True)
        for index in range(9)
    ]
    expected = bench.after(*tasks)

    async def host(ctx: Any) -> None:
        for task in tasks:
            await bench.finish(ctx, task)
        assert await bench.register(ctx, "RETIRED") == 9

    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


@pytest.mark.parametrize("wait", range(5))
def test_a_record_written_while_the_one_before_it_starts_is_fetched_again(
    width: int, wait: int
) -> None:
    """RUN of the second record changes around the start; its swapped bytes keep the seal right."""
    bench = EngineBench(configuration(data_width=width))
    first, stale = logic(Op.NOT, 0, None, 6000, 8), logic(Op.NOT, 0, None, 4096, 0x201)
    expected = bench.after(first, logic(Op.NOT, 0, None, 4096, 0x102))
    run = RECORD["RUN"].word

    async def host(ctx: Any) -> None:
        await bench.load(ctx, stale, 1)
        await bench.submit(ctx, first, gap=20)
        if wait:
            await ctx.tick().repeat(wait)
        await bench.set(ctx, RING_OFFSET + 4 * (RECORD_WORDS + run), 0x102)
        await ctx.tick().repeat(30)
        await bench.ring(ctx)
        await bench.settle(ctx)
        assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


@pytest.mark.parametrize("counts", [[2, 2], [1, 2], [2, 1, 2]])
def test_runs_and_loops_of_one_and_two(width: int, counts: list[int]) -> None:
    bench = EngineBench(configuration(data_width=width))
    steps = [[24, 64, 192], [6, 40, 100]]
    a, y = (
        Walk(base, counts, step[: len(counts)], Mode.STRIDED, Lane.BITS_16)
        for base, step in zip((0, 4096), steps, strict=True)
    )
    bench.check([Task(Op.NOT, a, None, y)] * 2)


@pytest.mark.parametrize("which", range(3))
def test_each_command_has_its_own_interrupt(which: int) -> None:
    bench = EngineBench(configuration())
    pending: list[int] = []

    async def host(ctx: Any) -> None:
        for number in range(3):
            task = logic(Op.NOT, 0, None, 4096, 64, interrupt=number == which)
            await bench.load(ctx, task, number)
        for _ in range(3):
            await bench.ring(ctx)
            await bench.settle(ctx)
            await ctx.tick().repeat(2)
            pending.append(await bench.register(ctx, "INTERRUPT", "PENDING"))
            await bench.set(ctx, "INTERRUPT", 0b10)

    bench.run(host)
    assert pending == [number == which for number in range(3)]


@pytest.mark.parametrize("latency", [0, 9])
def test_stalls_are_the_cycles_in_which_a_read_is_open_and_no_beat_comes(latency: int) -> None:
    bench = EngineBench(configuration(), latency, Stalls(seed=latency, probability=0.3))
    counted: list[int] = []

    async def host(ctx: Any) -> None:
        await bench.finish(ctx, logic(Op.XOR, 3, 1030, 4099, 500))
        names = ("A_BEATS", "A_STALLS", "B_BEATS", "B_STALLS")
        counted.extend(await bench.registers(ctx, *names))

    bench.run(host)
    expected: list[int] = []
    for server in (bench.read_a, bench.read_b):
        beats, stalls, left = set(server.beats), 0, 0
        asked = {cycle: number for cycle, _, number in server.requests}
        for cycle in range(max(beats) + 1):
            stalls += left > 0 and cycle not in beats
            left += asked.get(cycle, 0) - (cycle in beats)
        expected += [len(beats), stalls]
    assert counted == expected


def test_rows_that_end_in_a_flush_never_overrun_the_fifo(width: int) -> None:
    """Rows of 46 beats: whole blocks follow a block with an extra beat, while the writer waits."""
    bench = EngineBench(Configuration(data_width=width, memory_bytes=1 << 13, fifo_beats=64))
    beat = width // 8
    rows = min(4, 4096 // (48 * beat))
    a, y = (
        Walk(base, [46 * beat, rows], [1, 48 * beat], Mode.DENSE, Lane.BITS_8)
        for base in (0, 4096 + 3)
    )
    task = Task(Op.NOT, a, None, y)
    expected = bench.after(task)

    async def host(ctx: Any) -> None:
        await bench.load(ctx, task)
        bench.writes.hang = True
        await bench.ring(ctx)
        await ctx.tick().repeat(1000)
        bench.writes.hang = False
        await bench.settle(ctx)
        assert await bench.register(ctx, "RETIRED") == 1

    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


@pytest.mark.parametrize(
    ("width", "options"),
    [
        (64, SMALL),
        slow(32, {"block_ram": True}),
        slow(64, {"block_ram": True}),
        slow(128, {"block_ram": False}),
    ],
)
def test_a_gather_that_is_scattered_again_goes_on(width: int, options: dict[str, Any]) -> None:
    """The writer handles a beat of elements that is announced before it is complete."""
    bench = EngineBench(configuration(data_width=width, **options))
    elements = 3 * width // 8 + 1
    a, y = (Walk(base, [elements], [2], Mode.STRIDED, Lane.BITS_8) for base in (1, 4096 + 5))
    bench.check([Task(Op.NOT, a, None, y)])
