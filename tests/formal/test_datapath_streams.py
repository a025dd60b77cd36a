"""Units of the data path keep the stream contract on their outputs, whatever is sent to them."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Module

from bitlane_rtl.abi import BIT_OPS, Lane, Op
from bitlane_rtl.bit_unit.bit_unit import BitUnit
from bitlane_rtl.datapath.repack import Repack
from support.formal.contract import Contract
from support.formal.proof import Bug, Proof
from support.formal.prover import Induction

pytestmark = pytest.mark.slow

WIDTH = 32
DEPTH = 6


class KeepsOffers(Contract):
    """``inputs`` are offered anything."""

    def __init__(self, build: Callable[[], Any], *inputs: str) -> None:
        super().__init__()
        self._build = build
        self._inputs = inputs

    def claim(self, m: Module) -> None:
        m.submodules.unit = unit = self._build()
        for name in self._inputs:
            self.offers(m, getattr(unit, name))
        self.takes(m, unit.o)


NARROW = frozenset(Lane) - {Lane.BITS_64}
UNITS: dict[str, tuple[Any, ...]] = {
    "bit unit": (lambda: BitUnit(WIDTH, BIT_OPS, NARROW), "i"),
    "bit unit, pairs": (lambda: BitUnit(WIDTH, BIT_OPS, Lane), "i"),
    "bit unit, logic": (lambda: BitUnit(WIDTH, {Op.NOT}, ()), "i"),
    "bit unit, sums": (lambda: BitUnit(WIDTH, {Op.COUNT_XOR}, NARROW, sums=True), "i"),
    "repack": (lambda: Repack(WIDTH, Lane, BIT_OPS), "i"),
}


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_keeps_what_it_offers(name: str, proof: Proof) -> None:
    proof.holds(KeepsOffers(*UNITS[name]), Induction(DEPTH))


BUGS = {
    "bit unit does not wait": (
        "bit unit",
        "bit_unit.pipeline",
        "(~valid[stage] | after) if closes",
        "Const(1) if closes",
    ),
    "repack does not wait": (
        "repack",
        "datapath.repack",
        "free.eq(~self.o.valid | self.o.ready)",
        "free.eq(1)",
    ),
    "repack takes the first of a pair for a beat": (
        "repack",
        "datapath.repack",
        "with m.If(free):",
        "with m.If(free | i.partial):",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    name, *planted = BUGS[bug]
    proof.finds(Bug(*planted), KeepsOffers(*UNITS[name]), within=DEPTH + 4)
