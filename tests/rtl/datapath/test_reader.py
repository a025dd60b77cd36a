"""A reader gives each operand's bytes in order, aligned like the output, a beat a cycle."""

import random
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import Lane, Mode
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath.reader import Reader
from support.rtl.memory import Memory, ReadServer
from support.rtl.streams import NO_STALLS, STALLS, Sink, Source, Stalls, simulate
from support.rtl.walks import Walk, loop_constants, random_walk

SIZE = 1 << 12


def memory(configuration: Configuration, seed: int = 0) -> Memory:
    data = np.random.default_rng(seed).integers(0, 256, SIZE, dtype=np.uint8)
    return Memory(data, configuration.data_bytes)


def expected_beats(
    configuration: Configuration, store: Memory, a: Walk, y: Walk
) -> list[tuple[list[int | None], bool, bool]]:
    """For each beat its bytes (None: undefined), and whether it ends its run and the command."""
    beats: list[tuple[list[int | None], bool, bool]] = []
    for start, y_start in zip(a.runs(), y.runs(), strict=True):
        offset = y_start % configuration.data_bytes if y.mode is Mode.DENSE else 0
        line: list[int | None] = [None] * offset
        for element in a.elements(start):
            line += [int(byte) for byte in store.data[element : element + a.lane.bytes]]
        line += [None] * (-len(line) % configuration.data_bytes)
        for at in range(0, len(line), configuration.data_bytes):
            last = at + configuration.data_bytes == len(line)
            beats.append((line[at : at + configuration.data_bytes], last, False))
    beats[-1] = (*beats[-1][:2], True)
    return beats


def check(
    configuration: Configuration,
    commands: list[tuple[Walk, Walk]],
    stalls: Stalls = NO_STALLS,
    latency: int = 0,
) -> tuple[Sink, ReadServer]:
    """Run commands that share their loops, compare every beat, and return what was seen."""
    dut = Reader(configuration)
    store = memory(configuration)
    expected = [beat for a, y in commands for beat in expected_beats(configuration, store, a, y)]
    source = Source(dut.i, [a.start(configuration, y) for a, y in commands], NO_STALLS)
    sink = Sink(dut.o, len(expected), stalls, idle=4)
    server = ReadServer(dut.port, store, latency, stalls)

    async def setup(ctx: object) -> None:
        a, y = commands[0]
        loops = loop_constants(configuration, a, a, y)
        ctx.set(dut.loops, loops)  # type: ignore[attr-defined]
        ctx.set(dut.track, loops["a"])  # type: ignore[attr-defined]
        ctx.set(dut.offsets, loops["y"])  # type: ignore[attr-defined]

    simulate(dut, setup, source, sink, background=[server], deadline=20_000)
    for number, (beat, (line, last, end)) in enumerate(zip(sink.payloads, expected, strict=True)):
        got = int(beat.data).to_bytes(configuration.data_bytes, "little")
        for place, byte in enumerate(line):
            assert byte in (None, got[place]), f"beat {number}, byte {place}: {commands} {stalls}"
        assert (beat.edge.last, beat.edge.end) == (last, end), f"beat {number}: {commands}"
    return sink, server


def dense(base: int, size: int) -> Walk:
    return Walk(base, [size], [1], Mode.DENSE, Lane.BITS_8)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("seed", range(6))
