"""The operations on Python's integers, written from their definition: the one oracle of the tests.

It shares only the codes of ``Op`` with the circuit, the driver and the models of the product.
"""

from collections.abc import Iterable, Sequence

from bitlane_rtl.abi import Op

NOTHING = 0xFFFF_FFFF
"""Distance and index of an entry that no row fills."""

_RESULTS = {
    Op.AND: lambda a, b: a & b,
    Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b,
    Op.COPY: lambda a, b: a,
    Op.NAND: lambda a, b: ~(a & b),
    Op.NOR: lambda a, b: ~(a | b),
    Op.XNOR: lambda a, b: ~(a ^ b),
    Op.NOT: lambda a, b: ~a,
    Op.COUNT_AND: lambda a, b: (a & b).bit_count(),
    Op.COUNT_OR: lambda a, b: (a | b).bit_count(),
    Op.COUNT_XOR: lambda a, b: (a ^ b).bit_count(),
    Op.COUNT: lambda a, b: a.bit_count(),
}
"""Results of unbounded integers, of all operations but shifts."""


def truth(count: int, *, negate: bool) -> int:
    """Return the test of a count: 1 if it is 0 and ``negate``, or neither; else 0."""
    return int((count == 0) == negate)


def computed(
    op: Op,
    bits: int,
    a: int,
    b: int = 0,
    *,
    saturate: bool = False,
    arithmetic: bool = False,
    test: bool = False,
    negate: bool = False,
) -> int:
    """Return ``op`` of elements of ``bits`` bits, 0 or more and less than ``2**bits``.

    A count is a number of ones; with ``test`` it is 1 if there are any, else 0, and with
    ``negate`` 1 if there are none. Counts of a shift wrap at the width, or with ``saturate`` leave
    the fill alone: zeros, or with ``arithmetic`` the sign of a shift to the right.
    """
    if op is Op.SHIFT_LEFT or op is Op.SHIFT_RIGHT:
        count = min(b, bits) if saturate else b % bits
        if op is Op.SHIFT_LEFT:
            result = a << count
        else:
            result = (a - (1 << bits) if arithmetic and a >> (bits - 1) else a) >> count
    else:
        result = _RESULTS[op](a, b)
        if test:
            return truth(result, negate=negate)
    return result & ((1 << bits) - 1)


def nearest(
    rows: Iterable[Sequence[int]], queries: Iterable[Sequence[int]], count: int
) -> list[list[tuple[int, int]]]:
    """Return distance and index of the ``count`` nearest of ``rows`` for each query, nearest first.

    Rows and queries are sequences of bytes. Of equal distances the lowest index is first. Entries
    beyond the number of rows are ``(NOTHING, NOTHING)``.
    """
    numbers = [int.from_bytes(bytes(row)) for row in rows]
    found = []
    for query in queries:
        own = int.from_bytes(bytes(query))
        order = sorted(((row ^ own).bit_count(), index) for index, row in enumerate(numbers))
        found.append((order + [(NOTHING, NOTHING)] * count)[:count])
    return found
