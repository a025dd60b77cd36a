"""`bitlane export --stream`: the stream core as Verilog, and its page. It knows no other core."""

import argparse
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bitlane.command_line import whole_number
from bitlane.version import __version__
from bitlane_rtl.abi import Register
from bitlane_rtl.stream_configuration import PacketReduction, StreamConfiguration

from .destination import Destination, ExportError

if TYPE_CHECKING:
    from .backend import Port

__all__ = ["add_stream_options", "expect_no_stream", "export_stream", "stream_files"]

_BY_INPUTS, _BY_REGISTERS = "inputs", "lite"

_MEMORY_OPTIONS = {
    "read_ports": "--ports",
    "modes": "--modes",
    "loops": "--loops",
    "search": "--search",
    "memory_base": "--memory-base",
    "memory_bytes": "--memory-bytes",
    "block_ram": "--block-ram",
    "counters": "--counters",
    "folder": "--folder",
    "bus": "--bus",
    "in_flight": "--in-flight",
}
"""Options that only a core with memory has, by their destinations."""

_STREAM_OPTIONS = {"control": "--control", "user_width": "--user-width", "reduces": "--reduce"}


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """Add `--stream` and the options that need it."""
    group = parser.add_argument_group("the bit unit between streams, without memory")
    group.add_argument(
        "--stream",
        action="store_true",
        help="AXI4-Stream in and out: s_axis_a, s_axis_b, m_axis_y; with --data-width (8 to 128),"
        " --ops and --lanes",
    )
    group.add_argument(
        "--control",
        choices=[_BY_INPUTS, _BY_REGISTERS],
        help="the operation from inputs, sampled at a packet's first beat, or from registers behind"
        f" AXI4-Lite (default {_BY_INPUTS})",
    )
    group.add_argument(
        "--user-width",
        type=whole_number,
        metavar="N",
        help="bits of TUSER of A, 0 to 32, which pass to Y (default 1)",
    )
    group.add_argument(
        "--reduce",
        dest="reduces",
        action=argparse.BooleanOptionalAction,
        help="one sum or truth value a packet (default: if an operation counts and a beat has 32"
        " bits)",
    )


def expect_no_stream(arguments: argparse.Namespace) -> None:
    """Raise ``ExportError`` for an option that needs `--stream`."""
    for field, option in _STREAM_OPTIONS.items():
        if getattr(arguments, field) is not None:
            raise ExportError(f"{option}: a core with memory has no such option; add --stream")


def stream_files(arguments: argparse.Namespace, to: Destination) -> tuple[str, str]:
    """Return module and page of the core that ``arguments`` describe.

    Raises ``ExportError`` for an option of cores with memory, and ``ValueError`` for values that
    contradict each other, which begins with a field's name.
    """
    for field, option in _MEMORY_OPTIONS.items():
        if getattr(arguments, field) is not None:
            raise ExportError(f"{option}: --stream has no memory and no commands; leave it out")
    if arguments.id_width != 1:
        raise ExportError("--id-width: --stream has no managers; leave it out")
    if arguments.configuration != "full":
        raise ExportError("--configuration: --stream has none; expected --ops and --lanes")
    names = ("data_width", "ops", "lanes", "user_width", "reduces")
    chosen = {name: getattr(arguments, name) for name in names}
    given = {name: value for name, value in chosen.items() if value is not None}
    configuration = StreamConfiguration(**given)
    return export_stream(
        configuration, to, registers=arguments.control == _BY_REGISTERS, given=given
    )


def export_stream(
    configuration: StreamConfiguration,
    to: Destination,
    *,
    registers: bool = False,
    given: Mapping[str, Any] | None = None,
) -> tuple[str, str]:
    """Return the stream core as Verilog, and its page as Markdown.

    ``given``: the fields of ``configuration`` that the command in both shall name. Raises as
    `verilog` does.
    """
    from bitlane_rtl.stream_unit import StreamCore, stream_registers

    from .backend import conventional_ports, verilog

    core = StreamCore(configuration, registers=registers)
    ports = conventional_ports(core)
    command = _command(given or {}, to, registers=registers)
    known = stream_registers(configuration) if registers else ()
    parameters = _parameters(configuration, core.latency)
    comments = {port: _meaning(port) for port in ("clk", "rst", *ports)}
    module = verilog(core, to.name, ports, comments, to.style)
    text = _header(parameters, command, to) + "\n" + module
    return text, _page(configuration, parameters, ports, known, _Written(command, to.name))


