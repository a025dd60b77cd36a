"""The whole engine: records in its ring become bytes in memory, and faults become codes."""

import random
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
    Port,
    Status,
    record_words,
    register,
)
from bitlane_rtl.configuration import Configuration
from rtl_bench import EngineBench
from rtl_records import Task, pack, reseal
from rtl_streams import NO_STALLS, STALLS, Stalls
from rtl_walks import Walk, random_walk

SIZE = 1 << 13


def configuration(**options: Any) -> Configuration:
    return Configuration(memory_bytes=SIZE, **options)


def dense(base: int, size: int, lane: Lane = Lane.BITS_8) -> Walk:
    return Walk(base, [size], [lane.bytes], Mode.DENSE, lane)


def logic(op: Op, a: int, b: int | None, y: int, size: int, **options: Any) -> Task:
    second = None if b is None else dense(b, size)
    return Task(op, dense(a, size), second, dense(y, size), **options)


def random_task(generator: random.Random, config: Configuration) -> Task:
    """Any operation on any walks, with inputs in the lower half of memory and Y in the upper."""
    half = SIZE // 2
    op = generator.choice(sorted(config.ops))
    lane = Lane(generator.randrange(4))
    widest = config.data_bytes.bit_length() - 1
    modes = [generator.choice(list(Mode)) for _ in range(2)]
    y_mode = generator.choice([Mode.DENSE, Mode.DENSE, Mode.STRIDED])
    if lane > widest or generator.random() < 0.5:
        modes, y_mode = [Mode.DENSE, Mode.DENSE], Mode.DENSE
    out_lane = generator.choice([Lane.BITS_8, Lane.BITS_32]) if op is Op.COUNT else lane
    counts = [generator.choice([1, 3, 8, 33])]
    counts += [generator.choice([1, 2, 3]) for _ in range(generator.randrange(config.loops))]
    b = None
    if not op.reads_b:
        modes[1] = Mode.DENSE
    plain = modes == [Mode.DENSE, Mode.DENSE] and y_mode is Mode.DENSE
    a = random_walk(generator, config, counts, modes[0], lane, size=half, aligned=False)
    if op.reads_b:
        b = random_walk(generator, config, counts, modes[1], lane, size=half, aligned=False)
    y = random_walk(
        generator,
        config,
        counts,
        y_mode,
        out_lane,
        size=half,
        aligned=op.splits_lanes or not plain,
        disjoint=True,
    )
    y.base += half
    return Task(
        op,
        a,
        b,
        y,
        saturate=generator.random() < 0.5,
        arithmetic=generator.random() < 0.5,
        fence=generator.random() < 0.5,  # inputs and outputs lie apart
    )


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("seed", range(2))
def test_random_commands(width: int, ports: int, stalls: Stalls, seed: int) -> None:
    generator = random.Random(f"{width} {ports} {seed}")
    config = configuration(data_width=width, read_ports=ports)
    bench = EngineBench(config, generator.choice([0, 7]), stalls, seed)
    bench.check([random_task(generator, config) for _ in range(6)])


@pytest.mark.parametrize("width", [256, 512])
def test_wide_engines(width: int) -> None:
    generator = random.Random(width)
    config = configuration(data_width=width)
    EngineBench(config).check([random_task(generator, config) for _ in range(6)])


