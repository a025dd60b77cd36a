"""The writer stores each output byte once, touches no other, and stops cleanly on errors."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import Lane, Mode
from bitlane_rtl.configuration import Configuration
from support.commands import dense
from support.rtl.memory import Memory, WriteServer
from support.rtl.streams import NO_STALLS, Source, Stalls, compiled, simulate
from support.rtl.walks import Walk, command_constant, random_walk, walked_writer
from support.seeds import seeds

SIZE = 1 << 12
GUARD = 0xEE
WIDE = Configuration(data_width=64)


def runs_of(configuration: Configuration, y: Walk) -> Iterator[tuple[int, int, int]]:
    """Yield each run's start, the offset of its first byte in a beat, and its beats."""
    for start in y.runs():
        offset = start % configuration.data_bytes if y.mode is Mode.DENSE else 0
        yield start, offset, -(-(offset + y.counts[0] * y.lane.bytes) // configuration.data_bytes)


def beats_of(configuration: Configuration, y: Walk, generator: random.Random) -> list[dict]:
    """Return random beats for every run, aligned for the writer; unused bytes are random too."""
    count = sum(beats for _, _, beats in runs_of(configuration, y))
    width = configuration.data_width
    return [{"data": generator.getrandbits(width), "error": 0} for _ in range(count)]


def bytes_of(beats: list[dict], size: int) -> bytes:
    return b"".join(beat["data"].to_bytes(size, "little") for beat in beats)


def store(configuration: Configuration, y: Walk, beats: list[dict], data: np.ndarray) -> None:
    """Write the elements of ``beats`` to ``data``, one by one."""
    position, size = 0, y.lane.bytes
    for start, offset, count in runs_of(configuration, y):
        line = bytes_of(beats[position : position + count], configuration.data_bytes)[offset:]
        for index, element in enumerate(y.elements(start)):
            data[element : element + size] = list(line[index * size : (index + 1) * size])
        position += count


class Bench:
    """A writer with its memory, and the events that it reports."""

    def __init__(
        self, configuration: Configuration, latency: int = 0, stalls: Stalls = NO_STALLS
    ) -> None:
        self.configuration = configuration
        self.dut = compiled(walked_writer, configuration)
        self.memory = Memory(np.full(SIZE, GUARD, np.uint8), configuration.data_bytes)
        self.server = WriteServer(self.dut.port, self.memory, latency, stalls)
        self.retired: list[int] = []
        self.failed: list[tuple[int, int]] = []
        self.poisoned = self.drained = False

    async def watch(self, ctx: Any) -> None:
        dut, cycle = self.dut, 0
        while True:
            _, _, retire, failed, address, self.poisoned, self.drained = await ctx.tick().sample(
                dut.retire, dut.failed, dut.address, dut.poisoned, dut.drained
            )
            if retire:
                self.retired.append(cycle)
            if failed:
                self.failed.append((cycle, address))
            cycle += 1

    def run(
        self,
        walks: list[Walk],
        beats: list[dict],
        stalls: Stalls = NO_STALLS,
        stop: int | None = None,
    ) -> None:
        """Write until all commands retire, or for long after ``stop``, the signal's first cycle."""
        commands = [command_constant(self.configuration, y, y, y) for y in walks]
        self.commands = Source(self.dut.commands, commands)
        self.source = Source(self.dut.i, beats, stalls)

        async def setup(ctx: Any) -> None:
            await self.dut.set_loops(ctx, walks[0], walks[0])

        async def settle(ctx: Any) -> None:
            if stop is not None:
                await ctx.tick().repeat(stop)
                ctx.set(self.dut.stop, 1)
            while len(self.retired) < len(walks) and not (stop or self.failed or self.poisoned):
                await ctx.tick()
            await ctx.tick().repeat(60)

        background = [self.server, self.watch, self.source]
        simulate(self.dut, setup, self.commands, settle, background=background)

    def expect_written(self, beats: list[dict]) -> None:
        """Expect that memory begins with ``beats``, and that nothing behind them was written."""
        written = bytes_of(beats, self.configuration.data_bytes)
        assert self.memory.data.tobytes() == written.ljust(SIZE, bytes([GUARD]))


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_random_loops(width: int, stalls: Stalls, seed: int) -> None:
    generator = random.Random(f"{width} {seed}")
    configuration = Configuration(data_width=width)
    for _ in range(3):
        mode = generator.choice([Mode.DENSE, Mode.STRIDED])
        lane = Lane(generator.randrange(3 if width == 32 else 4))
        counts = [generator.choice([1, 2, 7, 40])]
        counts += [generator.choice([1, 2, 3]) for _ in range(generator.randrange(3))]
        y = random_walk(
            generator, configuration, counts, mode, lane, size=SIZE, aligned=False, disjoint=True
        )
        beats = beats_of(configuration, y, generator)
        bench = Bench(configuration, generator.choice([0, 9]), stalls)
        expected = bench.memory.data.copy()
        store(configuration, y, beats, expected)
        bench.run([y], beats, stalls)
        assert np.array_equal(bench.memory.data, expected), f"{y} {stalls}"
        assert len(bench.retired) == 1, f"{y} {stalls}"


def test_beat_leaves_a_cycle_after_it_came_and_the_response_retires() -> None:
    bench = Bench(WIDE)
    y = dense(0, 800)
    beats = beats_of(WIDE, y, random.Random(1))
    bench.run([y], beats)
    came, start = bench.source.cycles, bench.commands.cycles[0]
    assert came == list(range(start + 5, start + 105)), "steps, spans (2), splitter, bursts"
    assert bench.server.beats == [cycle + 1 for cycle in came]
    assert bench.retired == [bench.server.beats[-1] + 1]


def test_no_idle_cycle_between_commands() -> None:
    bench = Bench(WIDE)
    walks = [dense(64 * index, 64) for index in range(6)]
    beats = [beat for y in walks for beat in beats_of(WIDE, y, random.Random(2))]
    bench.run(walks, beats)
    first = bench.server.beats[0]
    assert bench.server.beats == list(range(first, first + 48))
    assert len(bench.retired) == 6


def test_scatter_takes_an_element_a_cycle() -> None:
    bench = Bench(WIDE)
    y = Walk(2, [100], [6], Mode.STRIDED, Lane.BITS_16)
    bench.run([y], beats_of(WIDE, y, random.Random(3)))
    first = bench.server.beats[0]
    assert bench.server.beats == list(range(first, first + 100))


def test_error_response_names_its_burst_before_its_command_could_retire() -> None:
    bench = Bench(WIDE)
    bench.memory.bad = lambda address: address == 0x98
    y = dense(0, 512)
    bench.run([y], beats_of(WIDE, y, random.Random(4)))
    assert [address for _, address in bench.failed] == [0x80]
    assert bench.failed[0][0] < bench.retired[0]


@pytest.mark.parametrize("bad", [0, 5, 15, 16, 17, 40, 63])
def test_nothing_is_written_after_an_unreadable_beat(bad: int) -> None:
    bench = Bench(WIDE)
    y = dense(0, 512)
    beats = beats_of(WIDE, y, random.Random(5))
    for beat in beats[bad:]:
        beat["error"] = 1
    bench.run([y], beats)
    bench.expect_written(beats[:bad])
    assert bench.poisoned
    assert bench.drained, "the open burst ended legally"
    assert len(bench.server.responses) == len(bench.server.requests)
    assert not bench.retired


def test_command_before_an_unreadable_one_retires() -> None:
    bench = Bench(WIDE, latency=20)
    walks = [dense(0, 64), dense(64, 64)]
    beats = [beat for y in walks for beat in beats_of(WIDE, y, random.Random(6))]
    beats[8]["error"] = 1
    bench.run(walks, beats)
    assert len(bench.retired) == 1
    assert bench.drained


@pytest.mark.parametrize("stop", range(6, 44))
def test_stop_ends_the_open_burst_with_empty_strobes_and_starts_none(stop: int) -> None:
    bench = Bench(WIDE)
    y = dense(0, 256)
    beats = beats_of(WIDE, y, random.Random(7))
    bench.run([y], beats, stop=stop)
    taken = bench.source.cycles
    assert not taken or taken[-1] <= stop, "from the next cycle on none is"
    bench.expect_written(beats[: len(taken)])
    assert len(bench.server.requests) == -(-len(taken) // 16)
    assert len(bench.server.responses) == len(bench.server.requests)
    assert bench.drained
    assert len(bench.retired) == (len(taken) == len(beats))
