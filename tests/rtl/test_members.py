"""Each component describes its ports, no more and no fewer.

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
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import Fragment, Module
from amaranth.lib import io, wiring

import bitlane_rtl
from bitlane_boards import boards
from bitlane_boards.flow.top import Top
from bitlane_rtl.bus.whole_beats import Axi4WholeBeats
from bitlane_rtl.configuration import Search
from bitlane_rtl.configurations import copy, full
from bitlane_rtl.core import Core
from bitlane_rtl.ethernet.board_addresses import BoardAddresses
from bitlane_rtl.ethernet.network_bridge import NetworkBridge
from bitlane_rtl.ethernet.rgmii import RgmiiReceiver, RgmiiTransmitter
from bitlane_rtl.stream_unit.configuration import StreamConfiguration
from bitlane_rtl.stream_unit.core import StreamCore
from bitlane_rtl.wishbone_core import WishboneCore
from support.ethernet.line import PLATFORM


def rgmii() -> Module:
    """Return both directions at the pins."""
    data, control, clock = (io.SimulationPort("io", width) for width in (4, 1, 1))
    m = Module()
    m.submodules.receiver = RgmiiReceiver(data, control)
    m.submodules.transmitter = RgmiiTransmitter(data, control, clock)
    return m


CIRCUITS = {
    "copy": lambda: Core(copy()),
    "pairs of beats, block RAM": lambda: Core(full(32, block_ram=True)),
    "search, one read port": lambda: Core(replace(full(), search=Search(units=1), read_ports=1)),
    "Ethernet": lambda: NetworkBridge(full(), BoardAddresses(), 100_000_000),
    "pins of Ethernet": rgmii,
    "stream": lambda: StreamCore(StreamConfiguration()),
    "stream with registers": lambda: StreamCore(StreamConfiguration(), registers=True),
    "Wishbone": lambda: WishboneCore(copy()),
    "whole beats": lambda: Axi4WholeBeats(32, 32),
    **{
        name: partial(Top, board)
        for name, board in boards().items()
        if not board.configuration.search  # its array is large, and another circuit has one
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