@pytest.mark.parametrize(
    "options",
    [
        {"ops": frozenset({Op.NOT}), "loops": 1, "modes": frozenset({Mode.DENSE})},
        {"ops": frozenset({Op.COUNT}), "loops": 2},
        {"ops": frozenset({Op.XOR, Op.COUNT}), "loops": 6, "slots": 32},
        {"lanes": frozenset({Lane.BITS_8, Lane.BITS_16}), "block_ram": True},
        {"loops": 2, "modes": frozenset({Mode.DENSE, Mode.STRIDED}), "block_ram": True},
        {"bursts": 2, "fifo_beats": 32, "counters": False},
    ],
)
@pytest.mark.parametrize("width", [32, 64])
def test_reduced_engines(options: dict[str, Any], width: int) -> None:
    generator = random.Random(f"{sorted(options)} {width}")
    config = configuration(data_width=width, **options)
    tasks = []
    while len(tasks) < 8:
        task = random_task(generator, config)
        modes = {task.a.mode, task.y.mode, task.b.mode if task.b else Mode.DENSE}
        needs_lane = task.op.splits_lanes or modes != {Mode.DENSE}
        a_fits = task.a.lane in config.lanes or not needs_lane
        y_fits = task.y.mode is Mode.DENSE or task.y.lane in config.lanes
        if modes <= config.modes and a_fits and y_fits:
            tasks.append(task)
    EngineBench(config).check(tasks)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("op", [Op.NOT, Op.XOR])
def test_no_idle_cycle_between_queued_commands(width: int, op: Op) -> None:
    bench = EngineBench(configuration(data_width=width))
    b = 2048 if op.reads_b else None
    bench.check([logic(op, 64 * i, b, 4096 + 64 * i, 64) for i in range(12)])
    beats = bench.writes.beats
    assert beats[-1] - beats[0] == 12 * 512 // width - 1


def test_fence_waits_for_what_the_command_reads() -> None:
    bench = EngineBench(configuration(), latency=40)
    tasks = [logic(Op.NOT, 0, None, 4096, 256), logic(Op.NOT, 4096, None, 0, 256, fence=True)]
    bench.check(tasks)


def test_in_place() -> None:
    bench = EngineBench(configuration())
    bench.check([logic(Op.XOR, 1000, 3000, 1000, 999), logic(Op.NOT, 1000, None, 1000, 7)])


@pytest.mark.parametrize(
    ("data_width", "ops", "block_ram", "latency"),
    [
        (32, frozenset({Op.NOT}), False, 9),
        (32, frozenset(Op), False, 12),
        (32, frozenset(Op), True, 13),
        (64, frozenset({Op.NOT}), False, 12),
        (64, frozenset(Op), False, 16),
    ],
)
def test_latency_of_a_short_command(
    data_width: int, ops: frozenset[Op], block_ram: bool, latency: int
) -> None:
    """N + 12 cycles are wanted at 32 bits, and at 64 bits 0.998 of 8192 beats: N + 16."""
    bench = EngineBench(configuration(data_width=data_width, ops=ops, block_ram=block_ram))
    bench.check([logic(Op.NOT, 0, None, 4096, 64)])
    beats = 64 // (data_width // 8)
    assert bench.writes.responses[-1] - bench.doorbells[0] == beats + latency


def test_completions_tell_how_each_command_ended() -> None:
    bench = EngineBench(configuration())
    words = []

    async def host(ctx: Any) -> None:
        for number in range(3):
            task = logic(Op.NOT, 0, None, 4096, 64)
            if number == 2:
                task.overrides = {"OP": 15}
            await bench.load(ctx, pack(task), number)
        await bench.ring(ctx, 3)
        await bench.settle(ctx)
        words.extend([await bench.read(ctx, COMPLETION_OFFSET + 4 * n) for n in range(3)])

    bench.run(host)
    assert words == [0, 1 << 8, 2 << 8 | Status.BAD_OP]


# --- Refusals -------------------------------------------------------------------------------

STRIDED_COUNT = Task(
    Op.COUNT,
    Walk(0, [8, 2], [8, 64], Mode.STRIDED, Lane.BITS_32),
    None,
    Walk(4096, [8, 2], [4, 32], Mode.DENSE, Lane.BITS_32),
)

