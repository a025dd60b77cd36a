"""Moves the words of requests to and from beats of the memory's ports. It aligns nothing."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import BEATS_PER_BLOCK, FRAME_DATA_BYTES, WORD_BYTES
from ..addresses import Splitter
from ..configuration import Configuration
from ..ports import ReadPort, WritePort
from ..primitives import step
from ..streams import Fifo
from .words import DataTransfer

__all__ = ["DataMover"]

_WORD_BITS = exact_log2(WORD_BYTES)


class DataMover(wiring.Component):
    """Reads the data of a READ in bursts, or writes those of a WRITE.

    All bursts of a transfer are requested as fast as the memory accepts them; the buffer holds all
    beats of a READ. Errors of the memory are not reported: a READ returns the data of its beats,
    and a WRITE is answered as if it had been executed.

    Parameters
    ----------
    configuration
        Its widths are those of the ports.

    Members
    -------
    transfer
        The transfer to execute.
    read
        ``data.ready`` is always 1.
    write
        ``response.ready`` is always 1.

    Latency: the first burst is requested in the cycle after ``transfer.start``. A READ's first word
    is valid 3 cycles after its first beat. ``done`` is 1 in the cycle after the last response.
    Throughput: a word a cycle.
    Area (data width 32): 73 LUT4, 37 CCU2C, 152 flip-flops and a block RAM on ECP5.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._beat_low = configuration.data_bytes_log2
        width, data_width = configuration.address_width, configuration.data_width
        self._words = data_width // 32  # of a beat
        # Data that are not aligned to beats take one beat more.
        self._depth = 2 * FRAME_DATA_BYTES // (data_width // 8)
        self._buffer = Fifo(data_width, self._depth, block_ram=True, credit=True)
        self._splitter = Splitter(configuration, 0)
        super().__init__(
            {
                "transfer": In(DataTransfer(width)),
                "read": Out(ReadPort(width, data_width)),
                "write": Out(WritePort(width, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        transfer = self.transfer
        lane = Signal(range(self._words), reset_less=True)  # of the word in its beat
        written = transfer.words.valid & transfer.words.ready
        given = transfer.read.valid & transfer.read.ready
        with m.If(transfer.start):
            m.d.sync += lane.eq(transfer.address[_WORD_BITS : self._beat_low])
        with m.Elif(written | given):
            m.d.sync += lane.eq(lane + 1)
        is_last_lane = lane == self._words - 1
        self._request(m)
        self._write(m, written, lane, is_last_lane)
        self._read(m, given, lane, is_last_lane)
        return m

    def _request(self, m: Module) -> None:
        """Request the bursts. A transfer is done if all are requested and, of a WRITE, answered."""
        transfer, reads, writes = self.transfer, self.read.request, self.write.request
        m.submodules.splitter = splitter = self._splitter
        burst = splitter.o
        m.d.comb += [
            splitter.i.valid.eq(transfer.start),
            splitter.i.p.address.eq(transfer.address),
            splitter.i.p.extent.eq(transfer.size_less_1),
            reads.valid.eq(burst.valid & ~transfer.write),
            writes.valid.eq(burst.valid & transfer.write),
            burst.ready.eq(Mux(transfer.write, writes.ready, reads.ready)),
            self.write.response.ready.eq(1),
        ]
        for request in (reads, writes):
            m.d.comb += [
                request.p.address.eq(burst.p.address),
                request.p.length.eq(burst.p.length),
            ]
        unanswered = Signal(range(self._depth // BEATS_PER_BLOCK))
        step(m, unanswered, writes.valid & writes.ready, self.write.response.valid)
        m.d.comb += transfer.done.eq(~burst.valid & (unanswered == 0))

    def _write(self, m: Module, written: Value, lane: Signal, is_last_lane: Value) -> None:
        """Output beats of the words."""
        port, words = self.write.data, self.transfer.words
        number = Signal(exact_log2(BEATS_PER_BLOCK), reset_less=True)  # of the beat in its block
        last = Signal(reset_less=True)
        full = Signal()
        m.d.comb += [
            words.ready.eq(~full | port.ready),
            port.valid.eq(full),
            port.p.last.eq(last | number.all()),
        ]
        with m.If(full & port.ready):
            m.d.sync += [full.eq(0), port.p.strobe.eq(0), number.eq(number + 1)]
        with m.If(self.transfer.start):
            m.d.sync += number.eq(self.transfer.address[self._beat_low :])
        with m.If(written):
            m.d.sync += [full.eq(is_last_lane | words.p.last), last.eq(words.p.last)]
            for each in range(self._words):
                with m.If(lane == each):
                    m.d.sync += [
                        port.p.data.word_select(each, 32).eq(words.p.data),
                        port.p.strobe.word_select(each, WORD_BYTES).eq(words.p.strobe),
                    ]

    def _read(self, m: Module, given: Value, lane: Signal, is_last_lane: Value) -> None:
        """Output the words of the beats that are read."""
        beats, words = self.read.data, self.transfer.read
        m.submodules.buffer = buffer = self._buffer
        beat = Signal(len(beats.p.data), reset_less=True)
        loaded = Signal()
        leaves = given & is_last_lane
        m.d.comb += [
            beats.ready.eq(1),
            buffer.i.valid.eq(beats.valid),
            buffer.i.payload.eq(beats.p.data),
            buffer.o.ready.eq(~loaded | leaves),
            words.valid.eq(loaded),
            words.payload.eq(beat.word_select(lane, 32)),
        ]
        # A block RAM takes 5.8 ns to output a beat, and so nothing but a register follows it.
        with m.If(~loaded | leaves):
            m.d.sync += [loaded.eq(buffer.o.valid), beat.eq(buffer.o.payload)]
        # A transfer may end before its last beat does.
        with m.If(self.transfer.start):
            m.d.sync += loaded.eq(0)
