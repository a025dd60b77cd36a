"""Shifts the elements of each lane. Must never move a bit into another lane."""

from collections.abc import Collection
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Op
from ..primitives import register
from .lanes import any_in_lane, at_least, lowest_bytes, spread_highest, spread_lowest

__all__ = ["Shifter"]


class Shifter(wiring.Component):
    """Shifts each lane of ``a`` by the count in the same lane of ``b``.

    A logarithmic shifter to the left. A right shift mirrors the word in the first stage. The owner
    mirrors ``o`` again where it merges other results, so that both take one LUT4 a bit. Whole bytes
    move first, then single bits. A control signal of each byte selects where the fill enters; no
    other signal depends on the lane. A byte that consists of fill alone is marked, and filled at
    the last byte step.

    Latency: 2 cycles. Stage 1 turns counts into controls, stage 2 moves whole bytes, and single
    bits move behind its registers. Throughput: one word a cycle.

    Size: a 64-bit unit has 939 LUT4 with it and 257 without on ECP5. The slowest paths are from
    ``b`` to the excess in stage 1, and from there to the bytes in stage 2.

    Members
    -------
    load
        Bit 0: take the inputs at this clock edge; bit 1: move on what was taken before.
    a, b
        Operand and counts.
    lane
        An ``abi.Lane`` out of ``lanes`` and no wider than ``width``; else the output is undefined.
    right
        Shift to the right; must be as ``ops`` allow.
    saturate
        Counts of the lane's width or more fill the lane; else counts are modulo the width.
    arithmetic
        The fill of a right shift is the lane's top bit; else it is 0.
    bypass
        Set every bit of ``o`` to ``constant``, and ignore the other inputs.
    constant
        See ``bypass``.
    o
        The result, mirrored if ``mirrored`` is 1.
    mirrored
        Bit ``i`` of the result is bit ``width - 1 - i`` of ``o``: after a shift to the right.
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
                "mirrored": Out(1),
            }
        )

    def _mirror(self, right: Value, word: Value) -> Value:
        """Return ``word``, a bit for each bit or byte of data, reversed if ``right`` is 1."""
        if not self._right:
            return word
        mirrored = Cat(reversed(word))
        return Mux(right, mirrored, word) if self._left else mirrored

    def _excess(self, m: Module) -> Value:
        """Return, for pairs of bytes of a lane, whether the count is the lane's width or more."""
        lanes, lane = self._lanes, self.lane
        parts = Signal(self._bytes)
        lowest = lowest_bytes(m, self._bytes, lane, lanes)
        for byte in range(self._bytes):
            bits = self.b.word_select(byte, 8)
            part: Value = bits[6:].any() | (bits[:3].any() & ~lowest[byte])
            for bit, wider in ((3, Lane.BITS_16), (4, Lane.BITS_32), (5, Lane.BITS_64)):
                # In wider lanes, this bit of the lowest byte is part of the count.
                part |= bits[bit] & ~(lowest[byte] & at_least(lane, wider, lanes))
            m.d.comb += parts[byte].eq(part)
        return any_in_lane(m, parts, lane, lanes, [Lane.BITS_16])

    def _inside(self, distance: int, lane: Value) -> Value:
        """Return, for each byte, whether the byte ``distance`` below is of the same lane.

        The lane is wider than ``distance`` bytes.
        """

        def is_inside(byte: int) -> Value:
            if byte & distance:
                return Const(1)
            above = byte & -(2 * distance)
            if above % Lane.BITS_64.bytes == 0:
                return Const(0)
            return at_least(lane, _lane_of_bytes(2 * (above & -above)), self._lanes)

        return Cat(is_inside(byte)[0] for byte in range(self._bytes))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        controls = self._decode(m)
        data = self._move_bytes(m, controls)
        steps = self._bit_steps(m, controls)
        # Behind the last register: move single bits.
        for bit in reversed(range(3)):
            distance = 1 << bit
            shifted = Signal(8 * self._bytes, name=f"shifted_{distance}")
            m.d.comb += shifted.eq(
                Cat(_step(data, byte, distance, *steps[bit]) for byte in range(self._bytes))
            )
            data = shifted
        mirrored = register(m, self.load[1], controls.right, "right_2")
        m.d.comb += [self.o.eq(data), self.mirrored.eq(mirrored)]
        return m

    def _decode(self, m: Module) -> "_Controls":
        """Stage 1: mirror the word, and find the count, the excess and the fill of each lane."""
        lanes, size, load = self._lanes, self._bytes, self.load[0]
        right = self.right if self._left and self._right else Const(int(self._right))
        counts = [spread_lowest(m, self.b[bit::8], self.lane, lanes) for bit in range(6)]
        byte_moves = {}
        for bit, distance in ((5, 4), (4, 2), (3, 1)):
            if distance < size:
                wider = at_least(self.lane, _lane_of_bytes(2 * distance), lanes)
                moves = Mux(wider, self._mirror(right, counts[bit][:: 2 * distance]), 0)
                byte_moves[distance] = register(m, load, moves, f"byte_moves_{distance}")
        signs = Cat(reversed(spread_highest(m, self.a[7::8], self.lane, lanes)))
        # The fill is mirrored without a multiplexer: a fill with ones belongs to a right shift, or
        # is the same for all bytes.
        fill = Mux(self.arithmetic & right & ~self.bypass, signs, 0)
        fill |= (self.bypass & self.constant).replicate(size)
        return _Controls(
            lane=register(m, load, self.lane, "lane_1"),
            right=register(m, load, right, "right_1"),
            data=register(m, load, self._mirror(right, self.a), "data_1"),
            bit_moves=[register(m, load, counts[bit], f"bit_moves_{bit}") for bit in range(3)],
            byte_moves=byte_moves,
            excess=register(m, load, self._excess(m), "excess_1"),
            fill=register(m, load, fill, "fill_1"),
            saturate=register(m, load, self.saturate, "saturate_1"),
            bypass=register(m, load, self.bypass, "bypass_1"),
        )

    def _move_bytes(self, m: Module, controls: "_Controls") -> Value:
        """Stage 2: move whole bytes, the widest distance first, and fill. Returns the register."""
        size, data = self._bytes, controls.data
        moved: Value = Const(0, size)
        filled: Value = Const(0, size)
        for distance, moves in controls.byte_moves.items():
            moved, before = Signal(size, name=f"moved_{distance}"), filled
            filled = Signal(size, name=f"filled_{distance}")
            below = Cat(Const(0, distance), before)[:size]
            m.d.comb += [
                moved.eq(Cat(moves[byte // (2 * distance)] for byte in range(size))),
                filled.eq(
                    (moved & (below | ~self._inside(distance, controls.lane))) | (~moved & before)
                ),
            ]
            # The last step, of a byte, fills too.
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
        # The first stage finds the excess of 16 bits. With all of it there, or here, that stage
        # would bound the clock.
        steps = [Lane.BITS_32, Lane.BITS_64]
        excess = any_in_lane(m, controls.excess, controls.lane, self._lanes, steps)
        fill, take = Signal(size), Signal(size)
        m.d.comb += [
            fill.eq(
                filled
                | (self._mirror(controls.right, excess) & controls.saturate.replicate(size))
                | controls.bypass.replicate(size)
            ),
            take.eq((fill & controls.fill) | (~fill & moved)),
        ]
        stepped = Cat(_step(data, byte, 8, fill, take) for byte in range(size))
        return register(m, self.load[1], stepped, "data_2")

    def _bit_steps(self, m: Module, controls: "_Controls") -> list[tuple[Value, Value]]:
        """Stage 2: compute the controls of single bits. Returns ``fill`` and ``take`` by bit."""
        lowest = lowest_bytes(m, self._bytes, controls.lane, self._lanes)
        steps = []
        for bit, count in enumerate(controls.bit_moves):
            moves = Signal(self._bytes, name=f"moves_{bit}")
            m.d.comb += moves.eq(self._mirror(controls.right, count))
            fill = register(m, self.load[1], moves & lowest, f"fill_2_{bit}")
            take = register(m, self.load[1], moves & (controls.fill | ~lowest), f"take_2_{bit}")
            steps.append((fill, take))
        return steps


@dataclass(frozen=True)
class _Controls:
    """The registers of the first stage. ``excess`` and ``fill`` have a bit for each byte."""

    lane: Value
    right: Value
    data: Value
    bit_moves: list[Value]
    """By bit of the count, 0 to 2: a bit for each byte, which moves so far."""
    byte_moves: dict[int, Value]
    """By distance in bytes, the widest first: a bit for each group of twice as many bytes."""
    excess: Value
    fill: Value
    saturate: Value
    bypass: Value


def _step(word: Value, byte: int, distance: int, fill: Value, take: Value) -> Value:
    """Return ``byte`` of ``word`` after a step of ``distance`` bits to the left.

    The lowest ``distance`` bits become the highest of the byte below if ``take`` is 1, else they do
    not move; with ``fill`` they become ``take``. The other bits move if ``take`` or ``fill`` is 1.
    Two controls thus select one of four cases, and each bit takes one LUT4.
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
