"""The work that is measured: commands on fixed addresses. Runs nothing."""

from bitlane.driver import Command, Walk
from bitlane_rtl.abi import Lane, Mode, Op

A, B, Y = 0, 1 << 20, 1 << 21
"""Start addresses of the operands and the output."""

ROW = 64
"""Bytes in a row."""

_A_STEP, _B_STEP, _Y_STEP = 65, 69, 67
"""Bytes from row to row, so that every byte offset occurs."""

_ELEMENT_STEP = 6


def dense(base: int, size: int, jumps: tuple[int, ...] = (), reach: int = 0) -> Walk:
    """A walk over runs of ``size`` bytes; ``reach``: from the first run's start to the last's."""
    return Walk(base, base + reach + size - 1, Mode.DENSE, 0, jumps)


def move(op: Op, size: int, a: int, b: int | None, y: int) -> Command:
    """A logic operation on ``size`` consecutive bytes."""
    second = None if b is None else dense(b, size)
    return Command(op, Lane.BITS_8, Lane.BITS_8, size, dense(a, size), second, dense(y, size))


def logic(op: Op, size: int) -> Command:
    """``op`` on ``size`` bytes, from and to the start of a block."""
    return move(op, size, A, B if op.reads_b else None, Y)


def queue(op: Op, number: int, size: int, *, a: int = 0, y: int = 0) -> list[Command]:
    """``number`` independent commands of ``size`` bytes, ``a`` and ``y`` bytes past a beat."""
    apart = 2 * size
    return [
        move(op, size, A + a + apart * k, B + apart * k if op.reads_b else None, Y + y + apart * k)
        for k in range(number)
    ]


def rows(number: int, op: Op = Op.NOT) -> Command:
    """``op`` on rows of `ROW` bytes whose addresses have every offset in a beat."""
    b = dense(B + 2, ROW, (_B_STEP,), _B_STEP * (number - 1)) if op.reads_b else None
    return Command(
        op,
        Lane.BITS_8,
        Lane.BITS_8,
        ROW,
        dense(A + 1, ROW, (_A_STEP,), _A_STEP * (number - 1)),
        b,
        dense(Y + 3, ROW, (_Y_STEP,), _Y_STEP * (number - 1)),
        (number,),
    )


def _strided(base: int, number: int, lane: Lane) -> Walk:
    last = base + _ELEMENT_STEP * (number - 1) + lane.bytes - 1
    return Walk(base, last, Mode.STRIDED, _ELEMENT_STEP)


def gather(number: int) -> Command:
    """NOT of ``number`` 16-bit elements, 6 bytes apart in memory, to consecutive ones."""
    lane = Lane.BITS_16
    a = _strided(A + 2, number, lane)
    return Command(Op.NOT, lane, lane, number, a, None, dense(Y, lane.bytes * number))


def scatter(number: int) -> Command:
    """The reverse of `gather`."""
    lane = Lane.BITS_16
    y = _strided(Y + 2, number, lane)
    return Command(Op.NOT, lane, lane, number, dense(A, lane.bytes * number), None, y)


def count(lane: Lane, out_lane: Lane, size: int) -> Command:
    """COUNT of ``size`` bytes of ``lane`` elements, to ``out_lane`` elements."""
    number = size // lane.bytes
    a, y = dense(A, size), dense(Y, number * out_lane.bytes)
    return Command(Op.COUNT, lane, out_lane, number, a, None, y)


def _row_sums(number: int, size: int, a: Walk, b: Walk) -> Command:
    """Count the bits that differ in each of ``number`` pairs of rows of ``size`` bytes."""
    lane = Lane.BITS_32
    y = Walk(Y, Y + number * lane.bytes - 1, Mode.SUM, 0, (lane.bytes,))
    return Command(Op.COUNT_XOR, Lane.BITS_8, lane, size, a, b, y, (number,))


def _rows_at(base: int, number: int, size: int, step: int) -> Walk:
    return dense(base, size, (step,), step * (number - 1))


def against_one(number: int, size: int) -> Command:
    """The distance of each of ``number`` consecutive rows from one row, which is read each time."""
    return _row_sums(number, size, _rows_at(A, number, size, size), _rows_at(B, number, size, 0))


def pairs(number: int, size: int) -> Command:
    """The distance of each row from the one of the same number."""
    return _row_sums(number, size, _rows_at(A, number, size, size), _rows_at(B, number, size, size))


def array_equal(size: int) -> Command:
    """Count the bytes that differ in two arrays of ``size`` bytes: 0 if they are equal."""
    y = Walk(Y, Y + Lane.BITS_32.bytes - 1, Mode.SUM)
    a, b = dense(A, size), dense(B, size)
    return Command(Op.COUNT_XOR, Lane.BITS_8, Lane.BITS_32, size, a, b, y, test=True)


def odd_pairs(number: int, size: int) -> Command:
    """Return `pairs` of rows with gaps between them: A has every offset in a beat, B odd ones."""
    a, b = _rows_at(A + 1, number, size, size + 2), _rows_at(B + 3, number, size, size + 4)
    return _row_sums(number, size, a, b)
