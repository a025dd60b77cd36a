"""The design that most tests need: a counter. No tests here."""

from typing import Any

from amaranth.hdl import Module, Signal


def counter(shape: Any = 8, step: Any = 1, **options: Any) -> tuple[Module, Signal]:
    """Return a design that adds ``step`` to a register at each tick, and the register."""
    m, count = Module(), Signal(shape, **options, name="count")
    m.d.sync += count.eq(count + step)
    return m, count
