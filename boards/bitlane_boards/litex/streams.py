"""LiteDRAM's own DMAs on ports like the core's: they measure what these ports can carry."""

from functools import reduce
from operator import and_
from typing import Any

from litedram.frontend.dma import LiteDRAMDMAReader, LiteDRAMDMAWriter
from litex.gen import If, LiteXModule, Signal
from litex.soc.interconnect.csr import CSRStatus, CSRStorage

__all__ = ["DmaStreams"]


class DmaStreams(LiteXModule):
    """Three DMAs that start in one cycle: Y writes, and A and B read.

    Parameters
    ----------
    sdram : LiteDRAMCore
        Gives each DMA a port.
    data_width : int
        Bits of a word, and of each port.
    buffer_words : int
        Words that each DMA buffers.

    Attributes
    ----------
    enable : CSRStorage
        Bits 0 to 2 run Y, A and B; 0 resets the counters.
    coupled : CSRStorage
        Whether Y writes a word for each word of A, B or A ^ B. Otherwise no DMA waits for another.
    words : CSRStorage
        Words that each DMA transfers.
    y_base, a_base, b_base : CSRStorage
        Numbers of the first words in the memory.
    done : CSRStatus
        Whether the enabled DMAs have transferred all words.
    cycles : CSRStatus
        Cycles until then.
    """

    def __init__(self, sdram: Any, data_width: int, buffer_words: int) -> None:
        ports = [sdram.crossbar.get_port(data_width=data_width) for _ in range(3)]
        address_bits = len(ports[0].cmd.addr)
        self.enable = CSRStorage(3)
        self.coupled = CSRStorage()
        self.words = CSRStorage(address_bits)
        self.y_base = CSRStorage(address_bits)
        self.a_base = CSRStorage(address_bits)
        self.b_base = CSRStorage(address_bits)
        self.done = CSRStatus()
        self.cycles = CSRStatus(32)
        self.y = y = LiteDRAMDMAWriter(ports[0], buffer_words)
        self.a = a = LiteDRAMDMAReader(ports[1], buffer_words)
        self.b = b = LiteDRAMDMAReader(ports[2], buffer_words)

        # # #

        runs_y, runs_a, runs_b = self.enable.storage
        free = ~self.coupled.storage
        operands = (a.source.valid | ~runs_a) & (b.source.valid | ~runs_b)
        written = ports[0].wdata.valid & ports[0].wdata.ready
        done = [
            self._run(y, runs_y, self.y_base, written, free | operands),
            self._run(a, runs_a, self.a_base, a.source.valid & a.source.ready),
            self._run(b, runs_b, self.b_base, b.source.valid & b.source.ready),
        ]
        self.comb += [
            y.sink.data.eq(a.source.data ^ b.source.data),
            a.source.ready.eq(free | (operands & y.sink.ready)),
            b.source.ready.eq(free | (operands & y.sink.ready)),
            self.done.status.eq(reduce(and_, done)),
        ]
        self.sync += [
            If(~self.done.status, self.cycles.status.eq(self.cycles.status + 1)),
            If(self.enable.storage == 0, self.cycles.status.eq(0)),
        ]

    def _run(
        self, dma: Any, enable: Signal, base: CSRStorage, transferred: Any, ready: Any = 1
    ) -> Any:
        """Request all words of ``dma`` while ``ready``; return whether it is idle or done."""
        words = self.words.storage
        requests, transfers = Signal.like(words), Signal.like(words)
        self.comb += [
            dma.sink.valid.eq(enable & ready & (requests != words)),
            dma.sink.address.eq(base.storage + requests),
        ]
        self.sync += [
            requests.eq(requests + (dma.sink.valid & dma.sink.ready)),
            transfers.eq(transfers + transferred),
            If(~enable, requests.eq(0), transfers.eq(0)),
        ]
        return ~enable | (transfers == words)
