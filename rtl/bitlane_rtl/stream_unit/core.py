"""The stream unit with AXI4-Stream buses, for other systems. It consists of wires only."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..bus import Axi4Lite, Axi4LiteControl, Axi4Stream
from ..stream_configuration import StreamConfiguration
from .registers import FLAG_FIELDS, StreamRegisters
from .unit import StreamUnit

__all__ = ["StreamCore"]


class StreamCore(wiring.Component):
    """A `StreamUnit` between AXI4-Stream buses, controlled by inputs or by registers.

    Parameters
    ----------
    configuration : StreamConfiguration
    registers : bool
        Whether an AXI4-Lite window takes the place of the control inputs.

    Members
    -------
    s_axis_a
        Packets of A.
    s_axis_b
        Only if an operation has two operands.
    m_axis_y
        TUSER has that of A, and above it the flags, see `PacketFlags`.
    control
        The control inputs on which something depends, see `PacketControl`; without ``registers``.
    s_axil
        The registers, see `stream_registers`; only with ``registers``.

    Latency and throughput: those of `StreamUnit`. No combinational path leads from an input to an
    output.
    """

    def __init__(self, configuration: StreamConfiguration, *, registers: bool = False) -> None:
        self.configuration = configuration
        self._registers = registers
        self._unit = StreamUnit(configuration)
        width, user = configuration.data_width, configuration.user_width
        inputs = {name: In(bits) for name, bits in configuration.control.items() if bits}
        controlled: dict[str, Any] = {}
        if registers:
            controlled = {"s_axil": In(Axi4Lite())}
        elif inputs:
            controlled = {"control": Out(wiring.Signature(inputs))}
        super().__init__(
            {
                "s_axis_a": In(Axi4Stream(width, user)),
                **({"s_axis_b": In(Axi4Stream(width))} if configuration.has_b else {}),
                "m_axis_y": Out(Axi4Stream(width, user + len(FLAG_FIELDS))),
                **controlled,
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a beat to its result, see `StreamUnit`."""
        return self._unit.latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.configuration
        m.submodules.unit = unit = self._unit
        buses = {"a": self.s_axis_a, **({"b": self.s_axis_b} if config.has_b else {})}
        for name, bus in buses.items():
            to: Any = getattr(unit, name)
            m.d.comb += [
                to.valid.eq(bus.tvalid),
                to.p.data.eq(bus.tdata),
                to.p.keep.eq(bus.tkeep),
                to.p.last.eq(bus.tlast),
                bus.tready.eq(to.ready),
            ]
        if config.user_width:
            m.d.comb += unit.a.p.user.eq(self.s_axis_a.tuser)
        y, result = self.m_axis_y, unit.y.p
        m.d.comb += [
            y.tvalid.eq(unit.y.valid),
            y.tdata.eq(result.data),
            y.tkeep.eq(result.keep),
            y.tlast.eq(result.last),
            y.tuser.eq(Cat(result.user, result.flags.as_value())),
            unit.y.ready.eq(y.tready),
        ]
        if self._registers:
            self._control(m, unit)
        else:
            m.d.comb += [
                getattr(unit.control, name).eq(getattr(self.control, name))
                for name, bits in config.control.items()
                if bits
            ]
        return m

    def _control(self, m: Module, unit: StreamUnit) -> None:
        """Put the registers between the bus and the control inputs of ``unit``."""
        m.submodules.lite = lite = Axi4LiteControl()
        m.submodules.registers = registers = StreamRegisters(self.configuration)
        wiring.connect(m, wiring.flipped(self.s_axil), lite.bus)
        wiring.connect(m, lite.control, registers.window)
        ended: Value = unit.y.valid & unit.y.ready & unit.y.p.last
        held_ended, held_flags = Signal(), Signal(len(FLAG_FIELDS), reset_less=True)
        # Registers, so that TREADY of Y does not reach the counter.
        m.d.sync += [held_ended.eq(ended), held_flags.eq(unit.y.p.flags.as_value())]
        m.d.comb += [
            unit.control.eq(registers.control),
            registers.ended.eq(held_ended),
            registers.flags.eq(held_flags),
        ]
