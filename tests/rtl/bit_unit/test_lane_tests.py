"""The tests of elements, also of those of two beats."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import Lane
from bitlane_rtl.bit_unit.lane_tests import LaneTests
from support.rtl.results import split
from support.rtl.streams import simulate
from support.seeds import slow

ALL = frozenset(Lane)


def ones_of(generator: random.Random, width: int) -> list[int]:
    """Return the ones in each byte of a word, most of them none."""
    return [generator.choice([0, 0, 0, 1, 2, 4, 8]) for _ in range(width // 8)]


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize(
    "lanes",
    [ALL, *(frozenset({lane}) for lane in Lane), frozenset({Lane.BITS_8, Lane.BITS_32})],
    ids=lambda lanes: "+".join(str(lane.bits) for lane in sorted(lanes)),
)
def test_a_test_stands_at_the_lowest_byte_of_its_element(
    width: int, lanes: frozenset[Lane]
) -> None:
    built = sorted(lane for lane in lanes if lane.bits <= width)
    if not built:
        return
    circuit = LaneTests(width, built, pairs=False)
    seed = f"{width} {built}"
    generator = random.Random(seed)

    async def check(ctx: Any) -> None:
        want: list[int] = []
        for step in range(200):
            lane, test = generator.choice(built), generator.random() < 0.8
            negate = test and generator.random() < 0.5
            ones = ones_of(generator, width)
            load = not step or generator.random() < 0.7
            for name, value in (("lane", lane), ("test", test), ("negate", negate)):
                ctx.set(getattr(circuit, name), value)
            ctx.set(circuit.load, load)
            await ctx.tick()
            ctx.set(circuit.ones, ones)
            if load:
                taken = lane, test, negate
            lane, test, negate = taken
            want = [0] * (width // 8)
            for byte in range(0, width // 8, lane.bytes):
                want[byte] = test and any(ones[byte : byte + lane.bytes]) is not negate
            assert split(ctx.get(circuit.o), 1, width // 8) == want, f"step {step}, seed {seed}"

    simulate(circuit, check)


def test_an_element_of_two_beats_is_tested_with_its_second() -> None:
    circuit = LaneTests(32, ALL - {Lane.BITS_64}, pairs=True)
    generator = random.Random("pairs")
    beats: list[tuple[Lane, list[int], bool, int, bool]] = []
    for _ in range(120):
        lane, negate = (
            generator.choice([Lane.BITS_64, Lane.BITS_64, *Lane]),
            generator.random() < 0.5,
        )
        first, second = ones_of(generator, 32), ones_of(generator, 32)
        if lane != Lane.BITS_64:
            want = [
                not byte % lane.bytes and any(second[byte : byte + lane.bytes]) is not negate
                for byte in range(4)
            ]
            beats.append((lane, second, negate, sum(x << k for k, x in enumerate(want)), False))
        elif generator.random() < 0.2:
            # A first beat in error is an element alone.
            beats.append((lane, first, negate, any(first) is not negate, True))
        else:
            beats.append((lane, first, negate, 0, False))
            beats.append((lane, second, negate, any(first + second) is not negate, False))

    async def check(ctx: Any) -> None:
        ctx.set(circuit.test, 1)
        before: tuple[list[int], int] | None = None
        pending = list(beats)
        while pending or before:
            valid, moves = bool(pending) and generator.random() < 0.7, generator.random() < 0.7
            if valid:
                lane, ones, negate, want, error = pending[0]
                ctx.set(circuit.lane, lane)
                ctx.set(circuit.negate, negate)
                ctx.set(circuit.error, error)
            else:
                ctx.set(circuit.lane, generator.choice(list(Lane)))
                ctx.set(circuit.error, generator.random() < 0.5)
            ctx.set(circuit.ones, before[0] if before else ones_of(generator, 32))
            ctx.set(circuit.valid, valid | (before is not None) << 1)
            ctx.set(circuit.load, 3 * moves)
            if before:
                assert ctx.get(circuit.o) == before[1]
            await ctx.tick()
            if moves:
                before = (ones, want) if valid else None
                if valid:
                    pending.pop(0)

    simulate(circuit, check)
