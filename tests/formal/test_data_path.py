"""The realigner emits each beat on time; units of the data path keep the stream contract."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Assert, Module, Mux, Signal

from bitlane_rtl.abi import BIT_OPS, Lane, Op
from bitlane_rtl.bit_unit.bit_unit import BitUnit
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath.realigner import Realigner
from bitlane_rtl.datapath.repack import Repack
from bitlane_rtl.streams.register_slices import ForwardRegister, Wire
from support.formal.contract import Contract, before, taken
from support.formal.proof import Claim, proofs
from support.formal.prover import Induction, Reached

STAGES: dict[str, tuple[Any, int]] = {"wire": (Wire, 0), "register": (ForwardRegister, 1)}


class GivesEachBeat(Contract):
    """Words of any kind enter; the output beats have no back-pressure."""

    def __init__(self, stage: str, *, dual: bool = False) -> None:
        super().__init__()
        self._stage, self._latency = STAGES[stage]
        self._dual = dual

    def claim(self, m: Module) -> None:
        config, dual = Configuration(data_width=32), self._dual
        m.submodules.realigner = realigner = Realigner(config, self._stage, dual=dual)
        self.offers(m, realigner.i)
        word, placement = realigner.i.p, realigner.i.p.placement
        takes = taken(realigner.i)
        flushed = before(m, takes & placement.flush)
        m.d.comb += Assert(realigner.i.ready == (dual | ~flushed | placement.prime))

        # A word's own beat is due at once, its flush a cycle later, both plus the stage's latency.
        own, flush = takes & ~placement.prime, flushed
        ends = {
            "last": placement.last,
            "end": placement.end,
            "slot": placement.slot,
            "final": placement.final,
        }
        spoiled = Signal()
        error = spoiled | word.error
        with m.If(takes):
            m.d.sync += spoiled.eq(error)
        own_says = {**ends, "error": error}
        for name in ("last", "end"):
            own_says[name] = ends[name] & ~placement.flush
        flush_says = {name: before(m, value) for name, value in {**ends, "error": error}.items()}
        repeat = placement.repeat
        if self._latency:
            own, flush, repeat = before(m, own), before(m, flush), before(m, repeat)
            own_says = {name: before(m, value) for name, value in own_says.items()}
            flush_says = {name: before(m, value) for name, value in flush_says.items()}
        turn = Signal()
        if dual:
            m.d.sync += turn.eq(turn ^ own ^ flush)
        else:
            m.d.comb += Assert(~(own & flush))
        for number, o in enumerate(realigner.o):
            due = turn == number
            m.d.comb += Assert(o.valid == Mux(due, own | flush, own & flush))
            with m.If(o.valid):
                for name in ends | {"error": error}:
                    said = Mux(flush & due, flush_says[name], own_says[name])
                    m.d.comb += Assert(o.p.edge[name] == said)
                m.d.comb += Assert(o.p.repeat == (repeat & ~(flush & due)))


BUGS = {
    "no word waits": ("ready.eq(~flushes | self.i.p.placement.prime)", "ready.eq(1)"),
    "a word that waits counts as taken": (
        "flushes.eq(moved.i.valid & ",
        "flushes.eq(self.i.valid & ",
    ),
    "a flush has the error of what follows": (
        "spoiled | (word.error & ~flush)",
        "spoiled | word.error",
    ),
    "an error is forgotten": ("spoiled.eq(spoiled | word.error)", "spoiled.eq(0)"),
    "a run ends twice": ("placement.last & ~placement.flush", "placement.last"),
    "a prime gives a beat": ("joins = valid & ~placement.prime", "joins = valid"),
}
DUAL_BUGS = {
    "beats do not take turns": ("turn.eq(turn ^ flushing ^ joins)", "turn.eq(0)"),
    "a beat is lost": ("flushing & joins)", "0)"),
    "the later beat goes first": ("beat(flushing & first, ", "beat(flushing & ~first, "),
}


WIDTH = 32
DEPTH = 6


class KeepsOffers(Contract):
    """The input is offered anything."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._build = UNITS[unit]

    def claim(self, m: Module) -> None:
        m.submodules.unit = unit = self._build()
        self.offers(m, unit.i)
        self.takes(m, unit.o)


NARROW = frozenset(Lane) - {Lane.BITS_64}
UNITS: dict[str, Callable[[], Any]] = {
    "bit unit": lambda: BitUnit(WIDTH, BIT_OPS, NARROW),
    "bit unit, pairs": lambda: BitUnit(WIDTH, BIT_OPS, Lane),
    "bit unit, logic": lambda: BitUnit(WIDTH, {Op.NOT}, ()),
    "bit unit, sums": lambda: BitUnit(WIDTH, {Op.COUNT_XOR}, NARROW, sums=True),
    "repack": lambda: Repack(WIDTH, Lane, BIT_OPS),
}
OF_UNITS = {
    "bit unit": {
        "it does not wait": (
            "bit_unit.pipeline",
            "(~valid[stage] | after) if closes",
            "Const(1) if closes",
        ),
    },
    "repack": {
        "it does not wait": (
            "datapath.repack",
            "free.eq(~self.o.valid | self.o.ready)",
            "free.eq(1)",
        ),
        "it takes the first of a pair for a beat": (
            "datapath.repack",
            "with m.If(free):",
            "with m.If(free | i.partial):",
        ),
    },
}

test_it_holds, test_a_planted_bug_is_found = proofs(
    *(
        Claim(
            GivesEachBeat,
            Reached,
            module="datapath.realigner",
            bugs={("wire", False): BUGS, ("register", True): DUAL_BUGS}.get((stage, dual)),
            within=6,
            stage=stage,
            dual=dual,
        )
        for stage in STAGES
        for dual in (False, True)
    ),
    *(
        Claim(KeepsOffers, Induction(DEPTH), bugs=OF_UNITS.get(name), within=DEPTH + 4, unit=name)
        for name in UNITS
    ),
)
