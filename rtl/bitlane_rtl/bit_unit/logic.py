"""The logic operations, bit by bit, and what counts count. Must never depend on the lane."""

from collections.abc import Collection

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import SHIFT_OPS, Op

__all__ = ["Logic"]


class Logic(wiring.Component):
    """``a OP b`` on ``width`` bits, but for a common inversion that is left to a later stage.

    Of a count, ``o`` is the word whose ones are counted. Only the operations in ``ops`` are built;
    the output is undefined for any other. Unless a word is needed both inverted and not, the
    inversion is part of ``o`` and ``negate`` is constant 0: AND, OR, XOR and NOT cost one LUT4 a
    bit, all eight another one wherever ``negate`` is applied.

    Latency: 0 cycles, combinational. Throughput: a word a cycle.

    Members
    -------
    op : ``In(4)``
        An ``abi.Op``.
    a, b : ``In(width)``
        Operands.
    o : ``Out(width)``
        The result; inverted if ``negate``.
    negate : ``Out(1)``
        Whether the result is the inverse of ``o``.
    """

    op: Signal
    a: Signal
    b: Signal
    o: Signal
    negate: Signal

    def __init__(self, width: int, ops: Collection[Op]) -> None:
        super().__init__(
            {
                "op": In(4),
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
            Op.AND & 3: self.a & self.b,
            Op.OR & 3: self.a | self.b,
            Op.XOR & 3: self.a ^ self.b,
            Op.COPY & 3: self.a,
        }
        inverted = {op & 3: op.negates for op in self._ops}
        if any(op.negates != inverted[op & 3] for op in self._ops):
            m.d.comb += self.negate.eq(self.op[2] & ~self.op[3])
            inverted = dict.fromkeys(inverted, False)
        *others, last = sorted(inverted)
        with m.Switch(self.op[:2]):
            for kind in others:
                with m.Case(kind):
                    m.d.comb += self.o.eq(~results[kind] if inverted[kind] else results[kind])
            with m.Default():
                m.d.comb += self.o.eq(~results[last] if inverted[last] else results[last])
        return m
