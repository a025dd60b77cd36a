"""Functions of lanes that the units share: tests of the lane, values spread over its bytes.

They are plain functions that add combinational logic to a module. Units have one control bit for
each byte, not for each lane, so that the same wires serve every lane width. A word of such bits
has byte 0 in bit 0.
"""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..abi import Lane

__all__ = ["at_least", "bottoms", "from_bottom", "from_top", "over_lane"]


def at_least(lane: Value, minimum: Lane, lanes: Collection[Lane]) -> Value:
    """Return whether ``lane``, one of ``lanes``, is ``minimum`` or wider."""
    if all(built >= minimum for built in lanes):
        return Const(1)
    if all(built < minimum for built in lanes):
        return Const(0)
    return lane >= int(minimum)


def _wider(size: int, lanes: Collection[Lane]) -> list[Lane]:
    """Return the lanes of two bytes and more, up to ``size`` and to the widest of ``lanes``."""
    widest = max(built.bytes for built in lanes)
    return [lane for lane in Lane if 1 < lane.bytes <= min(size, widest)]


def _joined(m: Module, lane: Lane, word: Value) -> Signal:
    joined = Signal(len(word), name=f"joined_{lane.bits}")
    m.d.comb += joined.eq(word)
    return joined


def from_bottom(m: Module, word: Value, lane: Value, lanes: Collection[Lane]) -> Value:
    """Give each byte the bit of the lowest byte of its lane."""
    for wider in _wider(len(word), lanes):
        other = Cat(word[byte & ~(wider.bytes // 2)] for byte in range(len(word)))
        word = _joined(m, wider, Mux(at_least(lane, wider, lanes), other, word))
    return word


def from_top(m: Module, word: Value, lane: Value, lanes: Collection[Lane]) -> Value:
    """Give each byte the bit of the highest byte of its lane."""
    for wider in _wider(len(word), lanes):
        other = Cat(word[byte | wider.bytes // 2] for byte in range(len(word)))
        word = _joined(m, wider, Mux(at_least(lane, wider, lanes), other, word))
    return word


def over_lane(
    m: Module, word: Value, lane: Value, lanes: Collection[Lane], steps: Collection[Lane]
) -> Value:
    """Give each byte the OR of the bits of all bytes of its lane.

    ``steps``: the lanes of two, four and eight bytes, in this order; or some of them, if a later
    stage has the others.
    """
    for wider in _wider(len(word), lanes):
        if wider in steps:
            other = Cat(word[byte ^ wider.bytes // 2] for byte in range(len(word)))
            word = _joined(m, wider, word | Mux(at_least(lane, wider, lanes), other, 0))
    return word


def bottoms(m: Module, size: int, lane: Value, lanes: Collection[Lane]) -> Value:
    """Return one bit for each of ``size`` bytes: it is the lowest of its lane."""

    def is_bottom(byte: int) -> Value:
        for wider in (Lane.BITS_16, Lane.BITS_32, Lane.BITS_64):
            if byte % wider.bytes:
                return ~at_least(lane, wider, lanes)
        return Const(1)

    bottom = Signal(size)
    m.d.comb += bottom.eq(Cat(is_bottom(byte)[0] for byte in range(size)))
    return bottom
