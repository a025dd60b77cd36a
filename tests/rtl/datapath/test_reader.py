"""A reader emits each operand's bytes in order, aligned to the output, a beat per cycle."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import Lane, Mode
from bitlane_rtl.configuration import Configuration
from support.commands import dense
from support.rtl.memory import Memory, ReadServer
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, compiled, simulate
from support.rtl.walks import OPERAND_MODES, Walk, command_constant, random_walk, walked_reader
from support.seeds import seeds, slow

SIZE = 1 << 12


WIDE = Configuration(data_width=64)


def memory(configuration: Configuration) -> Memory:
    data = np.random.default_rng(0).integers(0, 256, SIZE, dtype=np.uint8)
    return Memory(data, configuration.data_bytes)


def command(configuration: Configuration, a: Walk, y: Walk) -> dict[str, Any]:
    return command_constant(configuration, a, a, y)


@dataclass
class Expected:
    """An expected beat: its bytes, None for any value, and its flags."""

    line: list[int | None]
    slot: int
    last: bool = False
    end: bool = False
    final: int | None = None
    repeat: bool = False
    extra: bool = False
    """Compared only if ``repeat`` is set."""


def expected_beats(
    configuration: Configuration, store: Memory, a: Walk, y: Walk
) -> Iterator[Expected]:
    """Yield the beats of A; each run is aligned to the run of Y, element for element."""
    size = configuration.data_bytes
    runs = list(zip(a.runs(), y.runs(), strict=True))
    for number, (start, y_start) in enumerate(runs):
        offset = y_start % size // y.lane.bytes * a.lane.bytes if y.mode is Mode.DENSE else 0
        slot, offset = divmod(offset, size)
        length = a.counts[0] * a.lane.bytes
        beats = -(-(offset + length) // size)
        # `final` matters only on the last beat, and only if elements of 8 or 16 bits widen.
        final = (offset + length - 1) % size * 4 // size if a.lane < y.lane else None
        end = number == len(runs) - 1
        if a.mode is Mode.REPEAT:
            element = [int(byte) for byte in store.data[start : start + a.lane.bytes]]
            extra = beats > -(-length // size)
            filled: list[int | None] = [*element * (size // a.lane.bytes)]
            yield Expected(filled, slot, beats == 1, end, final, True, extra)
            continue
        line: list[int | None] = [None] * offset
        for at in a.elements(start):
            line += [int(byte) for byte in store.data[at : at + a.lane.bytes]]
        line += [None] * (-len(line) % size)
        for beat in range(beats):
            last = beat == beats - 1
            part = line[beat * size : (beat + 1) * size]
            yield Expected(part, slot, last, last and end, final if last else None)


@dataclass
class Seen:
    """Cycles of the commands and of the operand's beats, and the memory with its log."""

    starts: list[int]
    beats: list[int]
    server: ReadServer


