"""Tables of constants in LUTs."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Value

__all__ = ["look_up"]


def look_up(index: Value, values: Sequence[int], width: int) -> Value:
    """Return ``values[index]``, of ``width`` bits; 0 behind the last of them.

    Yosys makes a block RAM of a large `Switch` with a register behind it. The RAM's output takes
    5.8 ns on ECP5-6, and so nothing but a register could follow.
    """
    return Cat(
        Const(
            sum((value >> bit & 1) << place for place, value in enumerate(values)), 1 << len(index)
        ).bit_select(index, 1)
        for bit in range(width)
    )
