"""The pins of an Ethernet PHY on an ECP5, with the clock that the PHY sends and delays of pins."""

from typing import Any

from amaranth.hdl import (
    ClockSignal,
    Const,
    DomainRenamer,
    Elaboratable,
    Fragment,
    Instance,
    Module,
    Signal,
)
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.ethernet import Gmii, RgmiiReceiver, RgmiiTransmitter

from ..board import DELAY_STEP_PS, EthernetPort

__all__ = ["LINE_HZ", "RgmiiPort", "rgmii_pins"]

LINE_HZ = 125_000_000
"""The clock of a gigabit, a byte a cycle."""

_LINES = [f"{side}_{name}" for side in ("rx", "tx") for name in ("clk", "ctl", "data")]


def rgmii_pins(platform: Any, number: int) -> dict[str, Any]:
    """Return the ports of the resource ``eth_rgmii`` by name, ``rst`` among them."""
    pins = platform.request("eth_rgmii", number, dir="-")
    found = {name: getattr(pins, name) for name in ("rst", *_LINES) if hasattr(pins, name)}
    # amaranth-boards has both names.
    return found | {
        f"{side}_ctl": getattr(pins, f"{side}_ctrl")
        for side in ("rx", "tx")
        if hasattr(pins, f"{side}_ctrl")
    }


class RgmiiPort(wiring.Component):
    """Connects bytes of a gigabit line to the pins of a PHY, and takes the PHY out of reset.

    Members
    -------
    received : ``Out(Gmii())``, in the domain ``rx``
    sent : ``In(Gmii())``, in the domain ``tx``

    Drives the clock of the domain ``rx``. That of ``tx`` has ``LINE_HZ``.
    """

    received: Any
    sent: Any

    def __init__(self, port: EthernetPort) -> None:
        self._port = port
        super().__init__({"received": Out(Gmii()), "sent": In(Gmii())})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pins = rgmii_pins(platform, self._port.number)
        rx_clk, rx_data, rx_ctl = (pins[f"rx_{name}"] for name in ("clk", "data", "ctl"))
        tx_clk, tx_data, tx_ctl = (pins[f"tx_{name}"] for name in ("clk", "data", "ctl"))
        if rx_clk.io not in dict(platform.iter_port_clock_constraints()):
            platform.add_clock_constraint(rx_clk.io, LINE_HZ)
        m.submodules.rx_clk = clock = io.Buffer(io.Direction.Input, rx_clk)
        m.submodules.reset = reset = io.Buffer(io.Direction.Output, pins["rst"])
        m.d.comb += [ClockSignal("rx").eq(clock.i), reset.o.eq(0)]
        delays = {tx_clk.io: self._port.transmit_delay_ps}
        delays |= dict.fromkeys((rx_data.io, rx_ctl.io), self._port.receive_delay_ps)
        receiver = RgmiiReceiver(rx_data, rx_ctl)
        transmitter = RgmiiTransmitter(tx_data, tx_ctl, tx_clk)
        for domain, component in (("rx", receiver), ("tx", transmitter)):
            delayed = Fragment.get(component, _Delaying(platform, delays))
            m.submodules[domain] = DomainRenamer(domain)(delayed)
        wiring.connect(m, receiver.o, wiring.flipped(self.received))
        wiring.connect(m, wiring.flipped(self.sent), transmitter.i)
        return m


class _Delaying:
    """The buffers of ``platform``, with ``delays`` in picoseconds between buffers and pins."""

    def __init__(self, platform: Any, delays: dict[Any, int]) -> None:
        self._platform = platform
        self._delays = delays

    def get_io_buffer(self, buffer: Any) -> Any:
        taps = round(self._delays.get(buffer.port.io, 0) / DELAY_STEP_PS)
        return _DelayedBuffer(buffer, taps) if taps else self._platform.get_io_buffer(buffer)


class _DelayedBuffer(Elaboratable):
    """The circuit of ``buffer``, a DDR buffer of one direction, with a delay of ``taps``."""

    def __init__(self, buffer: io.DDRBuffer, taps: int) -> None:
        self._buffer: Any = buffer
        self._taps = taps

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line = self._buffer.port.io
        cells = self._input if self._buffer.direction is io.Direction.Input else self._output
        for bit in range(len(line)):
            near, far = Signal(name=f"near{bit}"), Signal(name=f"far{bit}")
            cells(m, bit, line[bit], near, far)
            m.submodules[f"delay{bit}"] = Instance(
                "DELAYG",
                p_DEL_MODE="USER_DEFINED",
                p_DEL_VALUE=self._taps,
                i_A=near,
                o_Z=far,
            )
        return m

    def _input(self, m: Module, bit: int, line: Any, near: Signal, far: Signal) -> None:
        rising, falling = self._buffer.i
        m.submodules[f"pin{bit}"] = Instance("IB", i_I=line, o_O=near)
        m.submodules[f"ddr{bit}"] = Instance(
            "IDDRX1F",
            i_SCLK=ClockSignal(),
            i_RST=Const(0),
            i_D=far,
            o_Q0=rising[bit],
            o_Q1=falling[bit],
        )

    def _output(self, m: Module, bit: int, line: Any, near: Signal, far: Signal) -> None:
        rising, falling = self._buffer.o
        m.submodules[f"ddr{bit}"] = Instance(
            "ODDRX1F",
            i_SCLK=ClockSignal(),
            i_RST=Const(0),
            i_D0=rising[bit],
            i_D1=falling[bit],
            o_Q=near,
        )
        m.submodules[f"pin{bit}"] = Instance("OB", i_I=far, o_O=line)
