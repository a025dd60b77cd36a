"""A `UdpStack` at simulated pins of RGMII, whose user sends each datagram back."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins import CircuitModel, PhySimulation, RgmiiPins
from bitlane_rtl.ethernet.gmii import Gmii
from bitlane_rtl.ethernet.udp_stack import UdpStack
from support.ethernet.packets import BOARD

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
