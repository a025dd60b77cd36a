"""The logic operations, bit by bit, and the words that counts count. It must not use the lane."""

from collections.abc import Collection

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import BASE_OPS, SHIFT_OPS, Op

__all__ = ["Logic"]


class Logic(wiring.Component):
    """``a OP b`` on ``width`` bits, except for an inversion that is left to a later stage.

    For a count, ``o`` is the word whose ones are counted. Only the operations in ``ops`` are built;
    the output is undefined for any other. Unless a word is needed both inverted and not, the
    inversion is part of ``o`` and ``negate`` is constant 0: AND, OR, XOR and NOT cost one LUT4 a
    bit, all eight another one wherever ``negate`` is applied.

    Latency: 0 cycles, combinational. Throughput: a word a cycle.

    Members
    -------
    base
        Index in `abi.BASE_OPS` of the operation before its inversion.
    negates
        The operation inverts the result of ``base``.
    a, b
        Operands.
    o
        The result; inverted if ``negate``.
    negate
        Whether the result is the inverse of ``o``.
    """

    def __init__(self, width: int, ops: Collection[Op]) -> None:
        super().__init__(
            {
                "base": In(range(len(BASE_OPS))),
                "negates": In(1),
                "a": In(width),
                "b": In(width),
                "o": Out(width),
                "negate": Out(1),
            }
        )
        self._ops = frozenset(ops) - SHIFT_OPS
        if not self._ops:
            raise ValueError("ops: none of them is a logic operation or a count")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        results = {
            Op.AND: self.a & self.b,
            Op.OR: self.a | self.b,
            Op.XOR: self.a ^ self.b,
            Op.COPY: self.a,
        }
        inverted = {op.base: op.negates for op in self._ops}
        if any(op.negates != inverted[op.base] for op in self._ops):
            m.d.comb += self.negate.eq(self.negates)
            inverted = dict.fromkeys(inverted, False)
        words = {
            BASE_OPS.index(base): ~results[base] if inverted[base] else results[base]
            for base in inverted
        }
        # The last word takes the default, which has no comparison.
        *others, last = sorted(words)
        with m.Switch(self.base):
            for index in others:
                with m.Case(index):
                    m.d.comb += self.o.eq(words[index])
            with m.Default():
                m.d.comb += self.o.eq(words[last])
        return m
