"""Buffers a batch of queries and the next rows in one RAM; it does not distinguish the two."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..primitives import Ram
from .layouts import Sizes

__all__ = ["Store", "StoreWrite"]


class StoreWrite(wiring.Signature):
    """Signature of the store's write port: ``data`` to the word ``word`` of a row at ``address``.

    It writes in each cycle in which ``enable`` is 1.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(range(sizes.store_depth)),
                "word": Out(range(sizes.words)),
                "data": Out(sizes.data_width),
            }
        )


class Store(wiring.Component):
    """A block RAM that is written by beats and read by whole rows.

    Members
    -------
    write
        The beat to write.
    address
        The row to read. It must not be written in the same cycle.
    row
        The row at the ``address`` of the cycle before.

    Latency: 1 cycle. Throughput: a write of a beat and a read of a row a cycle.
    Area: a block RAM of 64 bits for every 64 bits of a row, and an enable for each.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        super().__init__(
            {
                "write": In(StoreWrite(sizes)),
                "address": In(range(sizes.store_depth)),
                "row": Out(sizes.search.row_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = []
        for word in range(self._sizes.words):
            ram = Ram(self._sizes.data_width, self._sizes.store_depth, output=f"shown_{word}")
            m.submodules[f"word_{word}"] = ram.memory
            m.d.comb += [
                ram.write.en.eq(self.write.enable & (self.write.word == word)),
                ram.write.addr.eq(self.write.address),
                ram.write.data.eq(self.write.data),
                ram.read.addr.eq(self.address),
            ]
            m.d.sync += ram.load()
            words.append(ram.output)
        m.d.comb += self.row.eq(Cat(words))
        return m