def _command(given: Mapping[str, Any], to: Destination, *, registers: bool) -> str:
    words = ["bitlane", "export", "--stream"]
    if "data_width" in given:
        words += ["--data-width", str(given["data_width"])]
    if "ops" in given:
        words += ["--ops", ",".join(op.name.lower() for op in sorted(given["ops"]))]
    if "lanes" in given:
        words += ["--lanes", ",".join(str(lane.bits) for lane in sorted(given["lanes"]))]
    if "user_width" in given:
        words += ["--user-width", str(given["user_width"])]
    if "reduces" in given:
        words.append("--reduce" if given["reduces"] else "--no-reduce")
    if registers:
        words += ["--control", _BY_REGISTERS]
    return shlex.join([*words, *to.words()])


class _Written(NamedTuple):
    """The command that wrote a module, and the module's name."""

    command: str
    name: str


_Parameters = list[tuple[str, str]]
"""Names and values."""


def _parameters(configuration: StreamConfiguration, latency: int) -> _Parameters:
    lanes = ", ".join(str(lane.bits) for lane in sorted(configuration.lanes))
    return [
        ("Data width", f"{configuration.data_width} bits"),
        ("Operations", ", ".join(op.name for op in sorted(configuration.ops))),
        ("Lanes", f"{lanes} bits" if lanes else "none: no operation depends on one"),
        ("Reductions", "SUM, ANY" if configuration.reduces else "none"),
        ("TUSER of A", f"{configuration.user_width} bits"),
        ("Latency", f"{latency} cycles, one beat a cycle"),
    ]


def _header(parameters: _Parameters, command: str, to: Destination) -> str:
    width = max(len(key) for key, _ in parameters)
    lines = [
        f"{to.name}: the bit unit of bitlane {__version__} between AXI4-Stream buses.",
        "SPDX-License-Identifier: MIT",
        "",
        f"Written by: {command}",
        f"{to.page.name} beside this file says what each packet gives, and what its flags mean.",
        "",
        *(f"{key:{width}}  {value}" for key, value in parameters),
        "",
        "Clock clk, rising edges; reset rst, synchronous, active high. One packet of Y for each",
        "packet of A, or for each pair of A and B. No combinational path leads from an input to an",
        "output.",
    ]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


_MEANINGS = {
    "clk": "clock; everything happens at its rising edge",
    "rst": "synchronous reset, active high: `~aresetn`",
    "control_op": "the operation",
    "control_lane": "the lane of A and B",
    "control_out_lane": "the lane of counts in Y: `control_lane`, 8 or 32 bits",
    "control_saturate": "shifts saturate",
    "control_arithmetic": "shifts to the right are arithmetic",
    "control_test": "a count becomes 1 if it is not 0",
    "control_negate": "with test or ANY: 1 becomes 0, and 0 becomes 1",
    "control_reduction": "the result of a packet of counts",
}

_BUSES = {
    "s_axis_a_": "AXI4-Stream receiver, A",
    "s_axis_b_": "AXI4-Stream receiver, B",
    "m_axis_y_": "AXI4-Stream transmitter, Y",
    "s_axil_": "AXI4-Lite subordinate, the registers",
}


def _meaning(port: str) -> str:
    if port in _MEANINGS:
        return _MEANINGS[port]
    return next(text for prefix, text in _BUSES.items() if port.startswith(prefix))


