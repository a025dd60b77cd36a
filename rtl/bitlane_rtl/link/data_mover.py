"""Moves the data of requests between words of datagrams and beats of the memory's ports."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import BEATS_PER_BLOCK, WORD_BYTES
from ..abi.frames import FRAME_DATA_BYTES
from ..addresses.bursts import Splitter
from ..configuration import Configuration
from ..ethernet.word_aligner import WordAligner
from ..ports.signatures import ReadPort, WritePort
from ..primitives import one_hot_fsm, step
from ..serial.executor import DataTransfer
from ..streams.fifo import Fifo

__all__ = ["AnswerWord", "DataMover"]

_WORD_BITS = exact_log2(WORD_BYTES)


class AnswerWord(data.Struct):
    """A word of the data of an answer; ``last``: the answer ends with it."""

    data: 32
    last: 1


class _State(data.Struct):
    """The states of `DataMover`, one hot."""

    idle: 1 = 1
    move: 1
    drain: 1


class DataMover(wiring.Component):
    """Reads the data of a READ in bursts, or writes those of a WRITE, from and to any byte.

    =====  ====================================================================  ===================
    State  What happens                                                          Next
    =====  ====================================================================  ===================
    idle   a transfer is loaded                                                  move
    move   words are aligned                                                     drain after the
                                                                                 last one
    drain  the last word or beat is accepted, and the last response arrives      idle
    =====  ====================================================================  ===================

    All bursts of a transfer are requested as fast as the memory accepts them; the buffer holds all
    beats of a READ. Errors of the memory are not reported: a READ returns the data of its beats,
    and a WRITE is answered as if it had been executed.

    Parameters
    ----------
    configuration
        Its widths are those of the ports.

    Members
    -------
    transfer : ``In(DataTransfer(address_width))``
    i : ``In(stream.Signature(32))``
        The data of a WRITE.
    o : ``Out(stream.Signature(AnswerWord))``
        The data of a READ. The bytes behind them are 0.
    read : ``Out(ReadPort(address_width, data_width))``
        ``data.ready`` is always 1.
    write : ``Out(WritePort(address_width, data_width))``
        ``response.ready`` is always 1.

    Latency: the first burst is requested in cycle 1, with ``transfer.valid`` from cycle 0 on. A
    READ's first word is valid 4 cycles after its first beat. ``done`` is 1 a cycle after the last
    response, or the transfer of the last word.
    Throughput: a word a cycle. With a memory that answers after ``n`` cycles, a READ of ``w`` words
    takes ``n + 5 + w`` cycles from ``valid`` to ``done``, one more if it is misaligned, and a WRITE
    ``n + 2 + w``.
    Area (8 MiB, data width 64): 391 LUT4, 49 CCU2C, 271 flip-flops and 2 block RAMs on ECP5; 318
    LUT4 at a data width of 32. The RAM's output bounds its clock.
    """

    transfer: Any
    i: Any
    o: Any
    read: Any
    write: Any

    def __init__(self, configuration: Configuration) -> None:
        self._beat_low = configuration.data_bytes_log2
        width, data_width = configuration.address_width, configuration.data_width
        # Data that are not aligned to beats take one beat more.
        self._depth = 2 * FRAME_DATA_BYTES // (data_width // 8)
        self._buffer = Fifo(data_width, self._depth, block_ram=True, credit=True)
        self._aligner = WordAligner()
        self._splitter = Splitter(configuration, 0)
        super().__init__(
            {
                "transfer": In(DataTransfer(width)),
                "i": In(stream.Signature(32)),
                "o": Out(stream.Signature(AnswerWord)),
                "read": Out(ReadPort(width, data_width)),
                "write": Out(WritePort(width, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.aligner = aligner = self._aligner
        state: Any = Signal(_State)
        transfer = self.transfer
        m.d.comb += [
            aligner.enable.eq(state.move),
            aligner.outward.eq(transfer.write),
            aligner.drop.eq(~transfer.execute),
            aligner.offset.eq(transfer.address),
            aligner.size_less_1.eq(transfer.size_less_1),
        ]
        # Word of the beat that is read or written.
        lane = Signal(range(len(self.read.data.p.data) // 32), reset_less=True)
        takes = aligner.i.valid & aligner.i.ready
        outputs = aligner.o.valid & aligner.o.ready
        with m.If(state.idle):
            m.d.sync += lane.eq(transfer.address[_WORD_BITS : self._beat_low])
        with m.Elif(Mux(transfer.write, outputs, takes)):
            m.d.sync += lane.eq(lane + 1)
        answered = self._request(m, state.idle & transfer.valid)
        self._input(m, state, lane)
        full = self._output(m, state, lane)
        m.d.comb += transfer.done.eq(state.drain & answered & ~full)
        one_hot_fsm(
            m,
            state,
            {
                "idle": [(transfer.valid, "move")],
                "move": [(aligner.done, "drain")],
                "drain": [(transfer.done, "idle")],
            },
        )
        return m

    def _request(self, m: Module, start: Value) -> Value:
        """Request the bursts. Return whether all are requested and, of a WRITE, answered."""
        transfer, reads, writes = self.transfer, self.read.request, self.write.request
        m.submodules.splitter = splitter = self._splitter
        burst = splitter.o
        m.d.comb += [
            splitter.i.valid.eq(start & (~transfer.write | transfer.execute)),
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
        return ~burst.valid & (unanswered == 0)

    def _input(self, m: Module, state: Any, lane: Signal) -> None:
        """Give the aligner the words of a WRITE, or those of the beats that are read."""
        m.submodules.buffer = buffer = self._buffer
        write, aligner = self.transfer.write, self._aligner
        beat = Signal(len(self.read.data.p.data), reset_less=True)
        loaded, leaves = Signal(), Signal()
        m.d.comb += [
            leaves.eq(state.drain | (aligner.i.ready & self._is_last(lane))),
            self.read.data.ready.eq(1),
            buffer.i.valid.eq(self.read.data.valid),
            buffer.i.payload.eq(self.read.data.p.data),
            buffer.o.ready.eq(~loaded | leaves),
            aligner.i.valid.eq(Mux(write, self.i.valid, loaded)),
            aligner.i.payload.eq(Mux(write, self.i.payload, beat.word_select(lane, 32))),
            self.i.ready.eq(aligner.i.ready & write),
        ]
        # A block RAM takes 5.8 ns to output a beat, and so nothing but a register follows it.
        with m.If(~loaded | leaves):
            m.d.sync += [loaded.eq(buffer.o.valid), beat.eq(buffer.o.payload)]

    def _output(self, m: Module, state: Any, lane: Signal) -> Signal:
        """Output the aligner's words, or beats of them. Return whether one waits to be accepted."""
        write, word = self.transfer.write, self._aligner.o
        port, answer = self.write.data, self.o
        beat = Signal(len(port.p.data), reset_less=True)
        strobe = Signal(len(port.p.strobe))
        number = Signal(exact_log2(BEATS_PER_BLOCK), reset_less=True)  # of the beat in its block
        full, last = Signal(), Signal(reset_less=True)
        leaves = full & Mux(write, port.ready, answer.ready)
        m.d.comb += [
            word.ready.eq(~full | leaves),
            port.valid.eq(full & write),
            port.p.data.eq(beat),
            port.p.strobe.eq(strobe),
            port.p.last.eq(last | number.all()),
            answer.valid.eq(full & ~write),
            answer.p.data.eq(beat),
            answer.p.last.eq(last),
        ]
        with m.If(leaves):
            m.d.sync += [full.eq(0), strobe.eq(0), number.eq(number + 1)]
        with m.If(state.idle):
            m.d.sync += number.eq(self.transfer.address[self._beat_low :])
        with m.If(word.valid & word.ready):
            m.d.sync += [full.eq(~write | word.p.last | self._is_last(lane)), last.eq(word.p.last)]
            for place in range(len(beat) // 32):
                # A word that is read leaves in the first lane.
                with m.If((lane == place) | (~write if place == 0 else 0)):
                    m.d.sync += [
                        beat.word_select(place, 32).eq(word.p.data),
                        strobe.word_select(place, WORD_BYTES).eq(word.p.strobe),
                    ]
        return full

    def _is_last(self, lane: Signal) -> Value:
        return lane == len(self.read.data.p.data) // 32 - 1
