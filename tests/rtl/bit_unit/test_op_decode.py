"""The decoded operation says the same as the properties of `Op`, whatever operations are built."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data

from bitlane_rtl.abi import BASE_OPS, BIT_OPS, COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Op
from bitlane_rtl.bit_unit.op_decode import decode
from support.rtl.streams import simulate

CHOICES = [
    BIT_OPS,
    LOGIC_OPS,
    BIT_OPS - SHIFT_OPS,
    COUNT_OPS | SHIFT_OPS,
    *({op} for op in sorted(BIT_OPS)),
    *(frozenset(random.Random(seed).sample(sorted(BIT_OPS), 2 + seed)) for seed in range(8)),
]


@pytest.mark.parametrize("ops", CHOICES, ids=lambda ops: "+".join(op.name for op in sorted(ops)))
def test_signals_are_the_properties_of_the_operation(ops: frozenset[Op]) -> None:
    code = Signal(4)
    decoded = decode(code, ops)
    m = Module()
    seen = Signal(data.StructLayout({name: len(value) for name, value in vars(decoded).items()}))
    m.d.comb += [seen[name].eq(value) for name, value in vars(decoded).items()]

    async def drive(ctx: Any) -> None:
        for op in sorted(ops):
            ctx.set(code, op)
            got = ctx.get(seen)
            assert got.is_logic == (op in LOGIC_OPS), op.name
            assert got.counts == op.counts, op.name
            assert got.shifts == (op in SHIFT_OPS), op.name
            if op in SHIFT_OPS:
                assert got.right == (op is Op.SHIFT_RIGHT), op.name
            else:
                assert (BASE_OPS[got.base], got.negates) == (op.base, op.negates), op.name

    simulate(m, drive)
