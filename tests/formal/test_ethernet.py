"""The MAC and the FIFOs of packets obey their rules for all time, whatever the line sends."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from bitlane_rtl.abi import FRAME_DATA_BYTES
from bitlane_rtl.ethernet import (
    GAP_BYTES,
    PREAMBLE,
    START_OF_FRAME,
    BoardAddresses,
    FrameParser,
    MacReceiver,
    MacTransmitter,
    PacketFifo,
)
from bitlane_rtl.link import AnswerPacker, DatagramCheck, Mark, RequestHead, RequestReader
from support.formal.proof import Bounded, Claim, Contract, Induction, Reached, before, proofs, taken


class FrameEnds(Contract):
    """A frame ends as soon as its bytes do, and is good only without errors, and long enough.

    The next one begins 3 cycles later or more.
    """

    def claim(self, m: Module) -> None:
        m.submodules.receiver = receiver = MacReceiver()
        line, out = receiver.i, receiver.o
        m.d.comb += [
            line.valid.eq(self.anything(1, "valid")),
            line.error.eq(self.anything(1, "error")),
            line.data.eq(self.anything(8, "data")),
        ]
        begun, damaged, length = Signal(), Signal(), Signal(11)
        gap = Signal(range(3), init=2)  # cycles without a byte behind the end of a frame
        with m.If(out.end):
            m.d.sync += gap.eq(0)
        with m.Elif(gap != 2):
            m.d.sync += gap.eq(gap + 1)
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
            Assert(length <= 1522),
            Assert(~out.valid | (gap == 2)),
        ]
        with m.If(out.end & out.good):
            m.d.comb += [Assert(~damaged), Assert(length >= 64), Assert(~arrived)]

        # What the receiver remembers of the frame, for induction.
        in_frame = self.inside(1, "receiver.in_frame")
        m.d.comb += Assert(self.inside(1, "receiver.early") == (gap == 0))
        with m.If(in_frame):
            m.d.comb += [
                Assert(gap == 2),
                Assert(self.inside(11, "receiver.length") == length),
                Assert(self.inside(1, "receiver.enough") == (length >= 64)),
                Assert(self.inside(1, "receiver.damaged") == damaged),
                Assert(self.inside(1, "receiver.full") == (length == 1522)),
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


class DatagramsAreChecked(Contract):
    """A datagram is committed only if `DatagramCheck` finds it good, or if it is a query."""

    def claim(self, m: Module) -> None:
        m.submodules.parser = parser = FrameParser(BoardAddresses(), check=True)
        i = parser.i
        m.d.comb += [
            i.valid.eq(self.anything(1, "valid")),
            i.byte.eq(self.anything(8, "byte")),
            i.end.eq(self.anything(1, "end")),
            i.good.eq(self.anything(1, "good")),
            parser.o.room.eq(self.anything(1, "room")),
        ]
        names = ("parser.arp", "parser.echo", "parser.is_query")
        other = Cat(self.inside(1, name) for name in names).any()
        allowed = before(m, other | self.inside(1, "parser.check.good"))
        m.d.comb += Assert(~parser.o.commit | allowed)


class CrcIsRight(Contract):
    """The CRC of a good datagram is right."""

    def claim(self, m: Module) -> None:
        m.submodules.check = check = DatagramCheck()
        reset, valid = self.anything(1, "reset"), self.anything(1, "valid")
        byte = self.anything(8, "byte")
        m.d.comb += [check.reset.eq(reset), check.valid.eq(valid), check.byte.eq(byte)]

        # Bit by bit. The CRC of bytes with their CRC behind them is the same for all bytes.
        crc = Signal(32, init=0xFFFFFFFF)
        following: Value = crc ^ byte
        for _ in range(8):
            following = Mux(following[0], following[1:] ^ 0xEDB88320, following[1:])
        m.d.sync += crc.eq(Mux(reset, 0xFFFFFFFF, Mux(valid, following, crc)))
        m.d.comb += Assert(~check.good | before(m, (crc == 0xDEBB20E3) & ~reset))

        # What the check remembers, for induction.
        m.d.comb += Assert(self.inside(32, "check.crc.crc_reg")[::-1] == crc)


class FormIsRight(Contract):
    """A good datagram has whole words, SESSION and a frame."""

    def claim(self, m: Module) -> None:
        m.submodules.check = check = DatagramCheck()
        reset, valid = self.anything(1, "reset"), self.anything(1, "valid")
        byte = self.anything(8, "byte")
        m.d.comb += [check.reset.eq(reset), check.valid.eq(valid), check.byte.eq(byte)]
        length, known = Signal(5), Signal()  # from 16 on, the length counts in circles
        with m.If(valid):
            m.d.sync += length.eq(Mux(length == 19, 16, length + 1))
            m.d.sync += known.eq(known | ((length < 4) & byte.any()))
        with m.If(reset):
            m.d.sync += [length.eq(0), known.eq(0)]
        m.d.comb += Assert(~check.good | before(m, (length == 16) & known & ~reset))

        # Induction needs what the check remembers. The head of the second frame may be the CRC.
        state, heads = self.inside(2, "check.fsm_state"), self.inside(2, "check.heads")
        begun, second = heads[0], heads[1]
        in_session, in_head, in_address, in_data = (state == number for number in range(4))
        aligned = length[:2] == 0
        m.d.comb += [
            Assert(length < 20),
            Assert(self.inside(2, "check.lane") == length[:2]),
            Assert(self.inside(1, "check.known") == known),
            Assert(in_session == (length < 4)),
            Assert(begun == (length > 4)),
            Assert(~second | (length > 12)),
            Assert(~in_head | second | (length < 8) | (aligned & (length >= 12))),
            Assert(~in_address | (length >= Mux(second, 16, 8))),
            Assert(~in_address | second | (length < 12)),
            Assert(~in_data | (length >= 12)),
        ]


STATES = ("header", "head", "decide", "send", "move", "answer", "discard", "end")
"""Of `RequestReader`."""


class OnlyTheSession(Contract):
    """A request is executed only if its datagram has the SESSION of the last HELLO executed.

    A HELLO is not executed if its SESSION is the one before that.
    """

    def claim(self, m: Module) -> None:
        m.submodules.reader = reader = RequestReader(8)
        self.offers(m, reader.i)
        self.takes(m, reader.o)
        m.d.comb += reader.interrupt.eq(self.anything(1, "interrupt"))
        state: Any = data.View(
            data.StructLayout(dict.fromkeys(STATES, 1)), self.inside(len(STATES), "reader.state")
        )
        # SESSION 0 is never that of a good datagram.
        asked, session, former = Signal(32), Signal(32), Signal(32)
        with m.If(state.header & taken(reader.i)):
            m.d.sync += asked.eq(reader.i.payload.data)
        # A word of a request is its first one, or follows one.
        is_word = reader.o.valid & (reader.o.p.mark == Mark.WORD)
        m.d.comb += Assert(~is_word | state.send | state.move)
        head: Any = data.View(RequestHead, reader.o.p.data)
        with m.If(reader.o.valid & state.send):
            m.d.comb += [
                Assert(head.kind.hello | (asked == session)),
                Assert(~head.kind.hello | (asked != former) | (asked == session)),
            ]
            with m.If(taken(reader.o) & head.kind.hello):
                m.d.sync += session.eq(asked)
                with m.If(asked != session):
                    m.d.sync += former.eq(session)
        self._remembers(m, state, (asked, session, former))

    def _remembers(self, m: Module, state: Any, sessions: Any) -> None:
        """Claim what the reader remembers of the request and its session, for induction."""
        asked, session, former = sessions
        kept, kept_former = self.inside(32, "reader._session"), self.inside(32, "reader._former")
        ours, hello = self.inside(1, "reader.ours"), self.inside(1, "reader._hello")
        one_hot = state.as_value()
        m.d.comb += Assert(one_hot.any() & ~(one_hot & (one_hot - 1)).any())
        with m.If(~state.header):
            m.d.comb += [
                Assert(self.inside(32, "reader._asked") == asked),
                Assert(ours == (asked == kept)),
                Assert(self.inside(1, "reader.former") == (asked == kept_former)),
            ]
        # A session starts a few cycles before the first word of its HELLO is taken.
        m.d.comb += Assert(~state.send | hello | ours)
        with m.If(state.send & hello):
            m.d.comb += [
                Assert(kept == asked),
                Assert(kept_former == Mux(asked == session, former, session)),
                Assert((asked != former) | (asked == session)),
            ]
        with m.Else():
            m.d.comb += [Assert(kept == session), Assert(kept_former == former)]


class ReaderGoesOn(Contract):
    """While its peers are ready, the reader takes or outputs a word every few cycles."""

    def claim(self, m: Module) -> None:
        m.submodules.reader = reader = RequestReader(8)
        i, o = reader.i, reader.o
        m.d.comb += [
            i.valid.eq(1),
            i.payload.data.eq(self.anything(32, "word")),
            i.payload.last.eq(self.anything(1, "last")),
            o.ready.eq(1),
        ]
        waits = Signal(3)
        m.d.sync += waits.eq(Mux(i.ready | o.valid, 0, waits + 1))
        m.d.comb += Assert(waits < 3)


class PackerGoesOn(Contract):
    """While its peer is ready, the packer takes each word soon, whatever the order of its marks."""

    def claim(self, m: Module) -> None:
        m.submodules.packer = packer = AnswerPacker()
        self.offers(m, packer.i)
        self.takes(m, packer.o)
        m.d.comb += Assume(packer.i.p.last | (packer.i.p.left <= FRAME_DATA_BYTES // 4))
        waits = Signal(range(32))
        ready = ~packer.o.valid | packer.o.ready
        m.d.sync += waits.eq(Mux(taken(packer.i), 0, waits + (packer.i.valid & ready)))
        m.d.comb += Assert(waits < 12)


RECEIVER, TRANSMITTER = "ethernet.mac_receiver", "ethernet.mac_transmitter"
PARSER, READER = "ethernet.frame_parser", "link.request_reader"
OF_FRAMES = {
    "a damaged byte is forgotten": ("damaged.eq(damaged | error)", "damaged.eq(error)"),
    "a frame goes on without bytes": (
        "self.o.end.eq(in_frame & (~valid | full))",
        "self.o.end.eq(in_frame & full)",
    ),
    "a frame begins at once": ("(~start | early)", "~start"),
}
OF_GAPS = {
    "a frame begins in the gap": (
        "with m.If(expired & self.i.valid):",
        "with m.If(self.i.valid):",
    ),
}
OF_PREAMBLES = {
    "a preamble that is too short": (
        "m.d.sync += count.eq(PREAMBLE_BYTES)",
        "m.d.sync += count.eq(PREAMBLE_BYTES - 1)",
    ),
}
OF_TRANSMITTERS = {
    "a packet is never begun": (
        "with m.If(expired & self.i.valid):",
        "with m.If(expired & ~self.i.valid):",
    ),
}
OF_PARSERS = {
    "a frame leaves bytes behind": (
        "with m.If(byte.reset):",
        "with m.If(byte.reset & byte.valid):",
    ),
}
OF_ROOM = {
    "a frame is stored without room": (
        "(byte.ended & ended)) & ~full",
        "(byte.ended & ended))",
    ),
}
OF_PACKETS = {
    "a packet is visible before it is committed": (
        "end.eq(end + (end != start))",
        "end.eq(end + self.i.write)",
    ),
    "a word leaves twice": (
        "loaded.eq(loads | (loaded & ~leaves))",
        "loaded.eq(loads | loaded)",
    ),
}
OF_DATAGRAMS = {
    "a datagram is committed before its CRC is known": (
        "byte.arp | byte.echo | query.valid | check.good",
        "byte.arp | byte.echo | query.valid | check.good | byte.valid",
    ),
}
OF_CRC = {
    "a bit of a byte is not checked": ("crc.data.eq(self.byte)", "crc.data.eq(self.byte & 0x7F)")
}
OF_FORM = {
    "a datagram may end with a part of a word": (
        "whole.eq((lane == 0) & heads[1]",
        "whole.eq(heads[1]",
    ),
}
OF_SESSIONS = {
    "a datagram of another session is executed": (
        "Mux(hello, starts, ours & in_turn)",
        "Mux(hello, starts, (ours | timer.alive) & in_turn)",
    ),
}
OF_HELLO = {
    "a HELLO of the session before takes over": (
        "(ours | (~former & (~timer.alive | word[TAKE_OVER])))",
        "(ours | (~former & ~timer.alive) | word[TAKE_OVER])",
    ),
    "a HELLO behind another one forgets the session before": (
        "self._session.eq(self._asked), ours.eq(1)",
        "self._session.eq(self._asked)",
    ),
}
OF_READERS = {
    "a complaint is expected twice": ('[(sent | ~answers, "discard")]', '[(sent, "discard")]')
}
OF_PACKERS = {
    "a datagram is closed again and again": (
        "(begun | state.greet) & ~state.close",
        "begun | state.greet",
    ),
}

test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(FrameEnds, Induction(2), module=RECEIVER, bugs=OF_FRAMES, within=20),
    Claim(GapIsKept, Reached, module=TRANSMITTER, bugs=OF_GAPS, within=20),
    Claim(GapIsKept, module=TRANSMITTER, bugs=OF_PREAMBLES, within=40),
    Claim(TransmitterGoesOn, Reached, module=TRANSMITTER, bugs=OF_TRANSMITTERS, within=104),
    Claim(ParserGoesOn, Reached, module=PARSER, bugs=OF_PARSERS, within=60),
    Claim(ParserGoesOn, Reached, module=PARSER, bugs=OF_ROOM, within=40, room=False),
    Claim(PacketsAreWhole, Bounded(14), module="ethernet.packet_fifo", bugs=OF_PACKETS, within=30),
    Claim(DatagramsAreChecked, Induction(2), module=PARSER, bugs=OF_DATAGRAMS, within=64),
    Claim(CrcIsRight, Induction(2), module="link.datagram_check", bugs=OF_CRC, within=10),
    Claim(FormIsRight, Induction(2), module="link.datagram_check", bugs=OF_FORM, within=24),
    Claim(OnlyTheSession, Induction(2), module=READER, bugs=OF_SESSIONS, within=30),
    Claim(OnlyTheSession, module=READER, bugs=OF_HELLO, within=40),
    Claim(ReaderGoesOn, Reached, module=READER, bugs=OF_READERS, within=40),
    Claim(PackerGoesOn, Reached, module="link.answer_packer", bugs=OF_PACKERS, within=80),
)
