"""The nest issues every step once, in order; walks have every address."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from bitlane_rtl.abi import Lane, Mode
from bitlane_rtl.addresses import AddressGenerator, LoopNest
from bitlane_rtl.command import STREAMS
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.streams import Fifo, SkidBuffer, Stage
from support.rtl.streams import NO_STALLS, Sink, Source, Stalls, compiled, simulate
from support.rtl.walks import (
    OPERAND_MODES,
    Walk,
    command_constant,
    loop_constants,
    random_walk,
    walked_steps,
)
from support.seeds import seeds, slow

BUFFERS: dict[str, Stage] = {"skid": SkidBuffer, "fifo": lambda shape: Fifo(shape, 4)}


@dataclass
class Nested:
    """A command: its iterations, the run's first.

    ``strided``: which of A, Y and B step by elements; ``used``: which of them it has.
    """

    counts: list[int]
    strided: tuple[bool, bool, bool] = (False, False, False)
    used: tuple[bool, bool, bool] = (True, True, True)

    @property
    def plain(self) -> bool:
        return len(self.counts) == 1 and not any(self.strided)

    def steps(self, stream: int) -> list[dict[str, int]]:
        return walked_steps(self.counts, self.strided[stream]) if self.used[stream] else []

    def cycles(self, stream: int) -> Iterator[int]:
        """Yield the cycle of each of a stream's steps, counted from the start."""
        elements = self.counts[0] if any(self.strided) else 1
        for step, _ in enumerate(walked_steps([elements, *self.counts[1:]], True)):
            if self.used[stream] and (self.strided[stream] or step % elements == 0):
                yield step


def by_name(flags: tuple[bool, ...]) -> dict[str, bool]:
    return dict(zip(STREAMS, flags, strict=True))


class Bench:
    """A driver that starts each command as soon as the nest has walked the one before."""

    def __init__(
        self, configuration: Configuration, commands: list[Nested], buffer: Stage = SkidBuffer
    ) -> None:
        self.configuration = configuration
        self.commands = commands
        self.starts: list[int] = []
        self.dut = compiled(LoopNest, configuration, buffer)
        self._stale = random.Random(0)

    async def run(self, ctx: Any) -> None:
        cycle = 0
        for command in self.commands:
            while ctx.get(self.dut.walking):
                await ctx.tick()
                cycle += 1
            self._say(ctx, command)
            ctx.set(self.dut.start, 1)
            self.starts.append(cycle)
            await ctx.tick()
            cycle += 1
            ctx.set(self.dut.start, 0)
            ctx.set(self.dut.plain, 0)

    def _say(self, ctx: Any, command: Nested) -> None:
        """Set a command's inputs; loops not in use, and all inputs with ``plain``, are random."""
        dut, counts = self.dut, command.counts
        stale = [self._stale.randrange(-1, 4) for _ in range(self.configuration.loops)]
        loops = [count - 2 for count in counts] + stale[len(counts) :]
        strided, in_use = command.strided, len(counts) - 1
        if not any(command.strided):
            loops[0] = stale[0]
        if command.plain:
            loops = stale
            strided = cast(tuple[bool, bool, bool], tuple(self._stale.choices([False, True], k=3)))
            in_use = self._stale.randrange(self.configuration.loops)
        ctx.set(dut.used, by_name(command.used))
        ctx.set(dut.plain, command.plain)
        ctx.set(dut.strided, by_name(strided))
        ctx.set(dut.in_use, in_use)
        ctx.set(dut.loops, {"run": loops[0], "counts": loops[1:]})


def check(
    configuration: Configuration,
    commands: list[Nested],
    stalls: Stalls = NO_STALLS,
    buffer: str = "skid",
) -> None:
    """Walk commands and compare all steps; without stalls, compare their cycles, too."""
    bench = Bench(configuration, commands, BUFFERS[buffer])
    dut = bench.dut
    expected = [[step for each in commands for step in each.steps(n)] for n in range(3)]
    sinks = [
        Sink(getattr(dut, name), len(expected[number]), stalls, name)
        for number, name in enumerate(STREAMS)
    ]
    simulate(dut, bench, *sinks, deadline=20_000)
    for number, sink in enumerate(sinks):
        told = [
            {"advances": 0 if step.end else step.advances, "last": step.last, "end": step.end}
            for step in sink.payloads
        ]
        assert told == expected[number], f"{STREAMS[number]} {commands} {stalls}"
        if stalls == NO_STALLS:
            cycles = [
                start + 1 + cycle + (not command.plain)
                for start, command in zip(bench.starts, commands, strict=True)
                for cycle in command.cycles(number)
            ]
            assert sink.cycles == cycles, f"{STREAMS[number]} {commands}"


