"""Ports as others expect them: flat names, in the usual order, with AXI4's constant side signals.

Wires only. What AXI4 lets a manager leave out (A10.3) and interconnects nevertheless ask for is
there: identifiers, LOCK, QOS and REGION, all 0. Identifiers that come back are ignored.
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Signal, Value
from amaranth.lib.wiring import Flow

from bitlane_rtl.core import Core

from .backend import Port

__all__ = ["conventional_ports"]

_SIDE = {"lock": 1, "qos": 4, "region": 4}
"""Members of an address channel that `bitlane_rtl.bus.axi4` leaves out, and their bits."""

_AHEAD = {"awaddr": "awid", "araddr": "arid", "bresp": "bid", "rdata": "rid"}
"""Identifiers, by the member that follows them."""


def conventional_ports(core: Core, id_width: int) -> dict[str, Port]:
    """Return the ports of ``core`` by name, without clock and reset.

    Raises ``ValueError`` unless ``id_width`` is 1 to 32.
    """
    if not 1 <= id_width <= 32:
        raise ValueError(f"id_width: {id_width} is outside 1 to 32")
    ports: dict[str, Port] = {}
    flat: Any = core.signature.flatten(core)
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
