"""The read half of the memory: AR to R. Never touches what is written."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data

from bitlane_rtl.bus import Axi4

from ..ports import Hang, Response
from .channel import BURSTS, CLOCK_BITS, MemorySide, Passage, add_stalls
from .interface import AddressRange, ReadStorage


class ReadSide(MemorySide):
    """Answers reads from a synchronous RAM outside of the circuit.

    Parameters
    ----------
    addresses : AddressRange
        Addresses of the memory.
    channel : int
        Number of AR for its random stalls; R has the next one.

    Members
    -------
    axi : ``In(Axi4(address_width, data_width, write=False))``
        INCR bursts of whole beats.
    control : ``In(MemoryControl(address_width))``
    storage : ``Out(ReadStorage(addresses))``
        Port of the RAM, which answers in the next cycle and keeps its answer.

    Latency: the first R comes ``1 + latency`` cycles after AR, the others in the cycles after it.
    Throughput: a beat a cycle, across bursts, too; up to 256 bursts wait.
    A beat outside of the memory is answered DECERR; its data, like that of any error, is undefined.
    """

    def __init__(self, addresses: AddressRange, channel: int) -> None:
        axi = Axi4(addresses.address_width, addresses.data_width, write=False)
        super().__init__(addresses, channel, axi, ReadStorage(addresses))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, control = self.axi, self.control
        stall_ar, stall_r = add_stalls(m, control, self._channel, ("ar", "r"))

        now = Signal(CLOCK_BITS)
        m.d.sync += now.eq(now + 1)
        # Modulo 2**32: a burst may wait 2**31 cycles before it seems to be early again.
        waited = Signal(CLOCK_BITS)
        burst = data.StructLayout(
            {"word": self._addresses.index_bits, "left": 8, "due": CLOCK_BITS}
        )
        m.submodules.bursts = bursts = Passage(burst, BURSTS)
        accept = Signal()
        m.d.comb += [
            accept.eq(~stall_ar & (control.hang_read != Hang.NO_ACCEPT)),
            axi.arready.eq(bursts.i.ready & accept),
            bursts.i.valid.eq(axi.arvalid & accept),
            bursts.i.payload.word.eq(self._addresses.index(axi.araddr)),
            bursts.i.payload.left.eq(axi.arlen),
            bursts.i.payload.due.eq(now + control.latency),
        ]
        m.d.comb += waited.eq(now - bursts.o.payload.due)
        self._read(m, bursts, waited, stall_r)
        return m

    def _read(self, m: Module, bursts: Passage, waited: Signal, stall_r: Signal) -> None:
        """The beat whose turn it is: of the burst under way, else the first of the next one."""
        axi, control, addresses = self.axi, self.control, self._addresses
        active = Signal()
        next_word = Signal(addresses.index_bits)
        next_left = Signal(8)
        word = Signal(addresses.index_bits)
        left = Signal(8)
        begin = Signal()
        issue = Signal()
        head = bursts.o.payload
        m.d.comb += [
            begin.eq(bursts.o.valid & ~waited[-1] & (control.hang_read != Hang.NO_ANSWER)),
            word.eq(Mux(active, next_word, head.word)),
            left.eq(Mux(active, next_left, head.left)),
            issue.eq((active | begin) & (~axi.rvalid | axi.rready) & ~stall_r),
            bursts.o.ready.eq(issue & ~active),
            self.storage.enable.eq(issue & addresses.inside(word)),
            self.storage.address.eq(word),
            axi.rdata.eq(self.storage.data),
        ]
        with m.If(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        with m.If(issue):
            failing = control.error_read & addresses.between(
                word, control.error_first, control.error_last
            )
            m.d.sync += [
                active.eq(left != 0),
                next_word.eq(word + 1),
                next_left.eq(left - 1),
                axi.rvalid.eq(1),
                axi.rlast.eq(left == 0),
                axi.rresp.eq(Response.OKAY),
            ]
            with m.If(failing):
                m.d.sync += axi.rresp.eq(control.error_response)
            with m.If(~addresses.inside(word)):
                m.d.sync += axi.rresp.eq(Response.DECERR)
