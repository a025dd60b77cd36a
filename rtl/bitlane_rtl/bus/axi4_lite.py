"""AXI4-Lite (ARM IHI 0022, part B): the signature, and the subordinate that is the control window.

The subordinate never writes a part of a word: a register's value is 32 bits or it is not changed.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..control_port import CONTROL_ADDRESS_WIDTH, ControlPort

__all__ = ["OKAY", "SLVERR", "Axi4Lite", "Axi4LiteControl"]

OKAY = 0b00
SLVERR = 0b10

ALL_BYTES = 0b1111


class Axi4Lite(wiring.Signature):
    """Signature of an AXI4-Lite bus with 32-bit data, seen from the manager.

    Members
    -------
    The signals of AXI4-Lite in lower case, without a prefix: ``awaddr``, ``awprot`` and so on.
    """

    def __init__(self, address_width: int = CONTROL_ADDRESS_WIDTH) -> None:
        super().__init__(
            {
                "awaddr": Out(address_width),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(32),
                "wstrb": Out(4),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(address_width),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(32),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class Axi4LiteControl(wiring.Component):
    """An AXI4-Lite subordinate that reads and writes through a control port.

    Members
    -------
    bus : ``In(Axi4Lite())``
        AW and W may come in any order. ``awprot`` and ``arprot`` are ignored.
    control : ``In(ControlPort())``
        The circuit that is controlled.

    Each way one transaction is open at a time. A write that does not strobe all four bytes, and an
    access whose address is no multiple of 4, is answered SLVERR and has no effect; a write without
    any strobe asks for nothing (A3.4.3) and is answered OKAY. Every address has a register, or
    reads 0.

    Latency: on an idle bus ``control.write`` is 1 in the cycle that has the later of AWVALID and
    WVALID, and BVALID comes 1 cycle later; both come a cycle later if ARVALID was in the cycle
    before. RVALID comes 3 cycles after ARVALID.
    Throughput: a write every 2 cycles, a read every 4; neither starves the other.
    No combinational path leads from an input of ``bus`` to an output of it (A3.1.1).
    Area: 85 LUT4 and 103 flip-flops on ECP5.
    """

    bus: Any
    control: Any

    def __init__(self) -> None:
        super().__init__({"bus": In(Axi4Lite()), "control": In(ControlPort())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, control = self.bus, self.control

        # A write waits in these registers for its other half.
        held_address = Signal(CONTROL_ADDRESS_WIDTH, reset_less=True)
        held_data = Signal(32, reset_less=True)
        held_strobe = Signal(4, reset_less=True)
        address_held = Signal()
        data_held = Signal()
        asked = Signal()  # a read has the port
        responding = Signal()
        response = Signal(2)

        address = Signal(CONTROL_ADDRESS_WIDTH)
        strobe = Signal(4)
        write = Signal()
        m.d.comb += [
            bus.awready.eq(~address_held & ~responding),
            bus.wready.eq(~data_held & ~responding),
            bus.bvalid.eq(responding),
            bus.bresp.eq(response),
            address.eq(Mux(address_held, held_address, bus.awaddr)),
            strobe.eq(Mux(data_held, held_strobe, bus.wstrb)),
            write.eq(
                (address_held | bus.awvalid) & (data_held | bus.wvalid) & ~responding & ~asked
            ),
            control.write.eq(write & (strobe == ALL_BYTES) & (address[:2] == 0)),
            control.write_data.eq(Mux(data_held, held_data, bus.wdata)),
        ]
        with m.If(~address_held):
            m.d.sync += held_address.eq(bus.awaddr)
        with m.If(~data_held):
            m.d.sync += [held_data.eq(bus.wdata), held_strobe.eq(bus.wstrb)]
        with m.If(responding):
            m.d.sync += responding.eq(~bus.bready)
        with m.Elif(write):
            whole = (strobe == ALL_BYTES) & (address[:2] == 0)
            m.d.sync += [
                address_held.eq(0),
                data_held.eq(0),
                responding.eq(1),
                response.eq(Mux(whole | (strobe == 0), OKAY, SLVERR)),
            ]
        with m.Else():
            m.d.sync += [
                address_held.eq(address_held | bus.awvalid),
                data_held.eq(data_held | bus.wvalid),
            ]

        # A read goes asked -> fetching (the word comes from the port) -> answering.
        read_address = Signal(CONTROL_ADDRESS_WIDTH, reset_less=True)
        fetching = Signal()
        answering = Signal()
        answer = Signal(32, reset_less=True)
        m.d.comb += [
            bus.arready.eq(~asked & ~fetching & ~answering),
            bus.rvalid.eq(answering),
            bus.rdata.eq(answer),
            bus.rresp.eq(Mux(read_address[:2] == 0, OKAY, SLVERR)),
            control.read.eq(asked),
            control.address.eq(Mux(asked, read_address, address)),
        ]
        m.d.sync += [asked.eq(bus.arready & bus.arvalid), fetching.eq(asked)]
        with m.If(bus.arready):
            m.d.sync += read_address.eq(bus.araddr)
        with m.If(fetching):
            m.d.sync += [answering.eq(1), answer.eq(control.read_data)]
        with m.If(answering & bus.rready):
            m.d.sync += answering.eq(0)
        return m
