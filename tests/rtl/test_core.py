"""A core has no combinational path from input to output; impossible ones are refused."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import BIT_OPS, Mode, Op
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.configurations import copy, full, one_port, small
from bitlane_rtl.core import Core
from bitlane_rtl.stream_unit.configuration import StreamConfiguration
from bitlane_rtl.stream_unit.core import StreamCore
from bitlane_rtl.wishbone_core import WishboneCore
from cppsim.circuits import Circuit
from cppsim.netlist.design import CellKind, PlainCell
from support.seeds import slow

CONFIGURATIONS = {
    "64 bits, two read ports": full(),
    "32 bits, one read port": one_port(32),
    "32 bits, NOT of dense runs": copy(),
    "32 bits, block RAM": small(block_ram=True),
}

_BIT_BY_BIT = {CellKind.NOT, CellKind.AND, CellKind.OR, CellKind.XOR}


def _depends(cell: PlainCell) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Bits that ``cell`` gives, each with those that it waits for within the cycle."""
    for index, bit in enumerate(cell.result):
        if cell.kind in _BIT_BY_BIT:
            yield bit, tuple(bits[index] for bits in cell.operands)
        else:
            yield bit, tuple(each for bits in cell.operands for each in bits)


def paths(circuit: wiring.Component) -> set[tuple[str, str]]:
    """Names of an input and an output for each combinational path between such."""
    design = Circuit(circuit).design
    waits = {bit: sources for cell in design.cells for bit, sources in _depends(cell)}
    waits |= {bit: x.address for m in design.memories for x in m.reads for bit in x.result}
    inputs = {bit: port.name for port in design.ports if not port.output for bit in port.bits}
    found = set()
    for port in design.ports:
        if not port.output:
            continue
        seen, left = set(port.bits), list(port.bits)
        while left:
            bit = left.pop()
            if bit in inputs:
                found.add((inputs[bit], port.name))
            for source in waits.get(bit, ()):
                if source not in seen:
                    seen.add(source)
                    left.append(source)
    return found


class Through(wiring.Component):
    """Has one such path, and a register beside it."""

    i: In(1)
    j: In(1)
    o: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal()
        m.d.sync += held.eq(self.j)
        m.d.comb += self.o.eq(self.i ^ held)
        return m


def test_a_path_is_found_where_there_is_one() -> None:
    assert paths(Through()) == {("i", "o")}


QUICK = {"32 bits, one read port", "32 bits, NOT of dense runs"}
"""Configurations of the quick tier."""


@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in CONFIGURATIONS])
def test_no_combinational_path_leads_from_an_input_to_an_output(name: str) -> None:
    assert paths(Core(CONFIGURATIONS[name])) == set()


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("width", [8, slow(64)])
def test_no_combinational_path_leads_through_a_stream_core(width: int, registers: bool) -> None:
    core = StreamCore(StreamConfiguration(data_width=width), registers=registers)
    assert paths(core) == set()


@pytest.mark.parametrize("make", [copy, slow(one_port)])
def test_no_combinational_path_leads_through_a_wishbone_core(
    make: Callable[[], Configuration],
) -> None:
    assert paths(WishboneCore(make())) == set()


def test_runs_are_single_only_where_nothing_else_is_built() -> None:
    assert copy().single_runs
    others = (full(), replace(copy(), loops=2), replace(copy(), modes=full().modes))
    assert not any(each.single_runs for each in others)


def test_an_operation_is_the_only_one_where_no_other_is_built() -> None:
    assert copy().single_op is Op.NOT
    assert replace(copy(), ops=frozenset({Op.NOT, Op.AND})).single_op is None
    assert full().single_op is None


def test_narrow_beats_can_feed_an_array() -> None:
    search = Search(units=8)
    for width in (32, 64):
        assert Configuration(data_width=width, search=search).search == search
    assert Configuration().search is None


def test_operations_and_modes_list_what_is_built() -> None:
    search = Search(units=8)
    assert Op.SEARCH not in Configuration(ops=frozenset(Op)).ops
    assert Configuration(ops=BIT_OPS, search=search) == Configuration(search=search)
    assert Op.SEARCH in Configuration(search=search).ops
    assert Configuration(ops=frozenset({Op.XOR})).modes == frozenset(Mode) - {Mode.SUM}
    assert Configuration(ops=frozenset({Op.COUNT})).modes == frozenset(Mode)


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ({}, 16),
        ({"block_ram": True}, 4),
        ({"block_ram": True, "modes": frozenset({Mode.DENSE})}, 2),
        ({"block_ram": True, "data_width": 32}, 2),
        ({"block_ram": True, "data_width": 128}, 16),
    ],
)
def test_queues_ahead_of_the_data_hold_the_elements_of_a_beat(
    options: dict[str, Any], entries: int
) -> None:
    assert Configuration(**options).ahead == entries
