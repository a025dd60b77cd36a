"""A stream unit loses, doubles and reorders nothing, and its packets end where they have to."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value

from bitlane_rtl.abi import Op
from bitlane_rtl.stream_unit import PacketFlags, PacketReduction, StreamConfiguration, StreamUnit
from support.formal.proof import Bounded, Claim, Contract, Reached, proofs, taken

XOR = StreamConfiguration(data_width=8, ops=frozenset({Op.XOR}))
SUMS = StreamConfiguration(data_width=32, ops=frozenset({Op.COUNT}), user_width=0)

_PERIOD = 8
"""More beats, and more packets, than any unit holds."""


def _count(m: Module, stream: Any, *, ends: bool = False) -> Signal:
    """Return the beats, or the packets that ended, on ``stream`` so far, modulo `_PERIOD`."""
    count = Signal(range(_PERIOD))
    with m.If(taken(stream) & (stream.p.last if ends else 1)):
        m.d.sync += count.eq(count + 1)
    return count


def _bit(pattern: Value, number: Value) -> Value:
    return pattern.bit_select(number, 1)


class KeepsBeats(Contract):
    """Packets of A and B of any equal lengths, which repeat after `_PERIOD` beats.

    Of the beats, one has known data; so the data of Y belongs to the right beats.
    """

    def claim(self, m: Module) -> None:
        m.submodules.unit = unit = StreamUnit(XOR)
        self.offers(m, unit.a)
        self.offers(m, unit.b)
        self.takes(m, unit.y)
        lasts, keeps, users = (self.something(m, _PERIOD, x) for x in ("lasts", "keeps", "users"))
        number = self.something(m, range(_PERIOD), "number")
        known = [self.something(m, 8, name) for name in ("known_a", "known_b")]
        for port, value in zip((unit.a, unit.b), known, strict=True):
            count = _count(m, port)
            m.d.comb += [
                Assume(port.p.last == _bit(lasts, count)),
                Assume(port.p.keep == _bit(keeps, count)),
                Assume((count != number) | (port.p.data == value)),
            ]
            if port is unit.a:
                m.d.comb += Assume(port.p.user == _bit(users, count))
        left = _count(m, unit.y)
        y = unit.y.p
        last, keep = _bit(lasts, left), _bit(keeps, left)
        some, gap = Signal(), Signal()
        with m.If(taken(unit.y)):
            m.d.sync += [some.eq((some | keep) & ~last), gap.eq((gap | ~keep) & ~last)]
        flags: Any = Signal(PacketFlags)
        m.d.comb += [flags.holes.eq(gap | (~keep & ~last)), flags.empty.eq(last & ~(some | keep))]
        with m.If(unit.y.valid):
            m.d.comb += [
                Assert(y.last == last),
                Assert(y.keep == keep),
                Assert(y.user == _bit(users, left)),
                Assert(y.flags.as_value() == flags.as_value()),
                Assert((left != number) | (y.data == known[0] ^ known[1])),
            ]


class EndsPackets(Contract):
    """Packets of A and B of any lengths; one in `_PERIOD` has known ones, without null bytes."""

    def claim(self, m: Module) -> None:
        m.submodules.unit = unit = StreamUnit(XOR)
        self.offers(m, unit.a)
        self.offers(m, unit.b)
        self.takes(m, unit.y)
        number = self.something(m, range(_PERIOD), "number")
        lengths = [self.something(m, 2, name) for name in ("length_a", "length_b")]
        for port, length in zip((unit.a, unit.b), lengths, strict=True):
            known = _count(m, port, ends=True) == number
            m.d.comb += [
                Assume(~known | (port.p.last == (self._beat(m, port) == length))),
                Assume(port.p.keep == 1),
            ]
        shorter = Mux(lengths[0] < lengths[1], *lengths)
        packet, beat, y = _count(m, unit.y, ends=True), self._beat(m, unit.y), unit.y.p
        with m.If(unit.y.valid & (packet == number)):
            unequal = y.last & (lengths[0] != lengths[1])
            m.d.comb += [
                Assert(y.last == (beat == shorter)),
                Assert(y.keep == 1),
                Assert(y.flags.as_value() == Cat(0, unequal, 0, 0)),
            ]

    def _beat(self, m: Module, stream: Any) -> Signal:
        """Return the number of a beat in its packet, up to 7."""
        beat = Signal(3)
        with m.If(taken(stream)):
            m.d.sync += beat.eq(Mux(stream.p.last, 0, beat + (beat != 7)))
        return beat


class SumsPackets(Contract):
    """Packets of A of any length; one in `_PERIOD` has beats of known data."""

    def __init__(self, reduction: PacketReduction) -> None:
        super().__init__()
        self._reduction = reduction

    def claim(self, m: Module) -> None:
        m.submodules.unit = unit = StreamUnit(SUMS)
        self.offers(m, unit.a)
        self.takes(m, unit.y)
        any_value = self._reduction is PacketReduction.ANY
        number, length = self.something(m, range(_PERIOD), "number"), self.something(m, 2, "length")
        beat = Signal(3)
        known = _count(m, unit.a, ends=True) == number
        with m.If(taken(unit.a)):
            m.d.sync += beat.eq(Mux(unit.a.p.last, 0, beat + (beat != 7)))
        negate = self.something(m, 1, "negate") & any_value
        m.d.comb += [
            # After the first beat of a packet the inputs are anything.
            unit.control.eq(self.anything(len(unit.control.as_value()), "inputs")),
            # A packet of length n has n ones, in its beats before the last.
            Assume(~known | (unit.a.p.last == (beat == length))),
            Assume(~known | (unit.a.p.data == Mux(unit.a.p.last, 0, 1 << 9))),
            Assume(~known | unit.a.p.keep.all()),
        ]
        with m.If(beat == 0):
            m.d.comb += [
                unit.control.eq(0),
                unit.control.reduction.eq(self._reduction),
                unit.control.negate.eq(negate),
            ]
        y = unit.y.p
        with m.If(unit.y.valid):
            m.d.comb += [Assert(y.last), Assert(y.keep == (1 if any_value else 15))]
            with m.If(_count(m, unit.y, ends=True) == number):
                right = y.data[:8] == ((length != 0) ^ negate)
                if not any_value:
                    right = y.data == length
                m.d.comb += [Assert(right), Assert(y.flags.as_value() == 0)]


JOIN, UNIT, ASSEMBLER, SAMPLER = (
    f"stream_unit.{name}" for name in ("join", "unit", "assembler", "sampler")
)
OF_BEATS = {
    "A leaves alone": (JOIN, "(self.b.valid & ~drop_b)", "~drop_b"),
    "the fields beside do not wait": (UNIT, "bit_unit.i.ready, sideband", "1, sideband"),
    "B is taken twice": (
        JOIN,
        "self.b.ready.eq((sent & needed) | drop_b)",
        "self.b.ready.eq(drop_b)",
    ),
    "a beat of A may have no gap": (JOIN, "(~last & ~common.all())", "Const(0)"),
    "a gap is forgotten": (ASSEMBLER, "before.holes | side.holes", "side.holes"),
    "a packet is never empty": (ASSEMBLER, "side.last & ~(some | side.some)", "0"),
}
OF_ENDS = {
    "the rest of A begins a packet": (
        JOIN,
        "drop_a.eq(needed & b.last & ~a.last)",
        "drop_a.eq(0)",
    ),
    "the rest of B begins a packet": (JOIN, "drop_b.eq(a.last & ~b.last)", "drop_b.eq(0)"),
    "a whole packet of A is dropped": (
        JOIN,
        "drop_a.eq(needed & b.last & ~a.last)",
        "drop_a.eq(needed & b.last)",
    ),
    "a shorter packet is not flagged": (JOIN, "(a.last != b.last)", "(a.last & ~b.last)"),
    "flags stay for the next packet": (
        ASSEMBLER,
        "before.eq(Mux(side.last, 0, now.as_value()))",
        "before.eq(now.as_value())",
    ),
}
OF_SUMS = {
    "a sum has the bytes of an element": (ASSEMBLER, "0b1, 0b1111", "0b1, 0b11"),
    "the control inputs of another packet": (
        SAMPLER,
        "Mux(first, now.as_value(), held.as_value())",
        "Mux(first, held.as_value(), now.as_value())",
    ),
}
OF_TRUTH = {
    "a truth value stays for the next packet": (
        ASSEMBLER,
        "before.eq(found & ~side.last)",
        "before.eq(found)",
    ),
}

test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(KeepsBeats, Reached, bugs=OF_BEATS, within=14),
    Claim(EndsPackets, Reached, bugs=OF_ENDS, within=14),
    Claim(SumsPackets, Bounded(14), bugs=OF_SUMS, within=14, reduction=PacketReduction.SUM),
    Claim(SumsPackets, Bounded(14), bugs=OF_TRUTH, within=14, reduction=PacketReduction.ANY),
)
