"""The nest issues every run or element to each stream once, in order, one step per cycle."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from bitlane_rtl.abi import Mode
from bitlane_rtl.addresses.loop_nest import LoopNest
from bitlane_rtl.command import STREAMS
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.streams.buffer import Stage
from bitlane_rtl.streams.fifo import Fifo
from bitlane_rtl.streams.register_slices import SkidBuffer
from support.rtl.streams import ALL_STALLS, NO_STALLS, Sink, Stalls, elaborated, simulate
from support.rtl.walks import walked_steps
from support.seeds import slow

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
        self.dut = elaborated(LoopNest, configuration, buffer)
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


def random_command(generator: random.Random, loops: int, strides: bool = True) -> Nested:
    def flags(chance: float) -> tuple[bool, bool, bool]:
        a, b, y = (generator.random() < chance for _ in range(3))
        return a, y, b

    counts = [generator.choice([1, 2, 3, 7]) for _ in range(generator.randint(1, loops))]
    strided = flags(generator.choice([0, 0.3, 0.7])) if strides else (False, False, False)
    # Every command uses A and Y.
    return Nested(counts, strided, (True, True, generator.random() < 0.5))


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("loops", [1, slow(2), slow(4), 6])
@pytest.mark.parametrize("stalls", ALL_STALLS)
def test_commands_of_every_kind_in_turn(loops: int, buffer: str, stalls: Stalls) -> None:
    generator = random.Random(f"{loops} {stalls.seed}")
    commands = [random_command(generator, min(loops, 4)) for _ in range(30)]
    commands += [Nested(counts[:loops]) for counts in ([1] * 6, [2] * 6, [1, 2] * 3, [2, 1] * 3)]
    check(Configuration(loops=loops), commands, stalls, buffer)


@pytest.mark.parametrize("loops", [1, 4])
@pytest.mark.parametrize("stalls", ALL_STALLS)
def test_without_strided_runs_there_is_nothing_to_count_within_them(
    loops: int, stalls: Stalls
) -> None:
    generator = random.Random(f"{loops} {stalls.seed}")
    commands = [random_command(generator, loops, strides=False) for _ in range(30)]
    check(Configuration(loops=loops, modes=frozenset({Mode.DENSE})), commands, stalls)


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


@pytest.mark.parametrize("stalls", ALL_STALLS)
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
