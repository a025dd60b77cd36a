"""Expected results of the bit unit: words of lanes, each of which `support.oracle` computes."""

import random

from bitlane_rtl.abi import Lane, Op
from support.oracle import computed, truth


def split(word: int, element: int, width: int) -> list[int]:
    """Return the elements of ``element`` bits in ``word``, lowest first."""
    return [(word >> low) & ((1 << element) - 1) for low in range(0, width, element)]


def join(elements: list[int], element: int) -> int:
    return sum(value << (element * index) for index, value in enumerate(elements))


def truths(counts: int, lane: Lane, width: int, *, negate: bool) -> int:
    """Return the test of each count in a lane of a word of ``width`` bits."""
    return join([truth(n, negate=negate) for n in split(counts, lane.bits, width)], lane.bits)


def compute(
    op: Op, a: int, b: int, lane: Lane, width: int, saturate: bool = False, arithmetic: bool = False
) -> int:
    """Return ``op`` of each lane of words of ``width`` bits, a multiple of the lane."""
    return join(
        [
            computed(op, lane.bits, x, y, saturate=saturate, arithmetic=arithmetic)
            for x, y in zip(split(a, lane.bits, width), split(b, lane.bits, width), strict=True)
        ],
        lane.bits,
    )


def random_word(generator: random.Random, width: int) -> int:
    """Return random bits, but often with lanes of zeros, ones, a single bit, or the top bit set."""
    kind = generator.randrange(4)
    if kind:
        return generator.getrandbits(width)
    special = [0x00, 0xFF, 0x01, 0x80]
    return join([generator.choice(special) for _ in range(width // 8)], 8)


def random_counts(generator: random.Random, lane: Lane, width: int) -> int:
    """Return shift counts below, at and above the lane's width, and with any single bit set."""

    def one() -> int:
        match generator.randrange(4):
            case 0:
                return 1 << generator.randrange(lane.bits)
            case 1:
                return generator.getrandbits(lane.bits)
            case 2:
                return min(lane.bits + generator.randint(-1, 1), (1 << lane.bits) - 1)
        return generator.randrange(lane.bits)

    return join([one() for _ in range(width // lane.bits)], lane.bits)
