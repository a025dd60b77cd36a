"""Ports as others expect them: flat names, in the usual order, with AXI4's constant side signals.

Wires only. What AXI4 lets a manager leave out (A10.3) and interconnects nevertheless ask for is
there: identifiers, LOCK, QOS and REGION, all 0. Identifiers that come back are ignored.
"""

from collections.abc import Iterator

from cppsim.netlist.design import DesignPort, PlainDesign
from cppsim.netlist.elaborated import CLOCK

__all__ = ["conventional_ports"]

_SIDE = {"lock": 1, "qos": 4, "region": 4}
"""Members of an address channel that `bitlane_rtl.bus.axi4` leaves out, and their bits."""

_AHEAD = {"awaddr": "awid", "araddr": "arid", "bresp": "bid", "rdata": "rid"}
"""Identifiers, by the member that follows them."""

_FIRST = (CLOCK, "rst")


def conventional_ports(design: PlainDesign, order: list[str], id_width: int) -> list[DesignPort]:
    """The ports of ``design``, which holds a `bitlane_rtl.core.Core`, as an exported core has them.

    ``order`` lists the names that Amaranth gave them, ``m_axi__awaddr`` for one. Clock and reset
    come first. Raises ``ValueError`` unless ``id_width`` is 1 to 32.
    """
    if not 1 <= id_width <= 32:
        raise ValueError(f"id_width: {id_width} is outside 1 to 32")
    known = {port.name: port for port in design.ports}
    values = [bit for port in design.ports for bit in port.bits]
    values += [bit for cell in design.cells for bit in cell.result]
    values += [bit for register in design.registers for bit in register.result]
    values += [bit for x in design.memories for read in x.reads for bit in read.result]
    free = max(values) + 1
    ports = []
    for name in (*_FIRST, *order):
        for port in _with_side_signals(known[name], id_width):
            if port.output or port is known[name]:
                ports.append(DesignPort(_conventional(port.name), port.output, port.bits))
            else:
                bits = tuple(range(free, free + len(port.bits)))
                free += len(bits)
                ports.append(DesignPort(port.name, False, bits))
    return ports


def _conventional(name: str) -> str:
    return name.replace("__", "_")


def _with_side_signals(port: DesignPort, id_width: int) -> Iterator[DesignPort]:
    """``port`` with what belongs before and behind it; bits of new ports are 0."""
    bus, _, member = port.name.partition("__")
    if not bus.startswith("m_"):
        yield port
        return
    if member in _AHEAD:
        name = f"{bus}_{_AHEAD[member]}"
        yield DesignPort(name, member.endswith("addr"), (0,) * id_width)
    yield port
    if member.endswith("burst"):
        for side, width in _SIDE.items():
            yield DesignPort(f"{bus}_{member[:2]}{side}", True, (0,) * width)
