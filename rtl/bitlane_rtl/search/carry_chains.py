"""Additions in an ECP5's carry chains, where comparing a bit costs no LUT. Has no register.

A carry chain is a row of cells CCU2C of two halves each, which are a LUT and a carry. A half with
table 0x6996 adds CIN + (A^B) + (C^D). With table 0x0006 and C = D = 1 it gives CIN away as its sum
and hands A^B on: it ends one addition and begins the next one, in the same chain, with a compared
bit. Cells as in Yosys' model of them (lattice/ccu2c_sim.vh).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Instance, Module, Signal, Value

from .additions import Addition

__all__ = ["carry_chain"]

_COMPARED = 0x6996
"""Adds A^B and C^D."""

_COUNTS = 0x600A
"""Adds A and B, where C = D = 1."""

_COUNT = 0xA000
"""Adds A, where B = C = D = 1."""

_NEXT = 0x0006
"""Gives the carry away and begins with A^B, where C = D = 1."""

_LAST = 0x0000
"""Gives the carry away and begins with nothing."""


@dataclass(frozen=True)
class _Half:
    """``inputs``: of A, B, C and D the first ones; the others are 1, which takes no wire."""

    table: int
    inputs: Sequence[Value] = ()
    o: Value | None = None
    """The sum output; None for the first half of a chain."""


def carry_chain(m: Module, additions: Sequence[Addition]) -> None:
    """Add ``additions``, in this order, to ``m`` as one chain."""
    halves = list(_halves(additions))
    if len(halves) % 2:
        halves.append(_Half(_LAST))
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
        yield _Half(_NEXT, list(begins), ends)
        if others:
            yield _Half(_COMPARED, [bit for pair in others for bit in pair], addition.o[0])
        else:
            table = _COUNTS if len(addition.counts) == 2 else _COUNT
            for place, bits in enumerate(zip(*addition.counts, strict=True)):
                yield _Half(table, bits, addition.o[place])
        ends = addition.o[-1]
    yield _Half(_LAST, (), ends)
