"""Additions of a counting tree, and their implementation by plain sums."""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Module, Signal, Value

__all__ = ["Addition", "plain_sums"]


@dataclass(frozen=True)
class Addition:
    """An addition: ``o`` is the sum of ``compared`` bits and ``counts``.

    A compared bit is a pair of bits, which counts 1 if they differ. An addition has one of them and
    one or two counts, each one bit narrower than ``o``; or three compared bits and no count.
    """

    o: Signal
    compared: Sequence[Value]
    counts: Sequence[Value]


def plain_sums(m: Module, additions: Sequence[Addition]) -> None:
    """Add ``additions`` to ``m`` as sums, and leave their mapping to synthesis."""
    for addition in additions:
        m.d.comb += addition.o.eq(
            sum([*addition.counts, *(pair.xor() for pair in addition.compared)])
        )
