"""An address generator gives every address of a walk, and the output's offset beside it."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import Lane, Mode
from bitlane_rtl.addresses.address_generator import AddressGenerator
from bitlane_rtl.configuration import Configuration
from support.rtl.streams import ALL_STALLS, NO_STALLS, Sink, Source, Stalls, simulate
from support.rtl.walks import (
    OPERAND_MODES,
    Walk,
    command_constant,
    loop_constants,
    random_walk,
    walked_steps,
)
from support.seeds import seeds, slow


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


def check(
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


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize("stalls", ALL_STALLS)
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_random_loops_of_every_mode(width: int, stalls: Stalls, seed: int) -> None:
    generator = random.Random(f"{width} {seed}")
    configuration = Configuration(data_width=width)
    commands = []
    for _ in range(8):
        lane = generator.choice([Lane.BITS_8, Lane.BITS_16, Lane.BITS_32])
        counts = [generator.choice([1, 2, 7])]
        counts += [generator.choice([1, 2, 5]) for _ in range(generator.randrange(4))]
        modes = generator.choice(OPERAND_MODES), generator.choice([Mode.DENSE, Mode.STRIDED])
        a, y = (
            random_walk(generator, configuration, counts, mode, lane, size=1 << 16, aligned=False)
            for mode in modes
        )
        commands.append((a, y))
    check(configuration, commands, stalls)


@pytest.mark.parametrize("loops", [1, 2, 3, 6])
@pytest.mark.parametrize("stalls", ALL_STALLS)
def test_random_walks_of_every_number_of_loops(loops: int, stalls: Stalls) -> None:
    """With up to two loops, the first address takes another way to its register."""
    generator = random.Random(f"{loops} {stalls.seed}")
    configuration = Configuration(data_width=32, loops=loops)
    commands = []
    for depth in [loops, *(generator.randint(1, loops) for _ in range(7))]:
        counts = [generator.choice([1, 2, 3]) for _ in range(depth)]
        modes = generator.choice(OPERAND_MODES), generator.choice([Mode.DENSE, Mode.STRIDED])
        a, y = (
            random_walk(
                generator, configuration, counts, mode, Lane.BITS_16, size=1 << 16, aligned=False
            )
            for mode in modes
        )
        commands.append((a, y))
    check(configuration, commands, stalls)


def test_addresses_go_round_at_their_width() -> None:
    configuration = Configuration(address_width=16, memory_bytes=1 << 16)
    up = Walk(0xFFF0, [3, 4], [8, 0x6000], Mode.STRIDED, Lane.BITS_32)
    down = Walk(0x0010, [3, 4], [-24, -0x7008], Mode.STRIDED, Lane.BITS_32)
    dense = Walk(0x0123, [64, 5], [1, -0x0FFF], Mode.DENSE, Lane.BITS_8)
    y = Walk(5, [3, 4], [1, 3], Mode.DENSE, Lane.BITS_8)
    long = Walk(7, [64, 5], [1, 64], Mode.DENSE, Lane.BITS_8)
    check(configuration, [(up, y), (down, y), (dense, long)])


def test_an_address_generator_without_strides_stays_within_its_loops() -> None:
    configuration = Configuration(modes=frozenset({Mode.DENSE}))
    a = Walk(0x100, [64, 3, 2], [1, 100, 1000], Mode.DENSE, Lane.BITS_8)
    y = Walk(0x203, [64, 3, 2], [1, 65, 200], Mode.DENSE, Lane.BITS_8)
    check(configuration, [(a, y), (y, a)])
