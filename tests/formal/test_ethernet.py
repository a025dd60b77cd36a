"""The MAC and the FIFOs of packets obey their rules for all time, whatever the line sends."""

import pytest
from amaranth.hdl import Assert, DomainRenamer, Module, Mux, Signal
from amaranth.lib import wiring

from bitlane_rtl.ethernet.board_addresses import BoardAddresses
from bitlane_rtl.ethernet.frame_parser import FrameParser
from bitlane_rtl.ethernet.gmii import GAP_BYTES, PREAMBLE, START_OF_FRAME
from bitlane_rtl.ethernet.mac_receiver import MacReceiver
from bitlane_rtl.ethernet.mac_transmitter import MacTransmitter
from bitlane_rtl.ethernet.packet_fifo import PacketFifo
from support.formal.contract import Contract, before, taken
from support.formal.proof import Bug, Proof
from support.formal.prover import Bounded, Induction, Method, Reached

pytestmark = pytest.mark.slow


class FrameEnds(Contract):
    """A frame ends as soon as its bytes do, and is good only without errors, and long enough."""

    def claim(self, m: Module) -> None:
        m.submodules.receiver = receiver = MacReceiver()
        line, out = receiver.i, receiver.o
        m.d.comb += [
            line.valid.eq(self.anything(1, "valid")),
            line.error.eq(self.anything(1, "error")),
            line.data.eq(self.anything(8, "data")),
        ]
        begun, damaged, length = Signal(), Signal(), Signal(11)
        arrived, error = before(m, line.valid, init=1), before(m, line.error)
        with m.If(out.end):
            m.d.sync += [begun.eq(0), damaged.eq(0), length.eq(0)]
        with m.Elif(out.valid):
            m.d.sync += [begun.eq(1), damaged.eq(damaged | error), length.eq(length + 1)]
        m.d.comb += [
            Assert(~(out.valid & out.end)),
            Assert(~out.valid | arrived),
            # The last byte was the one before.
            Assert(~(begun & ~arrived) | out.end),
            Assert(length <= 1518),
        ]
        with m.If(out.end & out.good):
            m.d.comb += [Assert(~damaged), Assert(length >= 64), Assert(~arrived)]

        # What the receiver remembers of the frame, for induction.
        in_frame = self.inside(1, "receiver.in_frame")
        with m.If(in_frame):
            m.d.comb += [
                Assert(self.inside(11, "receiver.length") == length),
                Assert(self.inside(1, "receiver.enough") == (length >= 64)),
                Assert(self.inside(1, "receiver.damaged") == damaged),
                Assert(self.inside(1, "receiver.full") == (length == 1518)),
            ]
        with m.Else():
            m.d.comb += [Assert(length == 0), Assert(~damaged), Assert(~begun)]


class GapIsKept(Contract):
    """A frame begins after the gap, with the preamble, and has at least the least length."""

    def claim(self, m: Module) -> None:
        m.submodules.transmitter = transmitter = MacTransmitter()
        out = transmitter.o
        self.offers(m, transmitter.i)
        idle, position = Signal(range(GAP_BYTES + 1)), Signal(range(73))
        with m.If(out.valid):
            m.d.sync += [idle.eq(0), position.eq(position + (position != 72))]
            m.d.comb += Assert((position != 0) | (idle == GAP_BYTES))
            with m.If(position < 8):
                expected = Mux(position == 7, START_OF_FRAME, PREAMBLE)
                m.d.comb += [Assert(out.data == expected), Assert(~out.error)]
        with m.Else():
            m.d.sync += [idle.eq(idle + (idle != GAP_BYTES)), position.eq(0)]
            m.d.comb += Assert((position == 0) | (position == 72))


class TransmitterGoesOn(Contract):
    """While words are valid, the transmitter takes one at least every 100 cycles."""

    def claim(self, m: Module) -> None:
        m.submodules.transmitter = transmitter = MacTransmitter()
        self.offers(m, transmitter.i)
        waits = Signal(range(101))
        m.d.sync += waits.eq(Mux(transmitter.i.valid & ~transmitter.i.ready, waits + 1, 0))
        m.d.comb += Assert(waits < 100)


class ParserGoesOn(Contract):
    """After any bytes, the parser is ready for the next frame; it commits good frames alone."""

    def __init__(self, *, room: bool = True) -> None:
        super().__init__()
        self._room = room

    def claim(self, m: Module) -> None:
        m.submodules.receiver = receiver = MacReceiver()
        m.submodules.parser = parser = FrameParser(BoardAddresses())
        wiring.connect(m, receiver.o, parser.i)
        line, out = receiver.i, parser.o
        m.d.comb += [
            line.valid.eq(self.anything(1, "valid")),
            line.error.eq(self.anything(1, "error")),
            line.data.eq(self.anything(8, "data")),
            out.room.eq(self.anything(1, "room") if self._room else 0),
        ]
        idle = Signal(range(9))
        m.d.sync += idle.eq(Mux(line.valid, 0, idle + (idle != 8)))
        decided = receiver.o.end & receiver.o.good
        for _ in range(3):
            decided = before(m, decided)
        m.d.comb += Assert(~out.commit | decided)
        with m.If(idle == 8):
            m.d.comb += [Assert(~out.write), Assert(~out.commit), Assert(out.words == 1)]
        if not self._room:
            m.d.comb += [Assert(~out.write), Assert(~out.commit)]


