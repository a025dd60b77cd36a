"""`bitlane export --bus wishbone`: the core on Wishbone as Verilog, its options and its ports."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bitlane.command_line import whole_number
from bitlane_rtl.configuration import Configuration

from .destination import Destination, ExportError

if TYPE_CHECKING:
    from .backend import Port

__all__ = ["add_bus_options", "beats_in_flight", "export_wishbone"]

_AXI4, _WISHBONE = "axi4", "wishbone"

USUAL_IN_FLIGHT = 16
"""Beats in flight, unless `--in-flight` has another number."""


def add_bus_options(parser: argparse.ArgumentParser) -> None:
    """Add `--bus`, and the option that Wishbone alone has."""
    parser.add_argument(
        "--bus",
        choices=[_AXI4, _WISHBONE],
        help="of memory and registers: AXI4 with AXI4-Lite, or Wishbone B4, pipelined, with one"
        f" manager (default {_AXI4})",
    )
    parser.add_argument(
        "--in-flight",
        type=whole_number,
        metavar="N",
        help="beats in flight on Wishbone: 4, 8, 16, 32 or 64; at most 16 with --block-ram (default"
        f" {USUAL_IN_FLIGHT})",
    )


def beats_in_flight(arguments: argparse.Namespace) -> int | None:
    """Return the beats in flight on Wishbone, or None if the bus is AXI4.

    Raises ``ExportError`` for an option that the bus does not have.
    """
    if arguments.bus != _WISHBONE:
        if arguments.in_flight is not None:
            raise ExportError("--in-flight: AXI4 limits bursts in flight; add --bus wishbone")
        return None
    if arguments.id_width != 1:
        raise ExportError("--id-width: Wishbone has no identifiers; leave it out")
    if arguments.read_ports == 2:
        raise ExportError("--ports: 2; expected 1, because A and B share the manager of Wishbone")
    return USUAL_IN_FLIGHT if arguments.in_flight is None else int(arguments.in_flight)


def export_wishbone(
    configuration: Configuration, in_flight: int, command: str, to: Destination
) -> tuple[str, str]:
    """Return the core on Wishbone as Verilog, and its page as Markdown.

    ``command`` wrote both to ``to``. Raises ``ValueError`` for an ``in_flight`` that cannot be
    built, and as `verilog` does.
    """
    from bitlane_rtl.wishbone_core import WishboneCore

    from .backend import conventional_ports, verilog
    from .document import comments, header, page

    core = WishboneCore(configuration, in_flight)
    ports = _wishbone_ports(conventional_ports(core))
    text = header(configuration, to.name, command, to.page.name, in_flight)
    text += "\n" + verilog(core, to.name, ports, comments(ports), to.style)
    return text, page(configuration, to.name, command, ports, in_flight)


def _wishbone_ports(ports: Mapping[str, "Port"]) -> dict[str, "Port"]:
    """Name ``ports`` as the standard does: `_o` behind an output of the core, `_i` an input."""
    return {
        name if name == "irq" else _standard(name) + ("_o" if port.output else "_i"): port
        for name, port in ports.items()
    }


def _standard(name: str) -> str:
    return name.removesuffix("_w").removesuffix("_r")