def random_command(generator: random.Random, loops: int, strides: bool) -> Nested:
    def flags(chance: float) -> tuple[bool, bool, bool]:
        a, b, y = (generator.random() < chance for _ in range(3))
        return a, y, b

    counts = [generator.choice([1, 2, 3, 7]) for _ in range(generator.randint(1, loops))]
    strided = flags(generator.choice([0, 0.3, 0.7])) if strides else (False, False, False)
    # Every command uses A and Y.
    return Nested(counts, strided, (True, True, generator.random() < 0.5))


@pytest.mark.parametrize("modes", [frozenset(Mode), frozenset({Mode.DENSE})], ids=["all", "dense"])
@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("loops", [1, slow(2), slow(4), 6])
def test_commands_of_every_kind_in_turn(
    loops: int, buffer: str, modes: frozenset[Mode], stalls: Stalls
) -> None:
    """Without strided runs there is nothing to count within them."""
    generator, strides = random.Random(f"{loops} {stalls.seed}"), Mode.STRIDED in modes
    commands = [random_command(generator, min(loops, 4), strides) for _ in range(30)]
    commands += [Nested(counts[:loops]) for counts in ([1] * 6, [2] * 6, [1, 2] * 3, [2, 1] * 3)]
    check(Configuration(loops=loops, modes=modes), commands, stalls, buffer)


def test_a_dense_stream_is_told_of_a_run_at_its_first_element() -> None:
    command = Nested([5, 2], strided=(True, False, False))
    assert list(command.cycles(1)) == [0, 5]
    check(Configuration(), [command])


def test_a_plain_command_may_follow_in_the_cycle_after_one_with_loops() -> None:
    """The loops of a plain command do not advance, whatever their registers hold."""
    commands = [Nested(counts) for counts in ([3, 2, 2], [1], [4], [2, 2], [1])]
    check(Configuration(), commands)


def test_a_walk_ends_at_the_largest_counts() -> None:
    configuration = Configuration(loops=2, count_bits=3, length_bits=12)
    check(configuration, [Nested([1, 7]), Nested([40, 7], strided=(False, True, False))])


@pytest.mark.parametrize("last", range(3))
def test_a_stream_that_is_held_up_holds_up_the_others(last: int) -> None:
    """The others run ahead of the last stream by the depth of their buffers, and wait no longer."""
    configuration = Configuration()
    bench = Bench(configuration, [Nested([9, 4], strided=(True, True, True))])
    sinks = [Sink(getattr(bench.dut, name), 36, NO_STALLS, name) for name in STREAMS]
    held_up = 60

    async def late(ctx: Any) -> None:
        await ctx.tick().repeat(held_up)
        assert [len(sink.cycles) for number, sink in enumerate(sinks) if number != last] == [2, 2]
        assert ctx.get(bench.dut.walking)
        await sinks[last].run(ctx)

    others = [sink for number, sink in enumerate(sinks) if number != last]
    simulate(bench.dut, bench, late, *others)
    assert sinks[last].cycles == list(range(36))


def test_it_walks_until_the_last_step_is_taken(stalls: Stalls) -> None:
    bench = Bench(Configuration(), [Nested([3, 2], strided=(True, True, False))])
    sinks = [
        Sink(getattr(bench.dut, name), count, stalls, name)
        for name, count in zip(STREAMS, (6, 6, 2), strict=True)
    ]
    walking: list[int] = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, walks = await ctx.tick().sample(bench.dut.walking)
            walking.append(walks)

    simulate(bench.dut, bench, *sinks, background=[watch])
    last = max(sink.cycles[-1] for sink in sinks)
    assert [cycle for cycle, walks in enumerate(walking) if walks] == list(
        range(bench.starts[0] + 1, last + 1)
    )


# --- addresses ------------------------------------------------------------------------------------


