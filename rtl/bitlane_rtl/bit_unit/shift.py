"""Shifts the elements of each lane. Must never move a bit into another lane."""

from collections.abc import Collection
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Op
from .lanes import at_least, bottoms, from_bottom, from_top, over_lane

__all__ = ["Shifter"]


class Shifter(wiring.Component):
    """Shifts each lane of ``a`` by the count in the same lane of ``b``.

    It is a logarithmic shifter to the left. It reverses the word of a right shift first, and the
    user of ``o`` reverses the result again where it merges other results. Whole bytes move first,
    then single bits. Control signals of each byte select where the fill enters; no other signal
    depends on the lanes. A byte that only has fill is marked, and filled at the last byte step.

    Latency: 2 cycles, of which the first turns the counts into controls and the second moves whole
    bytes; single bits move behind the last register. Throughput: one word a cycle.

    Size: 64-bit units have 939 LUT4 with it and 257 without on ECP5. The slowest paths are from
    ``b`` to the excess of the first stage, and from there to the bytes of the second.

    Members
    -------
    load : ``In(2)``
        Bit 0: take the inputs at this clock edge; bit 1: move on what was taken before.
    a, b : ``In(width)``
        Operand and counts.
    lane : ``In(2)``
        An ``abi.Lane`` out of ``lanes`` and no wider than ``width``; else the output is undefined.
    right : ``In(1)``
        Whether to shift to the right; must be as ``ops`` allow.
    saturate : ``In(1)``
        Whether counts of the lane's width or more fill the lane, or count modulo the width.
    arithmetic : ``In(1)``
        Whether the fill of a right shift is the lane's top bit; else it is 0.
    bypass : ``In(1)``
        Whether to ignore all that and set every bit of ``o`` to ``constant``.
    constant : ``In(1)``
        See ``bypass``.
    o : ``Out(width)``
        The result, with bit ``i`` at ``width - 1 - i`` if ``right`` was set.
    """

    def __init__(self, width: int, ops: Collection[Op], lanes: Collection[Lane]) -> None:
        self._lanes = frozenset(lane for lane in lanes if lane.bits <= width)
        if not self._lanes:
            raise ValueError(f"lanes: none of them fits into {width} bits")
        self._left = Op.SHIFT_LEFT in ops
        self._right = Op.SHIFT_RIGHT in ops
        if not (self._left or self._right):
            raise ValueError("ops: none of them is a shift")
        self._bytes = width // 8
        super().__init__(
            {
                "load": In(2),
                "a": In(width),
                "b": In(width),
                "lane": In(2),
                "right": In(1),
                "saturate": In(1),
                "arithmetic": In(1),
                "bypass": In(1),
                "constant": In(1),
                "o": Out(width),
            }
        )

    def _mirror(self, right: Value, word: Value) -> Value:
        """``word`` as a shift to the left finds it, be it a bit of each byte or all bits."""
        if not self._right:
            return word
        mirrored = Cat(reversed(word))
        return Mux(right, mirrored, word) if self._left else mirrored

    def _excess(self, m: Module) -> Value:
        """Whether the counts are the width of the lane or more, for pairs of each lane's bytes."""
        lanes, lane = self._lanes, self.lane
        parts = Signal(self._bytes)
        bottom = bottoms(m, self._bytes, lane, lanes)
        for byte in range(self._bytes):
            bits = self.b.word_select(byte, 8)
            part: Value = bits[6:].any() | (bits[:3].any() & ~bottom[byte])
            for bit, wider in ((3, Lane.BITS_16), (4, Lane.BITS_32), (5, Lane.BITS_64)):
                # In wider lanes, this bit of the lowest byte is part of the count.
                part |= bits[bit] & ~(bottom[byte] & at_least(lane, wider, lanes))
            m.d.comb += parts[byte].eq(part)
        return over_lane(m, parts, lane, lanes, [Lane.BITS_16])

    def _inside(self, distance: int, lane: Value) -> Value:
        """Whether the byte ``distance`` below is of the same lane, which is wider than that."""

        def is_inside(byte: int) -> Value:
            if byte & distance:
                return Const(1)
            above = byte & -(2 * distance)
            if not above:
                return Const(0)
            return at_least(lane, _lane_of_bytes(2 * (above & -above)), self._lanes)

        return Cat(is_inside(byte)[0] for byte in range(self._bytes))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = self._find(m)
        data, moved, filled = self._move_bytes(m, held)
        data, steps = self._decide(m, held, data, moved, filled)
        # Behind the last register: move single bits.
        for bit, (fill, take) in reversed(list(enumerate(steps))):
            distance = 1 << bit
            shifted = Signal(8 * self._bytes, name=f"shifted_{distance}")
            m.d.comb += shifted.eq(
                Cat(_step(data, byte, distance, fill, take) for byte in range(self._bytes))
            )
            data = shifted
        m.d.comb += self.o.eq(data)
        return m

    def _find(self, m: Module) -> "_Held":
        """First stage: reverse, and find the count, the excess and the fill of each byte's lane."""
        lanes, size = self._lanes, self._bytes
        distances = [distance for distance in (4, 2, 1) if distance < size]
        right = self.right if self._left and self._right else Const(int(self._right))
        lane_1, right_1 = Signal(2, reset_less=True), Signal(reset_less=True)
        data_1 = Signal(8 * size, reset_less=True)
        bits_1 = [Signal(size, name=f"bits_1_{bit}", reset_less=True) for bit in range(3)]
        bytes_1 = {
            n: Signal(size // (2 * n), name=f"bytes_1_{n}", reset_less=True) for n in distances
        }
        excess_1 = Signal(size, reset_less=True)
        fill_1 = Signal(size, reset_less=True)
        saturate_1, bypass_1 = Signal(reset_less=True), Signal(reset_less=True)
        counts = [from_bottom(m, self.b[bit::8], self.lane, lanes) for bit in range(6)]
        excess = self._excess(m)
        signs = from_top(m, self.a[7::8], self.lane, lanes)
        signed = self.arithmetic & right & ~self.bypass
        with m.If(self.load[0]):
            m.d.sync += [
                lane_1.eq(self.lane),
                right_1.eq(right),
                data_1.eq(self._mirror(right, self.a)),
                excess_1.eq(excess),
                saturate_1.eq(self.saturate),
                bypass_1.eq(self.bypass),
                # Any fill but 0 belongs to a right shift, or is the same for all bytes.
                fill_1.eq(
                    Mux(signed, Cat(reversed(signs)), 0)
                    | (self.bypass & self.constant).replicate(size)
                ),
            ]
            m.d.sync += [held.eq(count) for held, count in zip(bits_1, counts, strict=False)]
            for distance, held in bytes_1.items():
                wider = at_least(self.lane, _lane_of_bytes(2 * distance), lanes)
                moves = counts[2 + distance.bit_length()][:: 2 * distance]
                m.d.sync += held.eq(Mux(wider, self._mirror(right, moves), 0))
        return _Held(
            lane=lane_1,
            right=right_1 if self._left and self._right else right,
            data=data_1,
            bits=bits_1,
            bytes=bytes_1,
            excess=excess_1,
            fill=fill_1,
            saturate=saturate_1,
            bypass=bypass_1,
        )

    def _move_bytes(self, m: Module, held: "_Held") -> tuple[Value, Value, Value]:
        """Second stage: move whole bytes. Returns them, which moved, and which are filled."""
        size, data = self._bytes, held.data
        moved: Value = Const(0, size)
        filled: Value = Const(0, size)
        for distance, moves in held.bytes.items():
            moved, before = Signal(size, name=f"moved_{distance}"), filled
            filled = Signal(size, name=f"filled_{distance}")
            below = Cat(Const(0, distance), before)[:size]
            m.d.comb += [
                moved.eq(Cat(moves[byte // (2 * distance)] for byte in range(size))),
                filled.eq(
                    (moved & (below | ~self._inside(distance, held.lane))) | (~moved & before)
                ),
            ]
            if distance > 1:
                data_next = Signal(8 * size, name=f"data_{distance}")
                m.d.comb += data_next.eq(
                    Cat(
                        Mux(
                            moved[byte],
                            data.word_select(max(byte - distance, 0), 8),
                            data.word_select(byte, 8),
                        )
                        for byte in range(size)
                    )
                )
                data = data_next
        return data, moved, filled

    def _decide(
        self, m: Module, held: "_Held", data: Value, moved: Value, filled: Value
    ) -> tuple[Value, list[tuple[Signal, Signal]]]:
        """Second stage: compute the controls of single bits. Returns the data and the controls."""
        lanes, size = self._lanes, self._bytes
        fill, take = Signal(size), Signal(size)
        # All of it in one stage would take longer than anything else there.
        excess = over_lane(m, held.excess, held.lane, lanes, [Lane.BITS_32, Lane.BITS_64])
        m.d.comb += [
            fill.eq(
                filled
                | (self._mirror(held.right, excess) & held.saturate.replicate(size))
                | held.bypass.replicate(size)
            ),
            take.eq((fill & held.fill) | (~fill & moved)),
        ]
        data_2 = Signal(8 * size, reset_less=True)
        with m.If(self.load[1]):
            m.d.sync += data_2.eq(Cat(_step(data, byte, 8, fill, take) for byte in range(size)))
        bottom = bottoms(m, size, held.lane, lanes)
        steps = []
        for bit, count in enumerate(held.bits):
            shifts = Signal(size, name=f"shifts_{bit}")
            m.d.comb += shifts.eq(self._mirror(held.right, count))
            fill = Signal(size, name=f"fill_2_{bit}", reset_less=True)
            take = Signal(size, name=f"take_2_{bit}", reset_less=True)
            with m.If(self.load[1]):
                m.d.sync += [fill.eq(shifts & bottom), take.eq(shifts & (held.fill | ~bottom))]
            steps.append((fill, take))
        return data_2, steps


@dataclass(frozen=True)
class _Held:
    """The registers of the first stage.

    ``excess`` and ``fill`` have a bit for each byte. ``bits``: the bits of the counts that move
    single bits, each for all bytes. ``bytes``: by distance in bytes, a bit for each group of twice
    as many bytes.
    """

    lane: Value
    right: Value
    data: Value
    bits: list[Signal]
    bytes: dict[int, Signal]
    excess: Value
    fill: Value
    saturate: Value
    bypass: Value


def _step(word: Value, byte: int, distance: int, fill: Value, take: Value) -> Value:
    """``byte`` of ``word`` after a step of ``distance`` bits to the left.

    As many low bits come from the byte below: if ``fill``, they become ``take``, else they move if
    ``take``. The other bits move if either is set. So two controls tell four cases, and every bit
    is one LUT4.
    """
    first = 8 * byte
    own = word[first : first + 8]
    below = word[first - distance : first] if byte else Const(0, distance)
    low = Mux(take[byte], below, own[:distance])
    low = Mux(fill[byte], take[byte].replicate(distance), low)
    high = Mux(fill[byte] | take[byte], own[: 8 - distance], own[distance:])
    return Cat(low, high)


def _lane_of_bytes(size: int) -> Lane:
    return Lane(size.bit_length() - 1)
