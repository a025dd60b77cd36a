"""Functions of lanes that the units share: tests of the lane, bits spread over its bytes.

They add combinational logic to a module. Units have one control bit for each byte, not for each
lane, so that the same wires serve every lane width. A word of such bits has byte 0 in bit 0.
"""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..abi import Lane

__all__ = ["any_in_lane", "at_least", "lowest_bytes", "spread_highest", "spread_lowest"]


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
    """Return a signal for ``word``, so that a simulator computes it once for all its readers."""
    joined = Signal(len(word), name=f"joined_{lane.bits}")
    m.d.comb += joined.eq(word)
    return joined


def spread_lowest(m: Module, word: Value, lane: Value, lanes: Collection[Lane]) -> Value:
    """Give each byte the bit of the lowest byte of its lane."""
    for wider in _wider(len(word), lanes):
        other = Cat(word[byte & ~(wider.bytes // 2)] for byte in range(len(word)))
        word = _joined(m, wider, Mux(at_least(lane, wider, lanes), other, word))
    return word


def spread_highest(m: Module, word: Value, lane: Value, lanes: Collection[Lane]) -> Value:
    """Give each byte the bit of the highest byte of its lane."""
    for wider in _wider(len(word), lanes):
        other = Cat(word[byte | wider.bytes // 2] for byte in range(len(word)))
        word = _joined(m, wider, Mux(at_least(lane, wider, lanes), other, word))
    return word


def any_in_lane(
    m: Module, word: Value, lane: Value, lanes: Collection[Lane], steps: Collection[Lane]
) -> Value:
    """Give each byte the OR of the bits of all bytes of its lane.

    ``steps``: 16, 32 and 64 bits, one step of the OR each; or some of these in order, if another
    stage has the other steps.
    """
    for wider in _wider(len(word), lanes):
        if wider in steps:
            other = Cat(word[byte ^ wider.bytes // 2] for byte in range(len(word)))
            word = _joined(m, wider, word | Mux(at_least(lane, wider, lanes), other, 0))
    return word


def lowest_bytes(m: Module, size: int, lane: Value, lanes: Collection[Lane]) -> Value:
    """Return, for each of ``size`` bytes, whether it is the lowest byte of its lane."""

    def is_lowest(byte: int) -> Value:
        for wider in (Lane.BITS_16, Lane.BITS_32, Lane.BITS_64):
            if byte % wider.bytes:
                return ~at_least(lane, wider, lanes)
        return Const(1)

    lowest = Signal(size)
    m.d.comb += lowest.eq(Cat(is_lowest(byte)[0] for byte in range(size)))
    return lowest
