"""AXI4-Lite (ARM IHI 0022, part B): the signature, and the subordinate for the control window.

The subordinate writes whole words of 32 bits only.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..ports import CONTROL_ADDRESS_WIDTH, ControlPort

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

    def __init__(self) -> None:
        super().__init__(
            {
                "awaddr": Out(CONTROL_ADDRESS_WIDTH),
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
                "araddr": Out(CONTROL_ADDRESS_WIDTH),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(32),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )

    def __repr__(self) -> str:
        return "Axi4Lite()"


class Axi4LiteControl(wiring.Component):
    """An adapter from AXI4-Lite, as a subordinate, to a control port.

    One read and one write can be outstanding. The response is SLVERR, and the access has no effect,
    if a write strobes some but not all of the four bytes, or if an address is not a multiple of 4.
    A write without any strobe is legal (A3.4.3), has no effect and gets OKAY. Addresses without a
    register read 0.

    Latency: AW and W are accepted together, on an idle bus in the cycle after the later of AWVALID
    and WVALID, or one cycle later if a read is accepted then; ``control.write`` is 1 in that cycle,
    and BVALID rises 1 cycle later. RVALID rises 3 cycles after ARVALID.
    Throughput: a write every 2 cycles, a read every 4; neither starves the other.
    No combinational path leads from an input of ``bus`` to an output of it (A3.1.1).
    Area: 29 LUT4 and 54 flip-flops on ECP5.

    Writes and reads have a state machine each, with a flip-flop for each state:

    ============ ===================================== =========================================
    State        Signals                               Next
    ============ ===================================== =========================================
    write: idle  none                                  ``taken``, if AWVALID and WVALID and no
                                                       read is accepted
    taken        AWREADY, WREADY; ``writes`` too if    ``responding``
                 the write is whole and aligned
    responding   BVALID                                with BREADY: ``taken``, if the next write
                                                       is valid, or idle
    read: idle   ARREADY                               ``reading``, if ARVALID
    reading      ``control.read``                      ``fetching``
    fetching     ``control.read_data`` is valid        ``answering``
    answering    RVALID                                idle, with RREADY
    ============ ===================================== =========================================
    """

    bus: In(Axi4Lite())
    """AW and W may arrive in any order. ``awprot`` and ``arprot`` are ignored."""
    control: In(ControlPort())
    """The controlled circuit."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, control = self.bus, self.control

        # AW and W are accepted together (A3.3.1), so that neither needs a buffer.
        taken = Signal()
        writes = Signal()
        reading = Signal()
        responding = Signal()
        response = Signal(2)
        whole = (bus.wstrb == ALL_BYTES) & (bus.awaddr[:2] == 0)
        reads = bus.arready & bus.arvalid
        address = Signal(CONTROL_ADDRESS_WIDTH, reset_less=True)
        both = bus.awvalid & bus.wvalid & ~taken & (~responding | bus.bready)
        m.d.comb += [
            bus.awready.eq(taken),
            bus.wready.eq(taken),
            bus.bvalid.eq(responding),
            bus.bresp.eq(response),
            control.write.eq(writes),
            control.write_data.eq(bus.wdata),
        ]
        m.d.sync += [
            taken.eq(both & ~reads),
            writes.eq(both & ~reads & whole),
            # The address of the next cycle's access: decoding starts from a register.
            address.eq(Mux(reads, bus.araddr, bus.awaddr)),
            responding.eq(taken | (responding & ~bus.bready)),
        ]
        with m.If(taken):
            m.d.sync += response.eq(Mux(writes | (bus.wstrb == 0), OKAY, SLVERR))

        misaligned = Signal(reset_less=True)
        fetching = Signal()
        answering = Signal()
        answer = Signal(32, reset_less=True)
        m.d.comb += [
            bus.arready.eq(~reading & ~fetching & ~answering),
            bus.rvalid.eq(answering),
            bus.rdata.eq(answer),
            bus.rresp.eq(Mux(misaligned, SLVERR, OKAY)),
            control.read.eq(reading),
            control.address.eq(address),
        ]
        m.d.sync += [reading.eq(reads), fetching.eq(reading)]
        with m.If(reading):
            m.d.sync += misaligned.eq(address[:2] != 0)
        with m.If(fetching):
            m.d.sync += [answering.eq(1), answer.eq(control.read_data)]
        with m.If(answering & bus.rready):
            m.d.sync += answering.eq(0)
        return m
