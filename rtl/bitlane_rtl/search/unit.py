"""Compares one row with a query each cycle, independently of all other units."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .additions import Addition, plain_sums
from .carry_chains import carry_chain
from .tree import Adder, CountTree

__all__ = ["Unit"]

_PER_STAGE = 2
"""Levels of additions between registers."""

_PER_CHAIN = 3
"""Counts that a carry chain leads to: then chains of 512 bits fill an ECP5's tiles."""


class Unit(wiring.Component):
    """Keeps a row, and counts the bits in which what comes past differs from it.

    Its additions are a `CountTree`. For an ECP5, by the platform's ``family``, they are carry
    chains; for any other, and in simulation, they are plain sums between the same registers.
    A bit that is added in a later stage is delayed before it is compared, and ``load`` with it:
    units that see the same ``bits`` thus share the registers.

    Parameters
    ----------
    row_bits
        Bits of a row: a power of two, 4 or more.

    Members
    -------
    bits : ``In(row_bits)``
        The query; or the row to keep, with ``load``. From registers.
    load : ``In(1)``
        Whether ``bits`` are the row of all that comes from the next cycle on. From a register.
    distance : ``Out(range(row_bits + 1))``
        Bits of ``bits`` that were not those of the row, `latency` cycles ago. From a register.

    Throughput: a comparison a cycle, also in that after ``load``.
    Undefined: ``distance`` of ``bits`` before the first ``load``, and of ``bits`` with a ``load``.
    Area (512 bits): ECP5 400 CCU2C (800 sites), no LUT4 and 920 flip-flops, 160 MHz.
    """

    def __init__(self, row_bits: int) -> None:
        self._tree = CountTree(row_bits, _PER_STAGE)
        super().__init__(
            {"bits": In(row_bits), "load": In(1), "distance": Out(range(row_bits + 1))}
        )

    @property
    def latency(self) -> int:
        """Cycles from ``bits`` to their ``distance``."""
        return len(self._tree.stages)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        write = carry_chain if getattr(platform, "family", None) == "ecp5" else plain_sums
        tree = self._tree
        load: Value = self.load
        bits: Mapping[int, Value] = dict(enumerate(self.bits, start=1))
        counts: dict[int, Value] = {}
        for number, stage in enumerate(tree.stages, start=1):
            row = _registers(m, f"row_{number}", bits, load)
            compared = {place: Cat(bit, row[place]) for place, bit in bits.items()}
            for nodes in tree.chains(stage, _PER_CHAIN):
                additions = []
                for adder in nodes:
                    additions.append(_addition(adder, compared, counts))
                    counts[adder.place] = additions[-1].o
                write(m, additions)
            counts = {place: counts[place] for place in tree.places(stage[-1])}
            counts = _registers(m, f"counts_{number}", counts)
            bits = {place: bits[place] for place in tree.above(stage[-1])}
            bits = _registers(m, f"bits_{number}", bits)
            load = _registers(m, f"load_{number}", {0: load})[0]
        m.d.comb += self.distance.eq(counts[tree.bits])
        return m


def _addition(adder: Adder, compared: Mapping[int, Value], counts: Mapping[int, Value]) -> Addition:
    """Return the addition of ``adder``: its compared bit, and compared bits or counts below it."""
    o = Signal(adder.level + 1, name=f"count_{adder.place}")
    own, below = compared[adder.place], adder.below
    if adder.level == 1:
        return Addition(o, [own, *(compared[place] for place in below)], [])
    return Addition(o, [own], [counts[place] for place in below])


def _registers(
    m: Module, name: str, values: Mapping[int, Value], enable: Value | int = 1
) -> dict[int, Value]:
    """Registers that take all of ``values`` in a cycle with ``enable``."""
    held = Signal(sum(map(len, values.values())), name=name, reset_less=True)
    with m.If(enable):
        m.d.sync += held.eq(Cat(values.values()))
    registers, at = {}, 0
    for place, value in values.items():
        registers[place] = held[at : at + len(value)]
        at += len(value)
    return registers