def expected_runs(configuration: Configuration, a: Walk, y: Walk) -> list[dict[str, int]]:
    """Each run of A, or each element of it, by its address."""
    result = []
    for start, y_start in zip(a.runs(), y.runs(), strict=True):
        elements = a.elements(start) if a.mode is Mode.STRIDED else [start]
        offset = y_start % configuration.data_bytes if y.mode is Mode.DENSE else 0
        for number, element in enumerate(elements):
            result.append(
                {
                    "address": element % (1 << configuration.address_width),
                    "offset": offset * a.lane.bytes // y.lane.bytes,
                    "first": number == 0,
                    "last": number == len(elements) - 1,
                    "end": 0,
                }
            )
    result[-1]["end"] = 1
    return result


def check_addresses(
    configuration: Configuration, commands: list[tuple[Walk, Walk]], stalls: Stalls = NO_STALLS
) -> None:
    """Follow A of each command in turn, each with its own loops."""
    dut = AddressGenerator(configuration, has_offset=True)
    expected = [run for a, y in commands for run in expected_runs(configuration, a, y)]
    cycle = 0
    cycles = []

    async def drive(ctx: Any) -> None:
        nonlocal cycle
        for number, (a, y) in enumerate(commands):
            command, loops = (f(configuration, a, a, y) for f in (command_constant, loop_constants))
            ctx.set(dut.setup.idle, 1)
            ctx.set(dut.setup.begin, command["a"])
            await ctx.tick()
            ctx.set(dut.setup.idle, 0)
            ctx.set(dut.setup.begin, {"address": 0, "offset": 0})
            ctx.set(dut.setup.form, command["form"])
            ctx.set(dut.setup.strides, loops["a"])
            ctx.set(dut.setup.output_strides, loops["y"])
            steps = walked_steps(a.counts, a.mode is Mode.STRIDED)
            source = Source(dut.i, steps, stalls, f"source {number}")
            await source.run(ctx)
            cycles.extend(cycle + 1 + each for each in source.cycles)
            cycle += 2 + source.cycles[-1]

    sink = Sink(dut.o, len(expected), stalls)
    simulate(dut, drive, sink, deadline=20_000)
    for got, want in zip(sink.payloads, expected, strict=True):
        assert {name: got[name] for name in want} == want, f"{commands} {stalls}"
    assert sink.cycles == cycles, "with the step"


@pytest.mark.parametrize(
    ("width", "loops"), [(32, 1), (32, 2), (32, 3), (32, 6), (64, 4), slow(128, 4)]
)
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_random_loops_of_every_mode(width: int, loops: int, stalls: Stalls, seed: int) -> None:
    """With up to two loops, the first address takes another way to its register."""
    generator = random.Random(f"{width} {loops} {seed}")
    configuration = Configuration(data_width=width, loops=loops)
    commands = []
    for depth in [loops, *(generator.randint(1, loops) for _ in range(7))]:
        lane = generator.choice([Lane.BITS_8, Lane.BITS_16, Lane.BITS_32])
        counts = [generator.choice([1, 2, 7])]
        counts += [generator.choice([1, 2, 3]) for _ in range(depth - 1)]
        modes = generator.choice(OPERAND_MODES), generator.choice([Mode.DENSE, Mode.STRIDED])
        a, y = (
            random_walk(generator, configuration, counts, mode, lane, size=1 << 16, aligned=False)
            for mode in modes
        )
        commands.append((a, y))
    check_addresses(configuration, commands, stalls)


def test_addresses_go_round_at_their_width() -> None:
    configuration = Configuration(address_width=16, memory_bytes=1 << 16)
    up = Walk(0xFFF0, [3, 4], [8, 0x6000], Mode.STRIDED, Lane.BITS_32)
    down = Walk(0x0010, [3, 4], [-24, -0x7008], Mode.STRIDED, Lane.BITS_32)
    dense = Walk(0x0123, [64, 5], [1, -0x0FFF], Mode.DENSE, Lane.BITS_8)
    y = Walk(5, [3, 4], [1, 3], Mode.DENSE, Lane.BITS_8)
    long = Walk(7, [64, 5], [1, 64], Mode.DENSE, Lane.BITS_8)
    check_addresses(configuration, [(up, y), (down, y), (dense, long)])


def test_an_address_generator_without_strides_stays_within_its_loops() -> None:
    configuration = Configuration(modes=frozenset({Mode.DENSE}))
    a = Walk(0x100, [64, 3, 2], [1, 100, 1000], Mode.DENSE, Lane.BITS_8)
    y = Walk(0x203, [64, 3, 2], [1, 65, 200], Mode.DENSE, Lane.BITS_8)
    check_addresses(configuration, [(a, y), (y, a)])
