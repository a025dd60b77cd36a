"""The tests of elements, also of those of two words."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import Lane
from bitlane_rtl.bit_unit.lane_tests import LaneTests
from support.rtl.results import split
from support.rtl.streams import simulate
from support.seeds import slow

ALL = frozenset(Lane)


def sparse_word(generator: random.Random, width: int) -> int:
    """Return a word of which most bytes are 0, and most others have a single one."""
    word = 0
    for low in range(0, width, 8):
        if generator.random() < 0.3:
            word |= generator.choice([1 << generator.randrange(8), generator.getrandbits(8)]) << low
    return word


def expected(
    word: int, lane: Lane, width: int, negate: bool, *, halves: bool = False
) -> list[bool]:
    """Return a test for each byte of a word of whole elements; 64 bits in a word are two halves."""
    lane = min(lane, Lane.BITS_32) if halves else lane
    tests = [bool(element) is not negate for element in split(word, lane.bits, width)]
    return [not byte % lane.bytes and tests[byte // lane.bytes] for byte in range(width // 8)]


LANES = [ALL, *(frozenset({lane}) for lane in Lane), frozenset({Lane.BITS_8, Lane.BITS_32})]


@pytest.mark.parametrize(
    ("width", "lanes"),
    [
        (slow if width == 128 else pytest.param)(width, lanes)
        for width in (32, 64, 128)
        for lanes in LANES
        if min(lanes).bits <= width
    ],
    ids=lambda given: (
        "+".join(str(lane.bits) for lane in sorted(given)) if isinstance(given, frozenset) else None
    ),
)
def test_a_test_stands_at_the_lowest_byte_of_its_element(
    width: int, lanes: frozenset[Lane]
) -> None:
    built = sorted(lane for lane in lanes if lane.bits <= width)
    circuit = LaneTests(width, built, pairs=False)
    seed = f"{width} {built}"
    generator = random.Random(seed)
    words = [1 << bit for bit in range(width)]
    words += [sparse_word(generator, width) for _ in range(150)]

    async def check(ctx: Any) -> None:
        for word in words:
            lane, negate = generator.choice(built), generator.random() < 0.5
            ctx.set(circuit.a, word)
            ctx.set(circuit.lane, lane)
            ctx.set(circuit.negate, negate)
            got = split(ctx.get(circuit.o), 1, width // 8)
            want = expected(word, lane, width, negate, halves=True)
            assert got == want, f"{word:#x} {lane}, seed {seed}"

    simulate(circuit, check)


def test_an_element_of_two_words_is_tested_with_its_second() -> None:
    circuit = LaneTests(32, ALL - {Lane.BITS_64}, pairs=True)
    generator = random.Random("pairs")
    given: list[tuple[bool, Lane, bool, int, list[bool] | None]] = []
    for _ in range(200):
        lane, negate = generator.choice([Lane.BITS_64, *Lane]), generator.random() < 0.5
        word = sparse_word(generator, 64)
        first, second = word & 0xFFFF_FFFF, word >> 32
        if generator.random() < 0.2:
            # Not tested, so it is not a pair.
            given.append((False, lane, negate, first, None))
        elif lane == Lane.BITS_64:
            tests = expected(word, lane, 64, negate)
            given.append((True, lane, negate, first, [False] * 4))
            given.append((True, lane, negate, second, tests[:4]))
        else:
            given.append((True, lane, negate, first, expected(first, lane, 32, negate)))

    async def check(ctx: Any) -> None:
        for test, lane, negate, word, want in given:
            while True:
                takes = generator.random() < 0.7
                for name, value in (("take", takes), ("test", test), ("lane", lane)):
                    ctx.set(getattr(circuit, name), value)
                ctx.set(circuit.negate, negate)
                ctx.set(circuit.a, word)
                if want is not None:
                    assert split(ctx.get(circuit.o), 1, 4) == want
                await ctx.tick()
                if takes:
                    break
                if generator.random() < 0.5:
                    # Another word waits, but is not taken.
                    ctx.set(circuit.take, 0)
                    ctx.set(circuit.a, generator.getrandbits(32))
                    await ctx.tick()

    simulate(circuit, check)