def test_random_loops_of_every_mode(width: int, stalls: Stalls, seed: int) -> None:
    generator = random.Random(f"{width} {seed}")
    configuration = Configuration(data_width=width, fifo_beats=32)
    for _ in range(3):
        mode = generator.choice(list(Mode))
        lane = Lane(generator.randrange(3 if width == 32 else 4))
        counts = [generator.choice([1, 2, 7, 40])]
        counts += [generator.choice([1, 2, 5]) for _ in range(generator.randrange(4))]
        y_mode = generator.choice([Mode.DENSE, Mode.STRIDED])
        plain = mode is Mode.DENSE and y_mode is Mode.DENSE
        a = random_walk(generator, configuration, counts, mode, lane, size=SIZE, aligned=not plain)
        y = random_walk(
            generator, configuration, counts, y_mode, lane, size=1 << 20, aligned=not plain
        )
        check(configuration, [(a, y)], stalls, generator.choice([0, 0, 9]))


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("block_ram", [False, True])
def test_dense_run_takes_a_beat_a_cycle(width: int, block_ram: bool) -> None:
    configuration = Configuration(
        data_width=width, loops=1, modes=frozenset({Mode.DENSE}), block_ram=block_ram
    )
    beats = 100
    sink, server = check(configuration, [(dense(0, beats * width // 8), dense(0, 1))])
    assert server.requests[0][0] == 2, "start at edge 0: splitter, skid"
    assert sink.cycles[0] == (5 if block_ram else 4), "beat at edge 3, then the FIFO"
    assert sink.cycles[-1] - sink.cycles[0] == beats - 1


@pytest.mark.parametrize("source", [0, 1, 5, 7])
@pytest.mark.parametrize("target", [0, 3, 7])
def test_odd_rows_cost_only_what_the_bus_carries(source: int, target: int) -> None:
    configuration = Configuration(data_width=64)
    rows, size = 20, 64
    a = Walk(source, [size, rows], [1, 65], Mode.DENSE, Lane.BITS_8)
    y = Walk(target, [size, rows], [1, 128], Mode.DENSE, Lane.BITS_8)
    sink, server = check(configuration, [(a, y)])
    read = sum(beats for _, _, beats in server.requests)
    busy = sink.cycles[-1] - sink.cycles[0] + 1
    assert busy <= max(read, len(sink.cycles)) + 3, "prime and flush overlap"


def test_gather_takes_an_element_a_cycle() -> None:
    configuration = Configuration(data_width=64)
    a = Walk(4, [200], [8], Mode.STRIDED, Lane.BITS_16)
    y = Walk(0, [200], [2], Mode.DENSE, Lane.BITS_16)
    sink, server = check(configuration, [(a, y)])
    assert server.beats[-1] - server.beats[0] == 199
    assert len(sink.cycles) == 50


def test_repeated_element_is_read_once_a_run() -> None:
    configuration = Configuration(data_width=64)
    a = Walk(12, [100, 3], [0, 4], Mode.REPEAT, Lane.BITS_32)
    y = Walk(4, [100, 3], [4, 400], Mode.DENSE, Lane.BITS_32)
    sink, server = check(configuration, [(a, y)])
    assert len(server.beats) == 3
    assert sink.cycles[-1] - sink.cycles[0] == len(sink.cycles) - 1


def test_long_latency_is_hidden_by_reads_in_flight() -> None:
    configuration = Configuration(data_width=32, loops=1, modes=frozenset({Mode.DENSE}))
    sink, _ = check(configuration, [(dense(0, 3000), dense(0, 1))], latency=30)
    assert sink.cycles[-1] - sink.cycles[0] == 749


def test_next_command_follows_without_a_gap() -> None:
    configuration = Configuration(data_width=64)
    commands = [(dense(64 * i, 64), dense(0, 1)) for i in range(8)]
    sink, _ = check(configuration, commands)
    assert sink.cycles[-1] - sink.cycles[0] == 63


def test_error_marks_its_beat_and_all_after_it() -> None:
    configuration = Configuration(data_width=64)
    dut = Reader(configuration)
    store = memory(configuration)
    store.bad = lambda address: address == 0x58
    source = Source(dut.i, [dense(0x10, 128).start(configuration, dense(0, 1))])
    sink = Sink(dut.o, 16, idle=1)
    seen = []

    async def address(ctx: object) -> None:
        await ctx.tick().repeat(60)  # type: ignore[attr-defined]
        seen.append(ctx.get(dut.address))  # type: ignore[attr-defined]

    simulate(dut, source, sink, address, background=[ReadServer(dut.port, store)])
    assert [int(beat.edge.error) for beat in sink.payloads] == [0] * 9 + [1] * 7
    assert seen == [0x58]


def test_stop_requests_no_more_and_takes_what_was_requested() -> None:
    configuration = Configuration(data_width=64)
    dut = Reader(configuration)
    server = ReadServer(dut.port, memory(configuration), latency=20)
    source = Source(dut.i, [dense(0, 2048).start(configuration, dense(0, 1))])
    waiting = []

    async def stop(ctx: object) -> None:
        await ctx.tick().repeat(5)  # type: ignore[attr-defined]
        ctx.set(dut.stop, 1)  # type: ignore[attr-defined]
        await ctx.tick().repeat(100)  # type: ignore[attr-defined]
        waiting.append(ctx.get(dut.waiting))  # type: ignore[attr-defined]

    simulate(dut, source, stop, background=[server])
    assert waiting == [0]
    assert len(server.beats) == sum(beats for _, _, beats in server.requests) < 256


def test_a_reader_asks_for_nothing_a_cycle_after_stop() -> None:
    """There is room for 16 single beats a while longer, and the memory takes them at once."""
    config = Configuration(data_width=64)
    dut = Reader(config)
    server = ReadServer(dut.port, memory(config), latency=3)
    a = Walk(0, [400], [8], Mode.STRIDED, Lane.BITS_16)
    y = Walk(0, [400], [2], Mode.DENSE, Lane.BITS_16)
    source = Source(dut.i, [a.start(config, y)])

    async def stop(ctx: Any) -> None:
        loops = loop_constants(config, a, a, y)
        ctx.set(dut.loops, loops)
        ctx.set(dut.track, loops["a"])
        ctx.set(dut.offsets, loops["y"])
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(20)
        ctx.set(dut.stop, 1)
        await ctx.tick().repeat(60)

    simulate(dut, source, stop, background=[server])
    # Cycle 20 is the first with `stop`; what is asked for then is on the port in cycle 21.
    assert server.requests[-1][0] == 21
    assert len(server.beats) == len(server.requests)
