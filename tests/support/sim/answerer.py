"""A small design behind two UART pins, and a model of it in plain Python, for the pin tests.

The design looks up every received byte in a memory, rewrites its cell with the byte and a running
sum, and puts the sum of all received bytes into the answer: one byte for each. A lost, doubled or
reordered byte, a wrong memory cell and a wrong carry all change the answers that follow. `serving`
serves pins on a pseudo-terminal while a test does something else.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins import PtyServer


class Store(Enum):
    """The kind of memory: its number of cells, and whether they have power-on values."""

    BLOCK = 256, True
    TALL = 2048, False
    WIDE = 512, False
    """Words of two cells, each with its own write enable."""
    SINGLE_PORT = 1 << 14, False
    """An instance of iCE40's large RAM."""


def start(store: Store) -> list[int]:
    """Return the cells at power-on."""
    depth, filled = store.value
    return [(index * 37 + 11) % 256 if filled else 0 for index in range(depth)]


def answers(received: Iterable[int], store: Store = Store.BLOCK) -> Iterator[int]:
    """Yield the answers of an ``Answerer`` to the bytes ``received`` since power-on."""
    memory, total = start(store), 0
    for byte in received:
        # The sum reaches the memory's upper cells, and few of them, so that it finds some again.
        cell = (byte + (total >> 12 << 8)) % len(memory)
        total = (total + byte) % 65536
        yield memory[cell] ^ (total >> 8)
        memory[cell] = (byte ^ total) % 256


class Answerer(wiring.Component):
    """A UART of ``divider`` clocks a bit that answers every byte as ``answers`` does.

    An answer is sent while the next byte is received, so that bytes may follow each other without a
    gap. ``busy`` is high from a byte's arrival to the end of its answer.
    """

    rx: In(1, init=1)
    tx: Out(1, init=1)
    busy: Out(1)

    def __init__(self, divider: int, store: Store = Store.BLOCK) -> None:
        self._divider = divider
        self._store = store
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line = Signal(2, init=3)
        m.d.sync += line.eq(Cat(self.rx, line[0]))
        clock = Signal(range(2 * self._divider))
        left = Signal(range(11))
        shift = Signal(8)
        came = Signal()
        m.d.sync += came.eq(0)
        with m.If(left == 0):
            with m.If(~line[1]):
                # Half a bit on is the middle of the start bit.
                m.d.sync += [clock.eq(self._divider // 2), left.eq(10)]
        with m.Elif(clock != 0):
            m.d.sync += clock.eq(clock - 1)
        with m.Else():
            m.d.sync += [clock.eq(self._divider - 1), left.eq(left - 1)]
            with m.If(left != 1):
                m.d.sync += shift.eq(Cat(shift[1:], line[1]))
            m.d.sync += came.eq(left == 2)

        total = Signal(16)
        looked_up = Signal()
        m.d.sync += looked_up.eq(came)
        with m.If(came):
            m.d.sync += total.eq(total + shift)
        byte = Signal(8)
        cell = Signal(14)
        m.d.comb += cell.eq(Cat(shift, total[12:]))
        last = Signal(14)
        m.d.sync += [byte.eq(shift), last.eq(cell)]
        found = Signal(8)
        self._memory(m, came, cell, found, looked_up, last, byte ^ total[:8])

        sending = Signal(10, init=0x3FF)
        bits = Signal(range(11))
        pause = Signal(range(self._divider))
        m.d.comb += [self.tx.eq(sending[0]), self.busy.eq(came | looked_up | (bits != 0))]
        with m.If(looked_up):
            m.d.sync += [
                sending.eq(Cat(0, found ^ total[8:], 1)),
                bits.eq(10),
                pause.eq(self._divider - 1),
            ]
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        with m.Elif(bits != 0):
            m.d.sync += [
                sending.eq(Cat(sending[1:], 1)),
                bits.eq(bits - 1),
                pause.eq(self._divider - 1),
            ]
        return m

    def _memory(
        self,
        m: Module,
        read: Signal,
        cell: Signal,
        found: Signal,
        write: Signal,
        last: Signal,
        data: ValueLike,
    ) -> None:
        if self._store is Store.SINGLE_PORT:
            out = Signal(16)
            m.submodules.memory = Instance(
                "SB_SPRAM256KA",
                i_CLOCK=ClockSignal(),
                i_ADDRESS=Mux(write, last, cell),
                i_DATAIN=Cat(data, data),
                i_MASKWREN=Const(0b0011),
                i_WREN=write,
                i_CHIPSELECT=read | write,
                i_STANDBY=Const(0),
                i_SLEEP=Const(0),
                i_POWEROFF=Const(1),
                o_DATAOUT=out,
            )
            m.d.comb += found.eq(out[:8])
            return
        depth, _ = self._store.value
        if self._store is Store.WIDE:
            words = Memory(shape=16, depth=depth // 2, init=[])
            m.submodules.memory = words
            load, save = words.read_port(), words.write_port(granularity=8)
            upper = Signal()
            with m.If(read):
                m.d.sync += upper.eq(cell[0])
            m.d.comb += [load.addr.eq(cell[1:]), load.en.eq(read)]
            m.d.comb += [found.eq(load.data.word_select(upper, 8))]
            m.d.comb += [save.addr.eq(last[1:]), save.data.eq(Cat(data, data))]
            m.d.comb += [save.en.eq(Cat(write & ~last[0], write & last[0]))]
            return
        m.submodules.memory = memory = Memory(shape=8, depth=depth, init=start(self._store))
        read_port, write_port = memory.read_port(), memory.write_port()
        m.d.comb += [read_port.addr.eq(cell), read_port.en.eq(read), found.eq(read_port.data)]
        m.d.comb += [write_port.addr.eq(last), write_port.data.eq(data), write_port.en.eq(write)]


@contextmanager
def serving(server: PtyServer) -> Iterator[None]:
    """Serve in the background."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            while not stop.is_set():
                server.serve(0.02)
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failures
