"""LiteDRAM's read-modify-write merges a partial beat with another word of its burst.

A burst writes two words of 32 bits: all of word 0, and the lower half of word 1.
"""

from collections.abc import Iterator
from typing import Any

from litedram.common import LiteDRAMNativePort
from litedram.frontend.axi import LiteDRAMAXI2Native
from litex.soc.interconnect.axi import AXIInterface
from migen import Module, passive, run_simulation

OLD = [0x0000_0000, 0x1111_1111]
BEATS = [(0x2222_2222, 0b1111), (0x3333_3333, 0b0011)]
EXPECTED = [0x2222_2222, 0x1111_3333]


class Bridge(Module):
    def __init__(self) -> None:
        self.axi = AXIInterface(data_width=32, address_width=32, id_width=1)
        self.port = LiteDRAMNativePort("both", address_width=24, data_width=32)
        self.submodules += LiteDRAMAXI2Native(self.axi, self.port, with_read_modify_write=True)


def manager(axi: Any) -> Iterator[Any]:
    yield axi.b.ready.eq(1)
    yield axi.aw.len.eq(len(BEATS) - 1)
    yield axi.aw.size.eq(2)
    yield axi.aw.burst.eq(1)
    yield axi.aw.valid.eq(1)
    yield
    while not (yield axi.aw.ready):
        yield
    yield axi.aw.valid.eq(0)
    for data, strobes in BEATS:
        yield axi.w.data.eq(data)
        yield axi.w.strb.eq(strobes)
        yield axi.w.last.eq(data == BEATS[-1][0])
        yield axi.w.valid.eq(1)
        yield
        while not (yield axi.w.ready):
            yield
    yield axi.w.valid.eq(0)
    while not (yield axi.b.valid):
        yield
    for _ in range(16):
        yield


@passive
def memory(port: Any, words: list[int]) -> Iterator[Any]:
    """Execute one command at a time. Write whole words, whatever ``port.wdata.we`` says."""
    while True:
        yield port.cmd.ready.eq(1)
        yield
        if not (yield port.cmd.valid):
            continue
        word, write = (yield port.cmd.addr), (yield port.cmd.we)
        yield port.cmd.ready.eq(0)
        if write:
            yield port.wdata.ready.eq(1)
            yield
            while not (yield port.wdata.valid):
                yield
            words[word] = yield port.wdata.data
            yield port.wdata.ready.eq(0)
        else:
            print(f"read of word {word}")
            yield port.rdata.data.eq(words[word])
            yield port.rdata.valid.eq(1)
            yield
            while not (yield port.rdata.ready):
                yield
            yield port.rdata.valid.eq(0)


def main() -> None:
    bridge, words = Bridge(), list(OLD)
    run_simulation(bridge, [manager(bridge.axi), memory(bridge.port, words)])
    for word, (found, expected) in enumerate(zip(words, EXPECTED, strict=True)):
        print(f"word {word}: {found:#010x}, expected {expected:#010x}")


if __name__ == "__main__":
    main()
