"""Moves the words of requests to and from a memory of words. It has no buffer."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import WORD_BYTES
from ..ports import WordAccess
from .words import DataTransfer

__all__ = ["WordMover"]


class WordMover(wiring.Component):
    """Reads the words of a READ, or writes those of a WRITE, one access each.

    Parameters
    ----------
    address_width
        Width of the memory's addresses.

    Members
    -------
    transfer
        ``done`` is always 1.
    memory
        The word port of the memory.

    Latency: 1 cycle of a READ, 0 of a WRITE. Throughput: a READ a word every 2 cycles, a WRITE one
    a cycle. Paths through it: all from ``transfer`` to ``memory``, and back from ``ready``.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "transfer": In(DataTransfer(address_width)),
                "memory": Out(WordAccess(address_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words, read, memory = self.transfer.words, self.transfer.read, self.memory
        fetches = Signal()
        m.d.comb += [
            fetches.eq(read.ready & ~read.valid),
            memory.enable.eq(words.valid | fetches),
            memory.address.eq(self.transfer.address),
            memory.strobe.eq(words.p.strobe & words.valid.replicate(WORD_BYTES)),
            memory.write_data.eq(words.p.data),
            words.ready.eq(memory.ready),
            read.payload.eq(memory.read_data),
            self.transfer.done.eq(1),
        ]
        m.d.sync += read.valid.eq(fetches & memory.ready)
        return m
