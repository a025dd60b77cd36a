"""Compares one row with a query each cycle, independently of all other units."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .additions import Addition, carry_chain, plain_sums
from .tree import Adder, CountTree

__all__ = ["Unit"]

_PER_STAGE = 2
"""Levels of additions between registers."""

_PER_CHAIN = 3
"""Highest counts of a carry chain: with three, the chains of 512 bits fill whole ECP5 tiles."""


class Unit(wiring.Component):
    """Stores a row, and counts the bits in which each query differs from it (Hamming distance).

    Its additions are a `CountTree`. On ECP5 (``platform.family``) they are carry chains; on any
    other platform, and in simulation, they are plain sums between the same registers. A bit that is
    added in a later stage is delayed before it is compared, and ``load`` with it, so units with the
    same ``bits`` share these registers.

    Parameters
    ----------
    row_bits
        Bits of a row: a power of two, 4 or more.

    Members
    -------
    bits
        A query, or with ``load`` the row to store. Must come from registers.
    load
        ``bits`` are the row for the queries from the next cycle on. Must come from a register.
    distance
        Bits in which ``bits`` of `latency` cycles ago differed from the row. A register.

    Latency: `latency` cycles. Throughput: a comparison a cycle, with no idle cycle after ``load``.
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
            compared = {node: Cat(bit, row[node]) for node, bit in bits.items()}
            for adders in tree.chains(stage, _PER_CHAIN):
                additions = []
                for adder in adders:
                    additions.append(_addition(adder, compared, counts))
                    counts[adder.node] = additions[-1].o
                write(m, additions)
            counts = {node: counts[node] for node in tree.nodes(stage[-1])}
            counts = _registers(m, f"counts_{number}", counts)
            bits = {node: bits[node] for node in tree.above(stage[-1])}
            bits = _registers(m, f"bits_{number}", bits)
            load = _registers(m, f"load_{number}", {0: load})[0]
        m.d.comb += self.distance.eq(counts[tree.bits])
        return m


def _addition(adder: Adder, compared: Mapping[int, Value], counts: Mapping[int, Value]) -> Addition:
    """Return the addition of ``adder``: its compared bit, and compared bits or counts below it."""
    o = Signal(adder.level + 1, name=f"count_{adder.node}")
    own, below = compared[adder.node], adder.below
    if adder.level == 1:
        return Addition(o, [own, *(compared[node] for node in below)], [])
    return Addition(o, [own], [counts[node] for node in below])


def _registers(
    m: Module, name: str, values: Mapping[int, Value], enable: Value | int = 1
) -> dict[int, Value]:
    """Return registers that load ``values`` in a cycle with ``enable``."""
    held = Signal(sum(map(len, values.values())), name=name, reset_less=True)
    with m.If(enable):
        m.d.sync += held.eq(Cat(values.values()))
    registers, at = {}, 0
    for node, value in values.items():
        registers[node] = held[at : at + len(value)]
        at += len(value)
    return registers
