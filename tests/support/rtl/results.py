"""Expected results of the bit unit: the operations on Python integers, from their definition.

The module shares only the codes of ``abi`` with the circuit.
"""

import random

from bitlane_rtl.abi import Lane, Op


def split(word: int, element: int, width: int) -> list[int]:
    """Return the elements of ``element`` bits in ``word``, lowest first."""
    return [(word >> low) & ((1 << element) - 1) for low in range(0, width, element)]


def join(elements: list[int], element: int) -> int:
    return sum(value << (element * index) for index, value in enumerate(elements))


def compute_element(
    op: Op, a: int, b: int, bits: int, saturate: bool = False, arithmetic: bool = False
) -> int:
    """Return ``op`` of one element of ``bits`` bits."""
    ones = (1 << bits) - 1
    match op:
        case Op.AND | Op.NAND:
            result = a & b
        case Op.OR | Op.NOR:
            result = a | b
        case Op.XOR | Op.XNOR:
            result = a ^ b
        case Op.COPY | Op.NOT:
            result = a
        case Op.COUNT_AND:
            return (a & b).bit_count()
        case Op.COUNT_OR:
            return (a | b).bit_count()
        case Op.COUNT_XOR:
            return (a ^ b).bit_count()
        case Op.COUNT:
            return a.bit_count()
        case Op.SHIFT_LEFT:
            return (a << (b if saturate else b % bits)) & ones if b < bits or not saturate else 0
        case Op.SHIFT_RIGHT:
            count = min(b, bits) if saturate else b % bits
            negative = arithmetic and a >> (bits - 1)
            return ((a | (~ones if negative else 0)) >> count) & ones
    return result ^ ones if op in (Op.NAND, Op.NOR, Op.XNOR, Op.NOT) else result


def truth_of(count: int, *, negate: bool) -> int:
    """Return the test of a count: whether it is 0 if ``negate``, else whether it is not."""
    return int((count == 0) == negate)


def truths(counts: int, lane: Lane, width: int, *, negate: bool) -> int:
    """Return `truth_of` each count in a lane of a word of ``width`` bits."""
    tests = [truth_of(count, negate=negate) for count in split(counts, lane.bits, width)]
    return join(tests, lane.bits)


def compute(
    op: Op, a: int, b: int, lane: Lane, width: int, saturate: bool = False, arithmetic: bool = False
) -> int:
    """Return ``op`` of each lane of words of ``width`` bits, a multiple of the lane."""
    return join(
        [
            compute_element(op, x, y, lane.bits, saturate, arithmetic)
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
