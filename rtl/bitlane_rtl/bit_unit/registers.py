"""Registers between the stages of the bit unit."""

from typing import Any

from amaranth.hdl import Module, Signal

__all__ = ["register"]


def register(m: Module, load: Any, value: Any, name: str) -> Any:
    """Return a register without a reset that takes ``value`` in each cycle with ``load``.

    ``value`` is a `Value` or a `data.View`; so is the register, which has the same shape.
    """
    held = Signal(value.shape(), name=name, reset_less=True)
    with m.If(load):
        m.d.sync += held.eq(value)
    return held
