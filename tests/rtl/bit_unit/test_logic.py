"""The logic operations, the bits that counts count, and the decoder, whatever is built."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data

from bitlane_rtl.abi import BASE_OPS, BIT_OPS, COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Op
from bitlane_rtl.bit_unit.logic import Logic
from bitlane_rtl.bit_unit.op_decode import decode
from support.oracle import computed
from support.rtl.streams import simulate

DIRECTML = frozenset({Op.AND, Op.OR, Op.XOR, Op.NOT})
CHOICES = [
    LOGIC_OPS,
    DIRECTML,
    LOGIC_OPS - DIRECTML,
    *(frozenset({op}) for op in sorted(LOGIC_OPS)),
    frozenset({Op.XOR, Op.NOT}),
    frozenset({Op.COPY, Op.NOT}),
    COUNT_OPS,
    COUNT_OPS | DIRECTML,
    COUNT_OPS | LOGIC_OPS,
    frozenset({Op.NOT, Op.COUNT}),
    frozenset({Op.NAND, Op.COUNT_XOR}),
]


def choose(ctx: Any, circuit: Logic, op: Op) -> None:
    ctx.set(circuit.base, BASE_OPS.index(op.base))
    ctx.set(circuit.negates, op.negates)


@pytest.mark.parametrize("ops", CHOICES, ids=lambda ops: "+".join(op.name for op in sorted(ops)))
@pytest.mark.parametrize("width", [8, 32])
def test_every_operation_built_gives_its_truth_table(ops: frozenset[Op], width: int) -> None:
    circuit = Logic(width, ops)
    generator = random.Random(width)
    ones = (1 << width) - 1

    async def check(ctx: Any) -> None:
        for op in sorted(ops):
            for _ in range(8):
                a, b = generator.getrandbits(width), generator.getrandbits(width)
                choose(ctx, circuit, op)
                ctx.set(circuit.a, a)
                ctx.set(circuit.b, b)
                result = ctx.get(circuit.o) ^ (ones * ctx.get(circuit.negate))
                word = op.counted if op.counts else op
                assert result == computed(word, width, a, b), f"{op.name} {a:#x} {b:#x}"

    simulate(circuit, check)


@pytest.mark.parametrize(
    "ops", [DIRECTML, frozenset({Op.NOT}), LOGIC_OPS, COUNT_OPS, COUNT_OPS | {Op.NOR, Op.NOT}]
)
def test_the_inversion_is_left_to_a_later_stage_only_if_both_kinds_are_built(
    ops: frozenset[Op],
) -> None:
    circuit = Logic(8, ops)
    negated = set()

    async def check(ctx: Any) -> None:
        for op in sorted(ops):
            choose(ctx, circuit, op)
            if ctx.get(circuit.negate):
                negated.add(op)

    simulate(circuit, check)
    both = {op.base for op in ops if op.negates} & {op.base for op in ops if not op.negates}
    assert negated == ({op for op in ops if op.negates} if both else set())


def test_a_unit_without_a_logic_operation_or_a_count_is_refused() -> None:
    with pytest.raises(ValueError, match="none of them is a logic operation or a count"):
        Logic(8, SHIFT_OPS)


# --- the decoder ----------------------------------------------------------------------------------


BUILDS = [
    BIT_OPS,
    LOGIC_OPS,
    BIT_OPS - SHIFT_OPS,
    COUNT_OPS | SHIFT_OPS,
    *({op} for op in sorted(BIT_OPS)),
    *(frozenset(random.Random(seed).sample(sorted(BIT_OPS), 2 + seed)) for seed in range(8)),
]


@pytest.mark.parametrize("ops", BUILDS, ids=lambda ops: "+".join(op.name for op in sorted(ops)))
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