REFUSED = [
    (Status.BAD_OP, logic(Op.NOT, 0, None, 4096, 64), {"OP": 11}),
    (Status.BAD_LANE, logic(Op.NOT, 0, None, 4096, 64), {"OUT_LANE": 1}),
    (Status.BAD_LANE, STRIDED_COUNT, {"OUT_LANE": 1}),
    (Status.BAD_CONTROL, logic(Op.NOT, 0, None, 4096, 64), {"LOOPS": 0}),
    (Status.BAD_CONTROL, logic(Op.NOT, 0, None, 4096, 64), {"LOOPS": 5}),
    (Status.BAD_CONTROL, logic(Op.NOT, 0, None, 4096, 64), {"A_MODE": 3}),
    (Status.BAD_CONTROL, logic(Op.NOT, 0, None, 4096, 64), {"Y_MODE": 2}),
    (Status.BAD_CONTROL, logic(Op.NOT, 0, None, 4096, 64), {"B_MODE": 2}),
    (Status.BAD_CONTROL, STRIDED_COUNT, {"RESERVED": 1}),
    (Status.BAD_SIZE, logic(Op.NOT, 0, None, 4096, 64), {"RUN": 0}),
    (Status.BAD_SIZE, logic(Op.NOT, 0, None, 4096, 64), {"RUN": 1 << 24}),
    (Status.BAD_SIZE, logic(Op.NOT, 0, None, 4096, 64), {"RUN": 1 << 23, "LANE": 1, "OUT_LANE": 1}),
    (Status.BAD_SIZE, STRIDED_COUNT, {"COUNT_1": 0}),
    (Status.BAD_SIZE, STRIDED_COUNT, {"COUNT_1": 1 << 24}),
    (Status.MISALIGNED, STRIDED_COUNT, {"Y_BASE": 4097}),
    (Status.MISALIGNED, STRIDED_COUNT, {"A_BASE": 2}),
    (Status.MISALIGNED, STRIDED_COUNT, {"A_STRIDE": 6}),
    (Status.MISALIGNED, STRIDED_COUNT, {"Y_JUMP_1": 30}),
    (Status.PAST_MEMORY, logic(Op.NOT, 0, None, 4096, 64), {"A_BASE": SIZE}),
    (Status.PAST_MEMORY, logic(Op.NOT, 0, None, 4096, 64), {"A_LAST": SIZE}),
    (Status.PAST_MEMORY, logic(Op.NOT, 0, None, 4096, 64), {"Y_BASE": SIZE}),
    (Status.PAST_MEMORY, logic(Op.NOT, 0, None, 4096, 64), {"Y_LAST": 1 << 31}),
    (Status.PAST_MEMORY, logic(Op.XOR, 0, 128, 4096, 64), {"B_BASE": SIZE}),
    (Status.PAST_MEMORY, logic(Op.XOR, 0, 128, 4096, 64), {"B_LAST": SIZE}),
]


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize(("status", "task", "overrides"), REFUSED)
def test_refusal(width: int, status: Status, task: Task, overrides: dict[str, int]) -> None:
    """A bad command causes no traffic; the one before it is done, the one after it is not."""
    bench = EngineBench(configuration(data_width=width))
    before = bench.memory.data.copy()
    bad = Task(task.op, task.a, task.b, task.y, overrides=overrides)
    good = logic(Op.NOT, 512, None, 5000, 40)
    fault, retired = bench.execute([good, bad, good])
    before[5000:5040] = ~before[512:552]
    assert (Status(fault & 0xFF), fault >> 8 & 3, fault >> 16) == (status, Port.NONE, 1)
    assert retired == 1
    assert np.array_equal(bench.memory.data, before)
    assert len(bench.read_a.requests) == (41 + width // 8) // (2 * width) + 1


@pytest.mark.parametrize("width", [32, 64, 128])
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
            await bench.write(ctx, register("CLEAR").offset, 1)
            bench.submitted = 0
            await ctx.tick().repeat(4)
            assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    assert np.array_equal(bench.memory.data, before)


def test_words_beyond_those_in_use_are_not_read() -> None:
    bench = EngineBench(configuration(data_width=128))
    task = logic(Op.NOT, 0, None, 4096, 64)
    expected = bench.memory.data.copy()
    expected[4096:4160] = ~expected[:64]

    async def host(ctx: Any) -> None:
        words = pack(task)
        assert len(words) == record_words(Op.NOT, 1, (Mode.DENSE,) * 3) == 6
        await bench.load(ctx, words + [0xDEADBEEF] * (RECORD_WORDS - 6))
        await bench.ring(ctx)
        await bench.settle(ctx)

    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


def test_seal_covers_words_in_use() -> None:
    words = pack(logic(Op.NOT, 0, None, 4096, 64))
    assert reseal(words, 6) == words


# --- Faults ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0x0, 0x48, 0xF8])
@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("ports", [1, 2])
def test_read_error(bad: int, which: str, ports: int) -> None:
    """The command stops at the beat that could not be read; CLEAR makes the engine work again."""
    bench = EngineBench(configuration(read_ports=ports))
    before = bench.memory.data.copy()
    base = 0 if which == "a" else 1024
    bench.memory.bad = lambda address: address == base + bad
    task = logic(Op.XOR, 0, 1024, 4096, 256)
    first = logic(Op.NOT, 2048, None, 6000, 100)
    found: dict[str, int] = {}

    async def host(ctx: Any) -> None:
        for number, each in enumerate([first, task, first]):
            await bench.load(ctx, pack(each), number)
        await bench.ring(ctx, 3)
        await bench.settle(ctx)
        for name in ("FAULT", "FAULT_ADDRESS", "RETIRED"):
            found[name] = await bench.register(ctx, name)
        found["traffic"] = len(bench.writes.beats)
        await ctx.tick().repeat(200)
        found["later"] = len(bench.writes.beats)
        bench.memory.bad = lambda address: False
        await bench.write(ctx, register("CLEAR").offset, 1)
        bench.submitted = 0
        await bench.load(ctx, pack(task))
        await bench.ring(ctx)
        await bench.settle(ctx)
        found["again"] = await bench.register(ctx, "FAULT")

    bench.run(host)
    port = Port.READ_A if which == "a" else Port.READ_B
    assert found["FAULT"] == Status.READ_ERROR | port << 8 | 1 << 16
    assert found["FAULT_ADDRESS"] == base + bad
    assert found["RETIRED"] == 1
    assert found["traffic"] == found["later"], "no write follows a fault"
    assert found["again"] == 0
    before[6000:6100] = ~before[2048:2148]
    before[4096:4352] = before[:256] ^ before[1024:1280]
    assert np.array_equal(bench.memory.data, before)


def test_write_error() -> None:
    bench = EngineBench(configuration())
    bench.memory.bad = lambda address: address == 4096 + 0x88
    fault, retired = bench.execute(
        [logic(Op.NOT, 0, None, 5000, 10), logic(Op.NOT, 0, None, 4096, 512)]
    )
    assert fault == Status.WRITE_ERROR | Port.WRITE << 8 | 1 << 16
    assert retired == 1


@pytest.mark.parametrize("which", ["read_a", "read_b", "writes"])
def test_hung_memory_is_a_fault_and_recovers(which: str) -> None:
    bench = EngineBench(configuration())
    server = getattr(bench, which)
    found: dict[str, int] = {}
    task = logic(Op.XOR, 0, 1024, 4096, 512)

    async def host(ctx: Any) -> None:
        await bench.write(ctx, register("TIMEOUT").offset, 100)
        await bench.load(ctx, pack(task))
        await bench.ring(ctx)
        await ctx.tick().repeat(12)
        server.hang = True
        await ctx.tick().repeat(250)
        found["STATUS"] = await bench.register(ctx, "STATUS")
        found["FAULT"] = await bench.register(ctx, "FAULT")
        await bench.write(ctx, register("CLEAR").offset, 1)
        await ctx.tick().repeat(50)
        found["still"] = await bench.register(ctx, "FAULT")
        server.hang = False
        await ctx.tick().repeat(200)
        found["cleared"] = await bench.register(ctx, "FAULT")
        bench.submitted = 0
        await bench.load(ctx, pack(task))
        await bench.ring(ctx)
        await bench.settle(ctx)
        found["again"] = await bench.register(ctx, "FAULT")

    bench.run(host)
    port = {"read_a": Port.READ_A, "read_b": Port.READ_B, "writes": Port.WRITE}[which]
    assert found["FAULT"] == Status.TIMEOUT | port << 8
    assert found["STATUS"] == 0b011, "busy, fault, not drained"
    assert found["still"] == found["FAULT"], "CLEAR waits until the bus is legal"
    assert found["cleared"] == 0
    assert found["again"] == 0
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
            await bench.load(ctx, pack(task))
            await bench.ring(ctx)
            await ctx.tick().repeat(delay)
            await bench.write(ctx, register("CLEAR").offset, 1)
            bench.submitted = 0
            await ctx.tick().repeat(60)
            assert await bench.register(ctx, "STATUS") & 0b11 == 0
            await bench.load(ctx, pack(again))
            await bench.ring(ctx)
            await bench.settle(ctx)
            assert await bench.register(ctx, "RETIRED") == 1

        bench.run(host)
        expected[6001:6071] = ~expected[300:370]
        got = bench.memory.data.copy()
        got[4099:4299] = expected[4099:4299]
        assert np.array_equal(got, expected), f"CLEAR after {delay} cycles"
        requested = sum(beats for _, _, beats in bench.read_a.requests)
        assert len(bench.read_a.beats) == requested
        assert len(bench.writes.responses) == len(bench.writes.requests)


def test_counters() -> None:
    bench = EngineBench(configuration())
    found: dict[str, int] = {}

    async def host(ctx: Any) -> None:
        await bench.load(ctx, pack(logic(Op.XOR, 0, 1024, 4096, 512)))
        await ctx.tick().repeat(12)
        await bench.ring(ctx)
        await bench.settle(ctx)
        for name in ("A_BEATS", "B_BEATS", "Y_BEATS", "Y_STALLS", "BUSY_CYCLES"):
            found[name] = await bench.register(ctx, name)
        await bench.write(ctx, register("COUNTERS_CLEAR").offset, 1)
        await ctx.tick().repeat(3)
        found["cleared"] = await bench.register(ctx, "A_BEATS")

    bench.run(host)
    busy = found.pop("BUSY_CYCLES")
    assert found == {"A_BEATS": 64, "B_BEATS": 64, "Y_BEATS": 64, "Y_STALLS": 0, "cleared": 0}
    assert busy == 64 + 16


@pytest.mark.parametrize("stalls", [NO_STALLS, STALLS[1]])
def test_ring_goes_round(stalls: Stalls) -> None:
    bench = EngineBench(configuration(slots=2), stalls=stalls)
    expected = bench.memory.data.copy()

    async def host(ctx: Any) -> None:
        for index in range(9):
            task = logic(Op.NOT, 100 * index, None, 4096 + 101 * index, 99, interrupt=True)
            await bench.load(ctx, pack(task))
            await bench.ring(ctx)
            await bench.settle(ctx)
        assert await bench.register(ctx, "RETIRED") == 9

    bench.run(host)
    for index in range(9):
        y = 4096 + 101 * index
        expected[y : y + 99] = ~expected[100 * index : 100 * index + 99]
    assert np.array_equal(bench.memory.data, expected)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("wait", range(5))
def test_a_record_written_while_the_one_before_it_starts_is_fetched_again(
    width: int, wait: int
) -> None:
    """RUN of the second record, whose bytes swapped leave the seal right, is written around it."""
    bench = EngineBench(configuration(data_width=width))
    expected = bench.memory.data.copy()
    expected[6000:6008] = ~expected[:8]
    expected[4096 : 4096 + 0x102] = ~expected[:0x102]
    stale = logic(Op.NOT, 0, None, 4096, 0x201)
    run = RECORD["RUN"].word

    async def host(ctx: Any) -> None:
        await bench.load(ctx, pack(logic(Op.NOT, 0, None, 6000, 8)))
        await bench.load(ctx, pack(stale), 1)
        await ctx.tick().repeat(20)
        await bench.ring(ctx)
        if wait:
            await ctx.tick().repeat(wait)
        await bench.write(ctx, RING_OFFSET + 4 * (RECORD_WORDS + run), 0x102)
        await ctx.tick().repeat(30)
        await bench.ring(ctx)
        await bench.settle(ctx)
        assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


def test_nothing_retires_in_the_cycle_after_an_error_response() -> None:
    bench = EngineBench(configuration())
    bench.memory.bad = lambda address: address == 4096
    rows = Task(
        Op.NOT,
        Walk(0, [8, 2], [1, 64], Mode.DENSE, Lane.BITS_8),
        None,
        Walk(4096, [8, 2], [1, 64], Mode.DENSE, Lane.BITS_8),
    )
    fault, retired = bench.execute([rows])
    assert bench.writes.responses[1] == bench.writes.responses[0] + 1, "else it shows nothing"
    assert (fault, retired) == (Status.WRITE_ERROR | Port.WRITE << 8, 0)


def test_no_burst_begins_two_cycles_after_an_error_response() -> None:
    bench = EngineBench(configuration(), latency=8)
    bench.memory.bad = lambda address: address == 4096
    scatter = Task(
        Op.NOT,
        Walk(0, [100], [2], Mode.DENSE, Lane.BITS_16),
        None,
        Walk(4096, [100], [16], Mode.STRIDED, Lane.BITS_16),
    )
    bench.execute([scatter])
    # The first cycle after the response has `stop`; what begins then is on the port in the second.
    assert bench.writes.requests[-1][0] == bench.writes.responses[0] + 2


@pytest.mark.parametrize("delay", range(1, 14))
@pytest.mark.parametrize("width", [32, 64])
def test_clear_waits_for_what_is_asked_for_as_it_comes(delay: int, width: int) -> None:
    """No request is dropped, and none is left over, whenever CLEAR meets the first one."""
    task = logic(Op.XOR, 1, 1026, 4099, 200)
    bench = EngineBench(configuration(data_width=width), latency=30)

    async def host(ctx: Any) -> None:
        await bench.load(ctx, pack(task))
        await ctx.tick().repeat(12)
        await bench.ring(ctx)
        await ctx.tick().repeat(delay)
        await bench.write(ctx, register("CLEAR").offset, 1)
        bench.submitted = 0
        while await bench.register(ctx, "DOORBELL"):
            pass
        for server in bench.servers:
            assert len(server.beats) == sum(beats for _, _, beats in server.requests)
        await ctx.tick().repeat(100)
        for server in bench.servers:
            assert len(server.beats) == sum(beats for _, _, beats in server.requests)

    bench.run(host)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("counts", [[2, 2], [1, 2], [2, 1, 2]])
def test_runs_and_loops_of_one_and_two(width: int, counts: list[int]) -> None:
    bench = EngineBench(configuration(data_width=width))
    steps = [[24, 64, 192], [6, 40, 100]]
    walks = [
        Walk(base, counts, step[: len(counts)], Mode.STRIDED, Lane.BITS_16)
        for base, step in zip((0, 4096), steps, strict=True)
    ]
    bench.check([Task(Op.NOT, walks[0], None, walks[1])] * 2)


@pytest.mark.parametrize("which", range(3))
def test_each_command_has_its_own_interrupt(which: int) -> None:
    bench = EngineBench(configuration())
    pending: list[int] = []

    async def host(ctx: Any) -> None:
        for number in range(3):
            task = logic(Op.NOT, 0, None, 4096, 64, interrupt=number == which)
            await bench.load(ctx, pack(task), number)
        for _ in range(3):
            await bench.ring(ctx)
            await bench.settle(ctx)
            await ctx.tick().repeat(2)
            pending.append(await bench.register(ctx, "INTERRUPT", "PENDING"))
            await bench.write(ctx, register("INTERRUPT").offset, 0b10)

    bench.run(host)
    assert pending == [number == which for number in range(3)]
