"""The registers of a stream core: what its control inputs are, and what its packets had."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Access, Bits, Register
from ..ports import ControlPort
from ..stream_configuration import PacketReduction, StreamConfiguration
from .packets import PacketControl, PacketFlags

__all__ = ["FLAG_FIELDS", "STREAM_IDENTITY", "StreamRegisters", "stream_registers"]

STREAM_IDENTITY = 0x4249_5453
"""The letters BITS, most significant byte first."""

FLAG_FIELDS = (
    Bits("REFUSED", 0, 1, "a packet of an operation that was not built or contradicts itself"),
    Bits("UNEQUAL", 1, 1, "packets of A and B of different lengths"),
    Bits("HOLES", 2, 1, "TKEEP with holes, or a packet that ends within an element"),
    Bits("EMPTY", 3, 1, "a packet without any byte"),
)
"""The flags, from the lowest bit on, as they are in TUSER of Y above the bits of A."""

_CONTROL = (
    Bits("OP", 0, 4, "the operation"),
    Bits("LANE", 4, 2, "the lane of A and B: 8 bits shifted left by it"),
    Bits("OUT_LANE", 6, 2, "the lane of counts in Y"),
    Bits("SATURATE", 8, 1, "shifts saturate"),
    Bits("ARITHMETIC", 9, 1, "shifts to the right are arithmetic"),
    Bits("TEST", 10, 1, "a count becomes 1 if it is not 0"),
    Bits("NEGATE", 11, 1, "with TEST or ANY: 1 becomes 0, and 0 becomes 1"),
    Bits("REDUCTION", 12, 2, "the result of a packet", PacketReduction),
)


def stream_registers(configuration: StreamConfiguration) -> tuple[Register, ...]:
    """Return the registers of a core with `configuration`."""
    read, both = Access.READ, Access.READ_WRITE
    op = min(configuration.ops)
    lane = min(configuration.lanes, default=0)
    control = op | lane << 4 | lane << 6
    built = sum(1 << each for each in configuration.ops)
    built |= sum(1 << each for each in configuration.lanes) << 16
    return (
        Register("IDENTITY", 0x00, read, "the letters BITS", reset=STREAM_IDENTITY),
        Register(
            "CAPABILITIES",
            0x04,
            read,
            "what the core was built with",
            (
                Bits("OPS", 0, 16, "bit `op` is 1 if the operation exists"),
                Bits("LANES", 16, 4, "bit `lane` is 1 if shifts and counts have that lane"),
                Bits("REDUCES", 20, 1, "1 if packets can be reduced"),
            ),
            built | bool(configuration.reduces) << 20,
        ),
        Register(
            "CONTROL",
            0x08,
            both,
            "the operation of the packets whose first beat A sends from now on",
            _CONTROL,
            control,
        ),
        Register(
            "FLAGS",
            0x0C,
            both,
            "what was wrong with packets of Y since it was cleared; writing 1 clears a bit",
            FLAG_FIELDS,
        ),
        Register("PACKETS", 0x10, read, "packets of Y since reset, modulo 2**32"),
    )


class StreamRegisters(wiring.Component):
    """Decodes the control window of a stream core.

    Members
    -------
    window
        Unmapped words read 0 and ignore writes.
    control
        The fields of CONTROL, from registers, from 1 cycle after the write on.
    ended
        A packet of Y ends, in this cycle.
    flags
        Its flags.
    """

    def __init__(self, configuration: StreamConfiguration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "window": Out(ControlPort()),
                "control": Out(PacketControl(configuration)),
                "ended": In(1),
                "flags": In(PacketFlags),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        window = self.window
        known = {x.name: x for x in stream_registers(self._configuration)}
        flags, packets = Signal(len(FLAG_FIELDS)), Signal(32)
        writes = {
            name: window.write & (window.address[2:] == entry.offset // 4)
            for name, entry in known.items()
        }
        control = self._control(m, known["CONTROL"], writes["CONTROL"])
        new: Any = Mux(self.ended, self.flags.as_value(), 0)
        cleared = Mux(writes["FLAGS"], window.write_data[: len(flags)], 0)
        m.d.sync += [flags.eq((flags & ~cleared) | new), packets.eq(packets + self.ended)]
        words: dict[str, Value] = {"CONTROL": control, "FLAGS": flags, "PACKETS": packets}
        with m.If(window.read):
            m.d.sync += window.read_data.eq(0)
            with m.Switch(window.address[2:]):
                for name, entry in known.items():
                    with m.Case(entry.offset // 4):
                        m.d.sync += window.read_data.eq(words.get(name, Const(entry.reset or 0)))
        return m

    def _control(self, m: Module, entry: Register, writes: Value) -> Value:
        """Hold the fields of CONTROL that were built; all others read 0. Return its word."""
        parts: list[Value] = []
        for bits in entry.bits:
            field = getattr(self.control, bits.name.lower())
            if not len(field):
                parts.append(Const(bits.extract(entry.reset or 0), bits.width))
                continue
            held = Signal(bits.width, name=bits.name.lower(), init=bits.extract(entry.reset or 0))
            with m.If(writes):
                m.d.sync += held.eq(self.window.write_data[bits.low : bits.low + bits.width])
            m.d.comb += field.eq(held)
            parts.append(held)
        return Cat(*parts)