def _page(
    configuration: StreamConfiguration,
    parameters: _Parameters,
    ports: Mapping[str, "Port"],
    known: tuple[Register, ...],
    written: _Written,
) -> str:
    rows = {"clk": ("in", 1), "rst": ("in", 1)}
    rows |= {x: ("out" if port.output else "in", len(port.signal)) for x, port in ports.items()}
    lines = [
        f"# {written.name}",
        "",
        f"The bit unit of bitlane {__version__} between AXI4-Stream buses, written by",
        "",
        f"    {written.command}",
        "",
        "| Parameter | Value |",
        "| --- | --- |",
        *(f"| {key} | {value} |" for key, value in parameters),
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
        *_operation(configuration, known),
        *_PACKETS,
        *_flags(configuration),
        *_registers(known),
        "## Instance",
        "",
        "```verilog",
        f"{written.name} {written.name}_i (",
        ",\n".join(f"  .{port}({port})" for port in rows),
        ");",
        "```",
    ]
    return "\n".join(lines) + "\n"


def _operation(configuration: StreamConfiguration, known: tuple[Register, ...]) -> list[str]:
    if known:
        sampled = "Register CONTROL has the operation, which is sampled"
    else:
        sampled = "The control inputs, if there are any, are sampled"
    lines = [
        "## Operation",
        "",
        f"{sampled} in the cycle in which A transfers the first beat of a packet.",
        "",
        "| Operation | Code | Result |",
        "| --- | --- | --- |",
        *(f"| {op.name} | {int(op)} | {op.summary} |" for op in sorted(configuration.ops)),
        "",
    ]
    if configuration.lanes:
        lines += [
            "| Lane | Code |",
            "| --- | --- |",
            *(f"| {lane.summary} | {int(lane)} |" for lane in sorted(configuration.lanes)),
            "",
        ]
    if configuration.reduces:
        lines += [
            "| PacketReduction | Code | A packet of Y |",
            "| --- | --- | --- |",
            *(f"| {each.name} | {int(each)} | {each.summary} |" for each in PacketReduction),
            "",
        ]
    return lines


_PACKETS = (
    "## Packets",
    "",
    "Each packet of A gives one packet of Y, in order. An operation of two operands takes one",
    "packet of B with it; any other leaves B alone.",
    "",
    "- Logic and shifts give a beat for each beat, with TKEEP and TUSER of A.",
    "- Counts in their own lane do the same. Counts that become narrower lie side by side: with 64",
    "  bits in and 8 bits out, 8 beats of A become one of Y, with TUSER of the last of them.",
    "- A reduction gives one beat: 4 bytes of a sum, or 1 byte of a truth value.",
    "",
    "Bytes of Y that TKEEP leaves out are undefined. A beat enters and leaves in every cycle in",
    "which the receiver is ready.",
    "",
)


def _flags(configuration: StreamConfiguration) -> list[str]:
    from bitlane_rtl.stream_unit import FLAG_FIELDS

    first = configuration.user_width
    passed = f", above the {first} of TUSER of A" if first else ""
    return [
        "## Flags",
        "",
        f"These bits of TUSER of Y are flags{passed}. On the last beat they hold for the packet.",
        "",
        "| Bit of TUSER | Flag | The packet, and what Y has |",
        "| --- | --- | --- |",
        *(f"| {first + bits.low} | {bits.name} | {_ANSWERS[bits.name]} |" for bits in FLAG_FIELDS),
        "",
    ]


_ANSWERS = {
    "REFUSED": "an operation, lane or reduction that was not built, or control inputs that"
    " contradict each other; Y has as many beats as the shorter packet, and no byte",
    "UNEQUAL": "A and B differ in length; Y has the bytes that both have, and the rest is dropped",
    "HOLES": "TKEEP has a 0 before the last beat or between two 1, or the packet ends within an"
    " element; an element of which a byte is missing has no result",
    "EMPTY": "no byte at all; Y has one beat of no byte, and a reduction that of nothing",
}
"""What Y has in a packet with a flag."""


def _registers(known: tuple[Register, ...]) -> list[str]:
    if not known:
        return []
    lines = ["## Registers", "", "| Offset | Register | Access | Bits | What |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for entry in known:
        access = entry.access.name.lower().replace("_", "/")
        lines.append(f"| {entry.offset:#04x} | {entry.name} | {access} | | {entry.summary} |")
        lines += [
            f"| | {entry.name}.{bits.name} | | {_span(bits.low, bits.width)} | {bits.summary} |"
            for bits in entry.bits
        ]
    return [*lines, ""]


def _span(low: int, width: int) -> str:
    return str(low) if width == 1 else f"{low + width - 1}:{low}"
