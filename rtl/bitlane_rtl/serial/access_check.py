"""Decides whether a request may be executed, and on what. It moves no data."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import CONTROL_BASE, WORD_BYTES
from ..link.memory_bounds import MemoryBounds
from ..ports.signatures import CONTROL_ADDRESS_WIDTH
from .byte_counter import SIZE_BITS
from .receiver import Kind

__all__ = ["AccessCheck"]

_WORD_BITS = ceil_log2(WORD_BYTES)


class AccessCheck(wiring.Component):
    """Refuses the requests that `abi.frames.Answer.REFUSED` lists.

    Parameters
    ----------
    bounds
        Bounds of the memory.
    address_bits
        Number of low address bits in ``last`` below the carry.

    Members
    -------
    kind : ``In(Kind)``
        The kind of the request.
    oversize : ``In(1)``
        SIZE is 1024 or more.
    minus_left : ``In(SIZE_BITS)``
        Minus the number of bytes to access.
    done : ``In(1)``
        No byte is to be accessed.
    first : ``In(32)``; last : ``In(address_bits + 1)``
        Addresses of the first and the last byte.
    compare : ``In(1)``
        Compare ``first`` and ``last`` with the bounds.
    decide : ``In(1)``
        Decide. 1 in the cycle after ``compare``.
    to_memory, to_control : ``Out(1)``
        The request accesses the memory or the control window; a HELLO accesses neither. Valid from
        the cycle after ``compare`` on.
    refused : ``Out(1)``
        The request must not be executed. Valid from the cycle after ``decide`` on.

    Latency: 2 cycles from ``compare`` to ``refused``. Throughput: a request every 2 cycles.
    """

    def __init__(self, bounds: MemoryBounds, address_bits: int) -> None:
        self._bounds = bounds
        super().__init__(
            {
                "kind": In(Kind),
                "oversize": In(1),
                "minus_left": In(SIZE_BITS),
                "done": In(1),
                "first": In(32),
                "last": In(address_bits + 1),
                "compare": In(1),
                "decide": In(1),
                "to_memory": Out(1),
                "to_control": Out(1),
                "refused": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kind, first, minus_left = self.kind, self.first, self.minus_left
        above = CONTROL_BASE >> CONTROL_ADDRESS_WIDTH
        in_control = first[CONTROL_ADDRESS_WIDTH:] == above
        no_carry = self.last[CONTROL_ADDRESS_WIDTH] == above & 1
        whole_words = ~first[:_WORD_BITS].any() & ~minus_left[:_WORD_BITS].any()
        in_memory = self._bounds.contain(first, self.last)
        reachable = Signal(reset_less=True)
        to_control = Signal(reset_less=True)
        refused = Signal(reset_less=True)
        m.d.sync += reachable.eq(in_memory | (in_control & no_carry & whole_words))
        with m.If(self.compare):
            m.d.sync += to_control.eq(in_control & ~kind.hello)
        m.d.comb += [
            self.to_control.eq(to_control),
            self.to_memory.eq(~to_control & ~kind.hello),
            self.refused.eq(refused),
        ]

        # The top bit is 1 if SIZE is 1 to FRAME_DATA_BYTES.
        fits = minus_left[-1]
        # A request for no bytes may have any address; a HELLO must be such a request.
        allowed = ~kind.unknown & ~self.oversize & (self.done | (fits & reachable & ~kind.hello))
        with m.If(self.decide):
            m.d.sync += refused.eq(~allowed)
        return m
