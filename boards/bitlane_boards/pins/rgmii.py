"""The pins of RGMII and three clocks for a circuit that has bytes of a gigabit line as ports.

A pin with a double data rate is two ports in a model: the levels at both edges of one clock cycle.
"""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import (
    Cat,
    DomainRenamer,
    Elaboratable,
    EnableInserter,
    Fragment,
    Module,
    Signal,
    Value,
)
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.ethernet import RgmiiReceiver, RgmiiTransmitter

DOMAINS = ("rx", "tx", "sync")

_PINS = {"rx_data": 4, "rx_ctl": 1, "tx_data": 4, "tx_ctl": 1, "tx_clk": 1}
"""Bits by the names of amaranth-boards' resource ``eth_rgmii``. ``rx_clk`` is the domain ``rx``."""


def _pin_ports(name: str) -> list[str]:
    """Return the ports of one bit of pins: those at the rising edge, then at the falling edge."""
    bits = range(_PINS[name])
    return [f"rgmii_{name}_{bit}_{edge}" for edge in ("rise", "fall") for bit in bits]


INPUT_PINS = [port for name in ("rx_data", "rx_ctl") for port in _pin_ports(name)]
OUTPUT_PINS = [port for name in ("tx_data", "tx_ctl", "tx_clk") for port in _pin_ports(name)]


def edge_port(domain: str) -> str:
    """Return the port that is 1 if the model's next step is an edge of ``domain``."""
    return f"{domain}_edge"


class RgmiiPins(wiring.Component):
    """``component`` with pins of RGMII in place of its members ``received`` and ``sent``.

    A step of the one clock is an edge of each of ``DOMAINS`` whose port `edge_port` is 1.
    """

    def __init__(self, component: wiring.Component) -> None:
        self._component: Any = component
        members: dict[str, Any] = dict(component.signature.members)
        del members["received"], members["sent"]
        self._others = list(members)
        members |= {name: In(1) for name in (*INPUT_PINS, *map(edge_port, DOMAINS))}
        members |= {name: Out(1) for name in OUTPUT_PINS}
        super().__init__(members)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.component = component = self._component
        for name in self._others:
            ours, theirs = getattr(self, name), getattr(component, name)
            into = component.signature.members[name].flow is In
            assert isinstance(ours, Value)
            m.d.comb += theirs.eq(ours) if into else ours.eq(theirs)
        ports = {
            name: io.SimulationPort("i" if name.startswith("rx") else "o", width)
            for name, width in _PINS.items()
        }
        receiver = RgmiiReceiver(ports["rx_data"], ports["rx_ctl"])
        transmitter = RgmiiTransmitter(ports["tx_data"], ports["tx_ctl"], ports["tx_clk"])
        names: dict[Any, str] = {port: name for name, port in ports.items()}

        def buffer_of(buffer: io.DDRBuffer) -> Module:
            levels = [getattr(self, name) for name in _pin_ports(names[buffer.port])]
            width = len(levels) // 2
            return _buffer(buffer, Cat(levels[:width]), Cat(levels[width:]))

        pins: Any = SimpleNamespace(get_io_buffer=buffer_of)
        m.submodules.rx = DomainRenamer("rx")(Fragment.get(receiver, pins))
        m.submodules.tx = DomainRenamer("tx")(Fragment.get(transmitter, pins))
        wiring.connect(m, receiver.o, component.received)
        wiring.connect(m, component.sent, transmitter.i)
        edges = {domain: getattr(self, edge_port(domain)) for domain in DOMAINS}
        one_clock = dict.fromkeys(DOMAINS, "sync")
        return DomainRenamer(one_clock)(EnableInserter(edges)(m))


def _buffer(buffer: io.DDRBuffer, rise: Value, fall: Value) -> Module:
    """Return the circuit of a DDR buffer, as slow as that of an ECP5."""
    m = Module()
    nibbles: Any = buffer
    if buffer.direction is io.Direction.Input:
        for level, i in ((rise, nibbles.i[0]), (fall, nibbles.i[1])):
            first = Signal.like(i)
            m.d.sync += [first.eq(level), i.eq(first)]
    else:
        m.d.sync += [rise.eq(nibbles.o[0]), fall.eq(nibbles.o[1])]
    return m
