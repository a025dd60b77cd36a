"""Layouts of the streams between the stages: readers, bit unit, repack, writer."""

from amaranth.lib import data

__all__ = ["Edge", "Operands", "Operation", "Result", "ToWrite"]


class Operation(data.Struct):
    """The operation of the bit unit on a beat; constant over a command."""

    op: 4
    """An ``abi.Op``."""
    lane: 2
    """An ``abi.Lane``: the lane of A and B."""
    out_lane: 2
    """An ``abi.Lane``: the lane of Y. Differs from ``lane`` only for counts."""
    saturate: 1
    arithmetic: 1
    sums: 1
    """The result of a run is the sum of its counts; only with ``test`` it depends on ``lane``."""
    test: 1
    """A count becomes 1 if it is not 0."""
    negate: 1
    """With ``test``, a count becomes 1 if it is 0, and 0 if it is not."""


class Edge(data.Struct):
    """The position of an operand's beat, or of a result, in its run and command.

    A run's beats are aligned like the output: element 0 is at the byte that the writer expects.
    """

    last: 1
    """Last beat of its run."""
    end: 1
    """Last beat of its command."""
    error: 1
    """The data could not be read: this beat must never be written."""
    slot: 3
    """Constant over a run. When narrowing by ``n``: the ``n``-th part of the first output beat that
    the run's first input beat fills, 0 to n - 1. Otherwise 0."""
    final: 2
    """On a run's last beat of 8-bit lanes that widen: the quarter of the input beat that holds the
    last byte, 0 to 3. With 16-bit lanes, the upper bit is the number of the half. Otherwise it is
    not used."""


class Operands(data.StructLayout):
    """A beat of A and the beat of B that belongs to it (undefined without B).

    ``inside``: the bytes that belong to the run, if it is summed; else all.
    """

    def __init__(self, data_width: int) -> None:
        super().__init__(
            {
                "a": data_width,
                "b": data_width,
                "inside": data_width // 8,
                "operation": Operation,
                "edge": Edge,
            }
        )


class Result(data.StructLayout):
    """A beat of results of the bit unit; a count is in the low bits of its input lane.

    ``partial``: more beats follow before the count of the element, or the sum of the run, is
    complete. Of a count of which half is missing ``data`` is undefined; of a run it has the sum so
    far, modulo 2**32, in every 32 bits.
    """

    def __init__(self, data_width: int) -> None:
        super().__init__({"data": data_width, "lane": 2, "out_lane": 2, "partial": 1, "edge": Edge})


class ToWrite(data.StructLayout):
    """A beat in the output's lanes; ``error``: it must never be written."""

    def __init__(self, data_width: int) -> None:
        super().__init__({"data": data_width, "error": 1})
