"""Additions of a counting tree: as plain sums, or in the carry chains of ECP5. It has no registers.

A carry chain compares bits without a LUT of their own. It is a row of CCU2C cells, each of two
halves, and each half has a LUT and a carry:

======== ============= =================== =============== ====================================
Table    Inputs of 1   Sum output          Carry output    Use
======== ============= =================== =============== ====================================
0x6996   none          CIN + (A^B) + (C^D) carry of the    bits of the lowest level
                                           same sum
0x600A   C, D          CIN + A + B         carry of the    a bit of two counts
                                           same sum
0xA000   B, C, D       CIN + A             carry of the    a bit of one count
                                           same sum
0x0006   C, D          CIN                 A^B             ends an addition and begins the next,
                                                           in the same chain
0x0000   all           CIN                 0               ends the last addition
======== ============= =================== =============== ====================================

Source: Yosys' model of the cells (lattice/ccu2c_sim.vh).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Instance, Module, Signal, Value

__all__ = ["Addition", "carry_chain", "plain_sums"]

COMPARED = 0x6996
COUNTS = 0x600A
COUNT = 0xA000
NEXT = 0x0006
LAST = 0x0000


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


@dataclass(frozen=True)
class _Half:
    """Half a cell. ``inputs`` are the first of A, B, C, D; the others are 1 and need no wire."""

    table: int
    inputs: Sequence[Value] = ()
    o: Value | None = None
    """The sum output; None for the first half of a chain."""


def carry_chain(m: Module, additions: Sequence[Addition]) -> None:
    """Add ``additions``, in this order, to ``m`` as one chain."""
    halves = list(_halves(additions))
    if len(halves) % 2:
        halves.append(_Half(LAST))
    carry: Value = Const(0)
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        following = Signal(name="carry")
        cell: dict[str, Any] = {"i_CIN": carry, "o_COUT": following}
        for number, half in enumerate((first, second)):
            inputs = [*half.inputs, *[Const(1)] * (4 - len(half.inputs))]
            cell |= {f"i_{name}{number}": bit for name, bit in zip("ABCD", inputs, strict=True)}
            cell[f"o_S{number}"] = Signal(name="unread") if half.o is None else half.o
            cell[f"p_INIT{number}"] = Const(half.table, 16)
            cell[f"p_INJECT1_{number}"] = "NO"
        m.submodules += Instance("CCU2C", **cell)
        carry = following


def _halves(additions: Sequence[Addition]) -> Iterator[_Half]:
    ends: Value | None = None
    for addition in additions:
        begins, *others = addition.compared
        yield _Half(NEXT, list(begins), ends)
        if others:
            yield _Half(COMPARED, [bit for pair in others for bit in pair], addition.o[0])
        else:
            table = COUNTS if len(addition.counts) == 2 else COUNT
            for index, bits in enumerate(zip(*addition.counts, strict=True)):
                yield _Half(table, bits, addition.o[index])
        ends = addition.o[-1]
    yield _Half(LAST, (), ends)
