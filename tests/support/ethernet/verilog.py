"""Circuits at pins of RGMII: a board in Verilog, for models of others, and a stack that answers."""

from dataclasses import replace
from functools import cache
from typing import Any

from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable, Fragment, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.wiring import Flow, In, Out

from bitlane_boards.board import EthernetPort
from bitlane_boards.ecpix5 import BOARDS
from bitlane_boards.flow import Top
from bitlane_boards.pins import CircuitModel, PhySimulation, RgmiiPins
from bitlane_rtl.configurations import copy
from bitlane_rtl.ethernet import Gmii, RgmiiReceiver, RgmiiTransmitter, UdpStack
from bitlane_sim.export.backend import Port, verilog
from support.ethernet.line import BOARD, PLATFORM

CONFIGURATION = replace(copy(64, block_ram=True), memory_bytes=1 << 14)

CLOCKS = ("clk", "rxc", "line_clk")
"""Inputs that clock the domains ``sync``, ``rx`` and ``tx``."""

_PINS = {"rxd": (Flow.In, 4), "rx_ctl": (Flow.In, 1), "txd": (Flow.Out, 4)}
_PINS |= {"tx_ctl": (Flow.Out, 1), "txc": (Flow.Out, 1)}
"""Direction and width of the pins, by the names of RGMII 2.0. RXC is among `CLOCKS`."""


class BoardAtPins(Elaboratable):
    """The circuit of an ECPIX-5 with the smallest engine, at pins with a double data rate.

    ``ports`` are `CLOCKS`, ``rst``, which resets all of them, and the pins.
    """

    def __init__(self) -> None:
        [ecpix5] = BOARDS
        port = EthernetPort(addresses=BOARD)
        self._top: Any = Top(replace(ecpix5, configuration=CONFIGURATION, ethernet=port))
        self._inputs = {name: Signal(name=name) for name in (*CLOCKS, "rst")}
        self._pins: dict[str, Any] = {}
        self.ports = {name: Port(Flow.In, signal) for name, signal in self._inputs.items()}
        for name, (flow, width) in _PINS.items():
            pin: Any = io.SimulationPort("i" if flow is Flow.In else "o", width, name=name)
            self._pins[name] = pin
            self.ports[name] = Port(flow, pin.i if flow is Flow.In else pin.o)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for domain, clock in zip(("sync", "rx", "tx"), CLOCKS, strict=True):
            made: Any = ClockDomain(domain)
            m.domains += made
            m.d.comb += [made.clk.eq(self._inputs[clock]), made.rst.eq(self._inputs["rst"])]
        pins, top = self._pins, self._top
        receiver = RgmiiReceiver(pins["rxd"], pins["rx_ctl"])
        transmitter = RgmiiTransmitter(pins["txd"], pins["tx_ctl"], pins["txc"])
        m.submodules.top = top
        m.submodules.receiver = DomainRenamer("rx")(receiver)
        m.submodules.transmitter = DomainRenamer("tx")(transmitter)
        wiring.connect(m, receiver.o, top.received)
        wiring.connect(m, top.sent, transmitter.i)
        return m


@cache
def board_verilog() -> str:
    """Return the Verilog of `BoardAtPins` as the module ``board``."""
    board = BoardAtPins()
    circuit: Any = Fragment.get(board, PLATFORM)
    return verilog(circuit, "board", board.ports)


CLOCK_HZ = 93_750_000


class Looped(wiring.Component):
    """A stack between bytes of a gigabit line and itself."""

    received: Any
    sent: Any
    busy: Any

    def __init__(self) -> None:
        super().__init__({"received": In(Gmii()), "sent": Out(Gmii()), "busy": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.stack = stack = UdpStack(BOARD)
        wiring.connect(m, stack.received, stack.sent)
        wiring.connect(m, wiring.flipped(self.received), stack.rx)
        wiring.connect(m, stack.tx, wiring.flipped(self.sent))
        return m


def looped() -> PhySimulation:
    return PhySimulation(CircuitModel(RgmiiPins(Looped())), CLOCK_HZ)