def check(
    configuration: Configuration,
    commands: list[tuple[Walk, Walk]],
    stalls: Stalls = NO_STALLS,
    latency: int = 0,
    *,
    rests: Stalls | None = None,
) -> Seen:
    """Run commands that share their loops and compare every beat.

    ``rests`` are the stalls of the sink, if they differ from the ``stalls`` of the memory.
    """
    dut = compiled(walked_reader, configuration)
    store = memory(configuration)
    expected = [beat for a, y in commands for beat in expected_beats(configuration, store, a, y)]
    source = Source(dut.commands, [command(configuration, a, y) for a, y in commands])
    sink = Sink(dut.o, len(expected), rests or stalls, idle=4)
    server = ReadServer(dut.port, store, latency, stalls)

    async def setup(ctx: Any) -> None:
        await dut.set_loops(ctx, *commands[0])

    simulate(dut, setup, source, sink, background=[server], deadline=20_000)
    of = f"{commands} {stalls}"
    for number, (beat, want) in enumerate(zip(sink.payloads, expected, strict=True)):
        where = (number, of)
        got = int(beat.data).to_bytes(configuration.data_bytes, "little")
        assert all(byte in (None, found) for byte, found in zip(want.line, got, strict=True)), where
        edge = (beat.edge.last, beat.edge.end, beat.edge.slot, beat.repeat, beat.edge.error)
        assert edge == (want.last, want.end, want.slot, want.repeat, 0), where
        unit = 2 if commands[0][0].lane is Lane.BITS_16 else 1
        assert want.final is None or beat.edge.final // unit == want.final // unit, where
        assert not want.repeat or beat.extra == want.extra, where
    return Seen(source.cycles, sink.cycles, server)


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_random_loops_of_every_mode(width: int, stalls: Stalls, seed: int) -> None:
    generator = random.Random(f"{width} {seed}")
    configuration = Configuration(data_width=width, fifo_beats=32)
    for _ in range(3):
        mode = generator.choice(OPERAND_MODES)
        lane = Lane(generator.randrange(3 if width == 32 else 4))
        counts = [generator.choice([1, 2, 7, 40])]
        counts += [generator.choice([1, 2, 5]) for _ in range(generator.randrange(4))]
        y_mode = generator.choice([Mode.DENSE, Mode.STRIDED])
        y_lane = generator.choice([lane, lane, Lane.BITS_8, Lane.BITS_32])
        plain = mode is Mode.DENSE and y_mode is Mode.DENSE and lane is y_lane
        a = random_walk(generator, configuration, counts, mode, lane, size=SIZE, aligned=not plain)
        y = random_walk(
            generator, configuration, counts, y_mode, y_lane, size=1 << 20, aligned=not plain
        )
        check(configuration, [(a, y)], stalls, generator.choice([0, 0, 9]))


@pytest.mark.parametrize(
    ("options", "latency"),
    [
        ({"data_width": 32, "fifo_beats": 32}, 5),
        slow({"data_width": 32}, 5),
        ({"data_width": 64}, 7),
        ({"data_width": 64, "loops": 1, "modes": frozenset({Mode.DENSE})}, 5),
        slow({"data_width": 32, "block_ram": True}, 6),
    ],
)
def test_dense_run_takes_a_beat_a_cycle(options: dict[str, Any], latency: int) -> None:
    configuration = Configuration(**options)
    beats = 100
    seen = check(configuration, [(dense(0, beats * configuration.data_bytes), dense(0, 1))])
    start = seen.starts[0]
    assert seen.server.requests[0][0] == start + 3, "steps, splitter, requests"
    assert seen.beats[0] == start + latency, "the memory's beat; the byte network's, and the FIFO"
    assert seen.beats[-1] - seen.beats[0] == beats - 1


@pytest.mark.parametrize("source", [0, 1, 5, 7])
@pytest.mark.parametrize("target", [0, 3, 7])
def test_odd_rows_cost_only_what_the_bus_carries(source: int, target: int) -> None:
    rows, size = 20, 64
    a = Walk(source, [size, rows], [1, 65], Mode.DENSE, Lane.BITS_8)
    y = Walk(target, [size, rows], [1, 128], Mode.DENSE, Lane.BITS_8)
    seen = check(WIDE, [(a, y)])
    read = sum(beats for _, _, beats in seen.server.requests)
    busy = seen.beats[-1] - seen.beats[0] + 1
    assert busy <= max(read, len(seen.beats)) + 3, "prime and flush overlap"


def test_gather_takes_an_element_a_cycle() -> None:
    a = Walk(4, [200], [8], Mode.STRIDED, Lane.BITS_16)
    y = Walk(0, [200], [2], Mode.DENSE, Lane.BITS_16)
    seen = check(WIDE, [(a, y)])
    assert seen.server.beats == list(range(seen.server.beats[0], seen.server.beats[0] + 200))
    assert len(seen.beats) == 50


