"""A core has no combinational path from input to output; components describe their ports.

Fixed ports have a docstring below their annotation; others are heads of the section Members.

Components are collected while circuits are elaborated, so no list of them can go stale: a component
that is in none of `CIRCUITS` fails until a circuit there contains it.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

import bitlane_rtl
from bitlane_boards import boards
from bitlane_boards.flow import Top
from bitlane_rtl.abi import BIT_OPS, Mode, Op
from bitlane_rtl.bus import Axi4WholeBeats
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.configurations import copy, full, one_port, small
from bitlane_rtl.core import Core
from bitlane_rtl.ethernet import RgmiiReceiver, RgmiiTransmitter
from bitlane_rtl.stream_unit import StreamConfiguration, StreamCore
from bitlane_rtl.wishbone_core import WishboneCore
from cppsim.circuits import Circuit
from cppsim.netlist import CellKind, PlainCell
from support.ethernet.line import PLATFORM
from support.seeds import slow, stride

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


# --- ports of components --------------------------------------------------------------------------


def rgmii() -> Module:
    """Return both directions at the pins."""
    data, control, clock = (io.SimulationPort("io", width) for width in (4, 1, 1))
    m = Module()
    m.submodules.receiver = RgmiiReceiver(data, control)
    m.submodules.transmitter = RgmiiTransmitter(data, control, clock)
    return m


CHOSEN = {"icebreaker", "icebreaker-bram", "hx8k", "colorlight-5a-75b"}
"""Boards of the quick tier: together they have all components of all boards."""

CIRCUITS = {
    "pairs of beats, block RAM": lambda: Core(full(32, block_ram=True)),
    "search, one read port": lambda: Core(replace(full(), search=Search(units=1), read_ports=1)),
    "pins of Ethernet": rgmii,
    "stream": lambda: StreamCore(StreamConfiguration()),
    "stream with registers": lambda: StreamCore(StreamConfiguration(), registers=True),
    "Wishbone": lambda: WishboneCore(copy()),
    "whole beats": lambda: Axi4WholeBeats(32, 32),
    **{
        name: partial(Top, board)
        for name, board in boards().items()
        # The full tier has all but those with a search array, which is large.
        if name in CHOSEN or (stride(2) == 1 and not board.configuration.search)
    },
}

Ports = dict[type[wiring.Component], set[str]]


def components() -> Iterator[type[wiring.Component]]:
    """Yield every component of the package, except base classes, which are in no circuit."""
    for module in pkgutil.walk_packages(bitlane_rtl.__path__, "bitlane_rtl."):
        for each in vars(importlib.import_module(module.name)).values():
            is_component = inspect.isclass(each) and issubclass(each, wiring.Component)
            if is_component and each.__module__ == module.name and not each.__subclasses__():
                yield each


@pytest.fixture(scope="module")
def ports() -> Ports:
    """The names of all ports that a component has in any of `CIRCUITS`."""
    found: Ports = defaultdict(set)
    plain = wiring.Component.__init__

    def noting(self: wiring.Component, *arguments: Any, **options: Any) -> None:
        plain(self, *arguments, **options)
        found[type(self)].update(self.signature.members)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring.Component, "__init__", noting)
        for circuit in CIRCUITS.values():
            Fragment.get(circuit(), PLATFORM)
    return found


def described(component: type[wiring.Component]) -> list[str]:
    """Return the names that have a description: in the section Members, or below an annotation."""
    docstring = inspect.cleandoc(component.__doc__ or "")
    _, _, section = docstring.partition("\nMembers\n-------\n")
    heads = re.findall(r"^(\S.*)\n ", section.split("\n\n")[0], re.MULTILINE)
    names = [name for head in heads for name in head.split(", ")]
    [definition] = ast.parse(inspect.getsource(component)).body
    assert isinstance(definition, ast.ClassDef)
    for statement, following in pairwise(definition.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str())):
                names.append(name)
    return names


@pytest.mark.parametrize("component", [*components()], ids=lambda each: each.__qualname__)
def test_descriptions_are_those_of_the_ports(
    component: type[wiring.Component], ports: Ports
) -> None:
    assert component in ports, "in no circuit; add one that contains it to CIRCUITS"
    assert sorted(described(component)) == sorted(ports[component])
