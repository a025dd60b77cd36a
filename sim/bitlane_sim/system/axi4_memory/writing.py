"""The write half of the memory: AW and W to B. Never touches what is read."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO

from bitlane_rtl.bus import Axi4

from ..ports import Hang, Response
from .channel import BURSTS, CLOCK_BITS, MemorySide, Passage, add_stalls
from .interface import AddressRange, WriteStorage

_ANSWER = data.StructLayout({"response": 2, "due": CLOCK_BITS})
_BEATS = 512


class WriteSide(MemorySide):
    """Carries out writes in a synchronous RAM outside of the circuit.

    Parameters
    ----------
    addresses : AddressRange
        Addresses of the memory.
    channel : int
        Number of AW for its random stalls; W and B have the next ones.

    Members
    -------
    axi : ``In(Axi4(address_width, data_width, read=False))``
        INCR bursts of whole beats. Data may come before its address; up to 512 beats then wait.
    control : ``In(MemoryControl(address_width))``
    storage : ``Out(WriteStorage(addresses))``
        Port of the RAM. A beat is written in the cycle of the later of its W and AW.

    Latency: B comes ``1 + latency`` cycles after the last beat was written.
    Throughput: a beat a cycle, across bursts, too; up to 256 bursts wait.
    A beat outside of the memory is not written, and its burst is answered DECERR.
    """

    def __init__(self, addresses: AddressRange, channel: int) -> None:
        axi = Axi4(addresses.address_width, addresses.data_width, read=False)
        super().__init__(addresses, channel, axi, WriteStorage(addresses))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stall_aw, stall_w, stall_b = add_stalls(m, self.control, self._channel, ("aw", "w", "b"))
        bursts, beats = self._accept(m, stall_aw, stall_w)
        now = Signal(CLOCK_BITS)
        m.d.sync += now.eq(now + 1)
        m.submodules.answers = answers = SyncFIFO(width=_ANSWER.size, depth=BURSTS)
        self._write(m, bursts, beats, answers, now)
        self._answer(m, answers, now, stall_b)
        return m

    def _accept(self, m: Module, stall_aw: Signal, stall_w: Signal) -> tuple[Passage, Passage]:
        """Addresses and beats as they come, each in its own order."""
        axi, control, addresses = self.axi, self.control, self._addresses
        burst = data.StructLayout({"word": addresses.index_bits, "left": 8})
        beat = data.StructLayout({"data": addresses.data_width, "mask": addresses.data_width // 8})
        m.submodules.bursts = bursts = Passage(burst, BURSTS)
        m.submodules.beats = beats = Passage(beat, _BEATS)
        accept_aw = Signal()
        accept_w = Signal()
        m.d.comb += [
            accept_aw.eq(~stall_aw & (control.hang_write != Hang.NO_ACCEPT)),
            accept_w.eq(~stall_w & (control.hang_write != Hang.NO_ACCEPT)),
            axi.awready.eq(bursts.i.ready & accept_aw),
            axi.wready.eq(beats.i.ready & accept_w),
            bursts.i.valid.eq(axi.awvalid & accept_aw),
            bursts.i.payload.word.eq(addresses.index(axi.awaddr)),
            bursts.i.payload.left.eq(axi.awlen),
            beats.i.valid.eq(axi.wvalid & accept_w),
            beats.i.payload.data.eq(axi.wdata),
            beats.i.payload.mask.eq(axi.wstrb),
        ]
        return bursts, beats

    def _write(
        self, m: Module, bursts: Passage, beats: Passage, answers: SyncFIFO, now: Signal
    ) -> None:
        """A beat meets its address: of the burst under way, else of the next one."""
        control, addresses = self.control, self._addresses
        push = data.View(_ANSWER, answers.w_data)
        active = Signal()
        next_word = Signal(addresses.index_bits)
        next_left = Signal(8)
        worst = Signal(2)
        word = Signal(addresses.index_bits)
        left = Signal(8)
        commit = Signal()
        response = Signal(2)
        failing = Signal()
        m.d.comb += [
            word.eq(Mux(active, next_word, bursts.o.payload.word)),
            left.eq(Mux(active, next_left, bursts.o.payload.left)),
            commit.eq(beats.o.valid & (active | bursts.o.valid) & answers.w_rdy),
            beats.o.ready.eq((active | bursts.o.valid) & answers.w_rdy),
            bursts.o.ready.eq(beats.o.valid & ~active & answers.w_rdy),
            failing.eq(
                control.error_write
                & addresses.between(word, control.error_first, control.error_last)
            ),
            response.eq(Mux(active, worst, Response.OKAY)),
            self.storage.enable.eq(commit & addresses.inside(word) & ~failing),
            self.storage.address.eq(word),
            self.storage.data.eq(beats.o.payload.data),
            self.storage.mask.eq(beats.o.payload.mask),
            push.response.eq(response),
            push.due.eq(now + control.latency),
            answers.w_en.eq(commit & (left == 0)),
        ]
        with m.If(failing):
            m.d.comb += response.eq(control.error_response)
        with m.If(~addresses.inside(word)):
            m.d.comb += response.eq(Response.DECERR)
        with m.If(commit):
            m.d.sync += [
                active.eq(left != 0),
                next_word.eq(word + 1),
                next_left.eq(left - 1),
                worst.eq(response),
            ]

    def _answer(self, m: Module, answers: SyncFIFO, now: Signal, stall_b: Signal) -> None:
        """Answers in order, each when it is due."""
        axi, control = self.axi, self.control
        oldest = data.View(_ANSWER, answers.r_data)
        # Modulo 2**32: an answer may wait 2**31 cycles before it seems to be early again.
        early = Signal(CLOCK_BITS)
        # An answer that has been offered stays, whatever the stalls say.
        offered = Signal()
        hold = Signal()
        m.d.comb += [
            hold.eq(stall_b | (control.hang_write == Hang.NO_ANSWER)),
            early.eq(oldest.due - now),
            axi.bvalid.eq(answers.r_rdy & early[-1] & (offered | ~hold)),
            axi.bresp.eq(oldest.response),
            answers.r_en.eq(axi.bvalid & axi.bready),
        ]
        m.d.sync += offered.eq(axi.bvalid & ~axi.bready)
