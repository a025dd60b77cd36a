"""Text for an exported core: the comment at its head, and the page beside it."""

from collections.abc import Iterable, Mapping

from bitlane.version import __version__
from bitlane_rtl import abi
from bitlane_rtl.bus.axi4 import CACHE, PROT
from bitlane_rtl.configuration import Configuration

from . import registers_page, wishbone_text
from .backend import Port

_WIDTH = 100

_GROUPS = {
    "m_axi_b_": "AXI4 manager, reads of B",
    "m_axi_": "AXI4 manager",
    "s_axil_": "AXI4-Lite subordinate, the control window",
    **wishbone_text.GROUPS,
}
"""The bus of a port, by the prefix of its name; the longest comes first."""

_AXI4_HEADER = (
    "Clock clk, rising edges; reset rst, synchronous, active high. Ports beginning with m_axi",
    "are AXI4 managers (bursts INCR of up to 16 beats, never across 4 KiB, one identifier);",
    "s_axil is an AXI4-Lite subordinate of 32 bits. No combinational path leads from an input",
    "to an output.",
)
"""Lines on the ports for the comment at the head of a module."""

_AXI4_PAGE = (
    (
        "AxSIZE is the data width and AxBURST INCR; AxCACHE is"
        f" `0b{CACHE:04b}` (normal, not cacheable, not bufferable) and AxPROT `0b{PROT:03b}`."
    ),
    "AxLOCK, AxQOS, AxREGION and the identifiers are constant 0; identifiers that come back",
    "are ignored, as AWPROT and ARPROT of the control window are.",
)
"""Lines below the instance on a module's page."""

_ALONE = {
    "clk": "clock; everything happens at its rising edge",
    "rst": "synchronous reset, active high: `~aresetn`",
    "irq": "high while an enabled interrupt is pending",
}


def _names(members: Iterable[abi.Op | abi.Mode]) -> str:
    return ", ".join(member.name for member in sorted(members))


def _parameters(
    configuration: Configuration, in_flight: int | None = None
) -> list[tuple[str, str]]:
    """Names and values; ``in_flight``: beats in flight on Wishbone, or None for AXI4."""
    first, last = configuration.memory_base, configuration.memory_last
    two = configuration.two_ports
    lanes = ", ".join(str(lane.bits) for lane in sorted(configuration.lanes))
    managers = "2: m_axi reads A, m_axi_b reads B" if two else "1: m_axi"
    if in_flight is not None:
        managers = f"1: wbm, with up to {in_flight} beats in flight"
    reads = f"{configuration.bursts} bursts and {configuration.fifo_beats} beats"
    return [
        ("Data width", f"{configuration.data_width} bits"),
        ("Read managers", managers),
        ("Operations", _names(configuration.ops)),
        ("Lanes", f"{lanes} bits" if lanes else "none: no operation depends on one"),
        ("Runs", _names(configuration.modes)),
        ("Nested loops", str(configuration.loops)),
        ("In flight", f"{reads} of each operand, {configuration.bursts} bursts of the result"),
        ("Counters", "yes" if configuration.counters else "none: their registers read 0"),
        ("Command ring", f"{configuration.slots} slots of {abi.RECORD_BYTES} bytes"),
        ("Memory", f"{configuration.memory_bytes} bytes, {first:#010x} to {last:#010x}"),
        ("Control window", f"{abi.CONTROL_SIZE} bytes"),
    ]


def header(
    configuration: Configuration,
    name: str,
    command: str,
    page_file: str,
    in_flight: int | None = None,
) -> str:
    """The comment at the head of the module ``name``, which ``command`` wrote. Ends in a line.

    ``page_file`` is what the page beside the module is called; ``in_flight`` is as for `page`.
    """
    parameters = _parameters(configuration, in_flight)
    width = max(len(key) for key, _ in parameters)
    lines = [
        f"{name}: the core of bitlane {__version__}, ABI version {abi.ABI_VERSION}.",
        "SPDX-License-Identifier: MIT",
        "",
        f"Written by: {command}",
        f"{page_file} beside this file has the ports and all fields of registers and records.",
        "",
        *(f"{key:{width}}  {value}" for key, value in parameters),
        "",
        *(_AXI4_HEADER if in_flight is None else wishbone_text.HEADER),
        "",
        "Registers, as offsets in the control window:",
        *(
            f"  {entry.offset:#06x}  {entry.access.name.replace('_', '/').lower():10}  {entry.name}"
            for entry in abi.REGISTERS
        ),
        f"  {abi.COMPLETION_OFFSET:#06x}  read        completions, a word a slot",
        f"  {abi.RING_OFFSET:#06x}  write       command ring, {abi.RECORD_BYTES} bytes a slot",
    ]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def page(
    configuration: Configuration,
    name: str,
    command: str,
    ports: Mapping[str, Port],
    in_flight: int | None = None,
) -> str:
    """Return the Markdown page of the module ``name``: parameters, ports, instance, registers.

    ``ports`` lacks clock and reset, which every module has. ``in_flight``: beats in flight on
    Wishbone, or None for AXI4.
    """
    rows = {"clk": ("in", 1), "rst": ("in", 1)}
    rows |= {x: ("out" if port.output else "in", len(port.signal)) for x, port in ports.items()}
    lines = [
        f"# {name}",
        "",
        f"The core of bitlane {__version__}, ABI version {abi.ABI_VERSION}, written by",
        "",
        f"    {command}",
        "",
        "| Parameter | Value |",
        "| --- | --- |",
        *(f"| {key} | {value} |" for key, value in _parameters(configuration, in_flight)),
        "",
        "## Ports",
        "",
        "| Port | Direction | Bits | What |",
        "| --- | --- | --- | --- |",
        *(
            f"| `{port}` | {direction} | {width} | {_meaning(port)} |"
            for port, (direction, width) in rows.items()
        ),
        "",
        "## Instance",
        "",
        "```verilog",
        f"{name} {name}_i (",
        ",\n".join(f"  .{port}({port})" for port in rows),
        ");",
        "```",
        "",
        *(_AXI4_PAGE if in_flight is None else wishbone_text.PAGE),
        "",
    ]
    return "\n".join(lines) + "\n" + _registers(configuration.slots)


def comments(ports: Mapping[str, Port]) -> dict[str, str]:
    """Return the meaning of each port by name, clock and reset first, which ``ports`` lacks."""
    return {port: _meaning(port) for port in ("clk", "rst", *ports)}


def _meaning(port: str) -> str:
    if port in _ALONE:
        return _ALONE[port]
    return next(text for prefix, text in _GROUPS.items() if port.startswith(prefix))


def _registers(slots: int) -> str:
    """The page of the project on registers, a level further down, without its first comment."""
    text = registers_page.render(slots)
    lines = [line for line in text.splitlines() if not line.startswith("<!--")]
    text = "\n".join(f"#{line}" if line.startswith("#") else line for line in lines) + "\n"
    return text.replace("\n\n\n", "\n\n")