def test_repeated_element_is_read_and_sent_once_a_run() -> None:
    a = Walk(12, [100, 3], [0, 4], Mode.REPEAT, Lane.BITS_32)
    y = Walk(4, [100, 3], [4, 400], Mode.DENSE, Lane.BITS_32)
    seen = check(WIDE, [(a, y)])
    assert len(seen.server.beats) == len(seen.beats) == 3
    assert seen.beats == list(range(seen.beats[0], seen.beats[0] + 3))


@pytest.mark.parametrize(("width", "beats"), [slow(32, 750), (64, 500)])
def test_long_latency_is_hidden_by_reads_in_flight(width: int, beats: int) -> None:
    configuration = Configuration(data_width=width, loops=1, modes=frozenset({Mode.DENSE}))
    seen = check(configuration, [(dense(0, beats * width // 8), dense(0, 1))], latency=30)
    assert seen.beats[-1] - seen.beats[0] == beats - 1


@pytest.mark.parametrize(("bursts", "later"), [(2, 2), (8, 4)])
def test_as_many_bursts_are_in_flight_as_the_configuration_says(bursts: int, later: int) -> None:
    """The memory is slow, so bursts of one beat fill the FIFO of bursts and would overrun it."""
    configuration = Configuration(data_width=32, fifo_beats=64, bursts=bursts)
    a = Walk(4, [60], [8], Mode.STRIDED, Lane.BITS_16)
    y = Walk(0, [60], [2], Mode.DENSE, Lane.BITS_16)
    seen = check(configuration, [(a, y)], latency=40)
    requests = [cycle for cycle, _, _ in seen.server.requests]
    beats = seen.server.beats
    owed = [number + 1 - sum(x < cycle for x in beats) for number, cycle in enumerate(requests)]
    assert max(owed) == bursts
    assert requests[bursts] - beats[0] == later, "the next request, after a place is free"


def test_next_command_follows_without_a_gap() -> None:
    commands = [(dense(64 * i, 64), dense(0, 1)) for i in range(8)]
    seen = check(WIDE, commands)
    assert seen.beats[-1] - seen.beats[0] == 63


def rows(source: int, target: int, size: int) -> tuple[Walk, Walk]:
    """Return 200 rows of ``size`` bytes that all begin at the same byte of their beats."""
    a = Walk(source, [size, 200], [1, 16], Mode.DENSE, Lane.BITS_8)
    return a, Walk(target, [size, 200], [1, 16], Mode.DENSE, Lane.BITS_8)


def gathered(size: int) -> tuple[Walk, Walk]:
    """Return 200 runs that gather the same ``size`` elements into beats of several elements."""
    a = Walk(4, [size, 200], [8, 0], Mode.STRIDED, Lane.BITS_16)
    return a, Walk(0, [size, 200], [2, 2 * size], Mode.DENSE, Lane.BITS_16)


def flushes_in_a_row() -> tuple[Walk, Walk]:
    """Return pairs of rows that end in a flush; at 32 bits the first row ends with a burst of one
    beat, and the second is a whole block."""
    a = Walk(4, [64, 2, 30], [1, 60, 0], Mode.DENSE, Lane.BITS_8)
    return a, Walk(1, [64, 2, 30], [1, 64, 128], Mode.DENSE, Lane.BITS_8)


FILLING = {
    "dense": (dense(3, 4000), dense(6, 1)),
    "dense, a word ahead": (dense(6, 4000), dense(3, 1)),
    "a word, two beats": rows(0, 7, 2),
    "two words, a beat": rows(7, 0, 2),
    "two words, three beats": rows(0, 7, 15),
    "bursts that flush one behind the other": flushes_in_a_row(),
    "gather, a beat a run": gathered(1),
    "gather, eight elements": gathered(8),
    "repeat": (
        Walk(12, [100, 200], [0, 4], Mode.REPEAT, Lane.BITS_32),
        Walk(4, [100, 200], [4, 400], Mode.DENSE, Lane.BITS_32),
    ),
}


@pytest.mark.parametrize(
    ("name", "data_width"),
    [
        each if number % 4 in (0, 3) else slow(*each)
        for number, each in enumerate(product(FILLING, (32, 64)))
    ],
)
def test_the_fifo_never_overflows(name: str, data_width: int) -> None:
    """The memory answers at once, and the sink stalls for long: no beat may be lost."""
    configuration = Configuration(data_width=data_width, fifo_beats=32)
    rests = Stalls(seed=1, probability=0.05, longest=400)
    seen = check(configuration, [FILLING[name]], rests=rests)
    gaps = [after[0] - before[0] for before, after in pairwise(seen.server.requests)]
    assert max(gaps) > 32, "else the FIFO never was full"


def test_error_marks_its_beat_and_all_after_it() -> None:
    dut = compiled(walked_reader, WIDE)
    store = memory(WIDE)
    store.bad = lambda address: address == 0x98
    source = Source(dut.commands, [command(WIDE, dense(0x10, 256), dense(0, 1))])
    sink = Sink(dut.o, 32, idle=1)
    seen = []

    async def address(ctx: Any) -> None:
        await ctx.tick().repeat(60)
        seen.append(ctx.get(dut.address))

    server = ReadServer(dut.port, store)
    simulate(dut, source, sink, address, background=[server])
    assert [int(beat.edge.error) for beat in sink.payloads] == [0] * 17 + [1] * 15
    assert seen == [0x80], "the burst's address"
    assert [address for _, address, _ in server.requests] == [0x10, 0x80, 0x100]


def run_until_stop(a: Walk, y: Walk, latency: int, cycle: int) -> tuple[ReadServer, int]:
    """Assert ``stop`` in ``cycle``; return the memory, and ``waiting`` 100 cycles later."""
    dut = compiled(walked_reader, WIDE)
    server = ReadServer(dut.port, memory(WIDE), latency)
    waiting = []

    async def stop(ctx: Any) -> None:
        await dut.set_loops(ctx, a, y)
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(cycle)
        ctx.set(dut.stop, 1)
        await ctx.tick().repeat(100)
        waiting.append(ctx.get(dut.waiting))

    source = Source(dut.commands, [command(WIDE, a, y)])
    simulate(dut, source, stop, background=[server])
    return server, waiting[0]


@pytest.mark.parametrize("size", [64, 300])
def test_a_reader_waits_from_its_request_to_its_last_beat(size: int) -> None:
    """``waiting`` is 1 exactly while the memory owes a beat; ``drained`` relies on it."""
    dut = compiled(walked_reader, WIDE)
    server = ReadServer(dut.port, memory(WIDE), latency=20)
    source = Source(dut.commands, [command(WIDE, dense(0, size), dense(0, 1))])
    waiting = []

    async def watch(ctx: Any) -> None:
        ctx.set(dut.o.ready, 1)
        for _ in range(120):
            _, _, seen = await ctx.tick().sample(dut.waiting)
            waiting.append(seen)

    simulate(dut, source, watch, background=[server])
    cycles = [cycle for cycle, seen in enumerate(waiting) if seen]
    assert cycles == list(range(server.requests[0][0], server.beats[-1] + 1))


def test_stop_requests_no_more_and_takes_what_was_requested() -> None:
    server, waiting = run_until_stop(dense(0, 2048), dense(0, 1), 20, 6)
    assert not waiting
    assert len(server.beats) == sum(beats for _, _, beats in server.requests) < 256


def test_a_reader_asks_for_nothing_a_cycle_after_stop() -> None:
    """Only ``stop`` ends the requests: 16 single beats still fit, and the memory accepts them."""
    a = Walk(0, [400], [8], Mode.STRIDED, Lane.BITS_16)
    y = Walk(0, [400], [2], Mode.DENSE, Lane.BITS_16)
    server, _ = run_until_stop(a, y, 3, 20)
    # Cycle 20 is the first with `stop`; a request of that cycle is on the port in cycle 21.
    assert server.requests[-1][0] == 21
    assert len(server.beats) == len(server.requests)
