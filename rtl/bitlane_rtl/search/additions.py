"""Additions of a counting tree, and what they are everywhere but in an ECP5: plain sums."""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Module, Signal, Value

__all__ = ["Addition", "plain_sums"]


@dataclass(frozen=True)
class Addition:
    """``o`` becomes the sum of some compared bits and counts.

    A compared bit is two bits that count as 1 where they differ. There is one of them and one count
    or two counts of a bit less than ``o``; or there are three, and no count.
    """

    o: Signal
    compared: Sequence[Value]
    counts: Sequence[Value]


def plain_sums(m: Module, additions: Sequence[Addition]) -> None:
    """Add ``additions`` to ``m`` as sums, which synthesis makes what it can of."""
    for addition in additions:
        m.d.comb += addition.o.eq(
            sum([*addition.counts, *(pair.xor() for pair in addition.compared)])
        )
