"""Counting up and down with one adder."""

from amaranth.hdl import Cat, Module, Signal, Value

__all__ = ["step"]


def step(m: Module, count: Signal, up: Value, down: Value) -> None:
    """Add 1 to ``count`` in a cycle with ``up``, and subtract 1 in a cycle with ``down``.

    ``count`` stays in a cycle with both. One adder serves both directions: it adds 1, or the number
    with all bits 1, which is -1. Synthesis makes two adders and a multiplexer of ``count + 1`` and
    ``count - 1`` under conditions of their own.
    """
    with m.If(up ^ down):
        m.d.sync += count.eq(count + Cat(1, down.replicate(len(count) - 1)))