class WithoutRoom(ParserGoesOn):
    """Without room, the parser writes and commits nothing."""

    def __init__(self) -> None:
        super().__init__(room=False)


class PacketsAreWhole(Contract):
    """A word of a committed packet leaves in its turn; nothing leaves that is not committed.

    Both sides have one clock here: what two clocks add is simulated.
    """

    def claim(self, m: Module) -> None:
        depth, longest = 8, 4
        fifo = PacketFifo(1, depth, longest)
        m.submodules.fifo = DomainRenamer({"write": "sync", "read": "sync"})(fifo)
        writer = fifo.i
        self.takes(m, fifo.o)
        late = before(m, writer.commit)
        allowed = writer.room & ~late & ~before(m, late)
        commit, words = self.anything(1, "commit"), self.anything(2, "words")
        written, offset = self.anything(1, "written"), self.anything(2, "offset")
        m.d.comb += [
            writer.write.eq(written & allowed),
            writer.offset.eq(offset),
            writer.word.eq(self.anything(1, "word")),
            writer.commit.eq(commit & allowed & (words != 0)),
            writer.words.eq(words),
        ]
        held = Signal(range(depth + 1))
        m.d.sync += held.eq(held + Mux(writer.commit, words, 0) - taken(fifo.o))
        m.d.comb += Assert((held != 0) | ~fifo.o.valid)

        # One word of the packet that is written, and its turn once the packet is committed.
        place = self.something(m, 2, "place")
        known, value = Signal(), Signal()
        follows, ahead, followed = Signal(), Signal.like(held), Signal()
        hits = writer.write & (offset == place)
        with m.If(hits):
            m.d.sync += [known.eq(1), value.eq(writer.word)]
        with m.If(writer.commit):
            m.d.sync += known.eq(0)
        starts = writer.commit & (place < words) & (known | hits) & ~follows
        with m.If(starts & self.anything(1, "follow_this")):
            m.d.sync += [
                follows.eq(1),
                ahead.eq(held - taken(fifo.o) + place),
                followed.eq(Mux(hits, writer.word, value)),
            ]
        with m.Elif(follows & taken(fifo.o)):
            m.d.sync += [follows.eq(ahead != 0), ahead.eq(ahead - 1)]
        with m.If(follows & (ahead == 0) & fifo.o.valid):
            m.d.comb += Assert(fifo.o.payload == followed)

        waits = Signal(5)
        m.d.sync += waits.eq(Mux((held != 0) & ~fifo.o.valid, waits + 1, 0))
        m.d.comb += Assert(waits < 16)


CONTRACTS: dict[type[Contract], Method] = {
    FrameEnds: Induction(2),
    GapIsKept: Reached,
    TransmitterGoesOn: Reached,
    ParserGoesOn: Reached,
    WithoutRoom: Reached,
    PacketsAreWhole: Bounded(14),
}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_contract(contract: type[Contract], proof: Proof) -> None:
    proof.holds(contract(), CONTRACTS[contract])


RECEIVER, TRANSMITTER, FIFO = "mac_receiver", "mac_transmitter", "packet_fifo"
PARSER = "frame_parser"
BUGS: dict[str, tuple[type[Contract], str, str, str, int]] = {
    "a damaged byte is forgotten": (
        FrameEnds,
        RECEIVER,
        "damaged.eq(damaged | error)",
        "damaged.eq(error)",
        20,
    ),
    "a frame goes on without bytes": (
        FrameEnds,
        RECEIVER,
        "self.o.end.eq(in_frame & (~valid | full))",
        "self.o.end.eq(in_frame & full)",
        20,
    ),
    "a frame begins in the gap": (
        GapIsKept,
        TRANSMITTER,
        "with m.If(expired & self.i.valid):",
        "with m.If(self.i.valid):",
        20,
    ),
    "a preamble that is too short": (
        GapIsKept,
        TRANSMITTER,
        "m.d.sync += count.eq(PREAMBLE_BYTES)",
        "m.d.sync += count.eq(PREAMBLE_BYTES - 1)",
        40,
    ),
    "a packet is never begun": (
        TransmitterGoesOn,
        TRANSMITTER,
        "with m.If(expired & self.i.valid):",
        "with m.If(expired & ~self.i.valid):",
        104,
    ),
    "a frame leaves bytes behind": (
        ParserGoesOn,
        PARSER,
        "with m.If(byte.reset):",
        "with m.If(byte.reset & byte.valid):",
        60,
    ),
    "a frame is stored without room": (
        WithoutRoom,
        PARSER,
        "(byte.ended & ended)) & ~full",
        "(byte.ended & ended))",
        40,
    ),
    "a packet is visible before it is committed": (
        PacketsAreWhole,
        FIFO,
        "end.eq(end + (end != start))",
        "end.eq(end + self.i.write)",
        30,
    ),
    "a word leaves twice": (
        PacketsAreWhole,
        FIFO,
        "loaded.eq(loads | (loaded & ~leaves))",
        "loaded.eq(loads | loaded)",
        30,
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    contract, module, *texts, within = BUGS[bug]
    proof.finds(Bug(f"ethernet.{module}", *texts), contract(), within=within)
