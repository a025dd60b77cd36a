"""Small circuits for the tests of the evaluators. No tests here."""

from amaranth.hdl import Assert, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from cppsim import StorageAccess, StoragePort

READS = {"buffer": "ram", "enable": "read", "address": "read_word", "data": "read_data"}
WRITES = {"buffer": "ram", "enable": "write", "address": "write_word", "data": "write_data"}
STORAGE = (
    StoragePort(access=StorageAccess.READ, **READS),
    StoragePort(access=StorageAccess.WRITE, **WRITES, mask="write_mask"),
)
"""Storage of ``Mixer``: words of ``data_width`` bits."""


class Mixer(wiring.Component):
    """A circuit that accesses storage at pseudo-random words through a FIFO, and shows its state.

    It has every kind of port that an evaluator treats differently: one word wide and more,
    registered, combinational from registers, combinational from inputs, constant.
    """

    def __init__(self, data_width: int = 64, words: int = 16) -> None:
        self._words = words
        self._width = data_width
        address = range(words)
        super().__init__(
            {"go": In(1), "salt": In(data_width), "wide": In(100)}
            | {"read": Out(1), "read_word": Out(address), "read_data": In(data_width)}
            | {"write": Out(1), "write_word": Out(address), "write_data": Out(data_width)}
            | {"write_mask": Out(data_width // 8), "count": Out(16), "echo": Out(100)}
            | {"sum": Out(16), "constant": Out(40, init=0x12_3456_789A), "rare": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state = Signal(32, init=0xACE1_1234)
        m.d.sync += state.eq(Cat(state[31] ^ state[21] ^ state[1] ^ state[0], state[:31]))
        fifo = m.submodules.fifo = SyncFIFOBuffered(width=self._width, depth=6)
        came = Signal()
        m.d.sync += came.eq(self.read)
        with m.If(self.go):
            m.d.sync += self.count.eq(self.count + 1)
        m.d.comb += [
            self.read.eq(self.go & state[3]),
            self.read_word.eq(state[8:] % self._words),
            fifo.w_data.eq(self.read_data ^ self.salt),
            fifo.w_en.eq(came),
            fifo.r_en.eq(state[7]),
            self.write.eq(fifo.r_rdy & fifo.r_en),
            self.write_word.eq(state[16:] % self._words),
            # The output of a FIFO's memory after a reset is undefined.
            self.write_data.eq(Mux(fifo.r_rdy, fifo.r_data, 0)),
            self.write_mask.eq(Mux(state[5], ~0, state)),
            self.echo.eq(self.wide * 5 + self.count),
            self.sum.eq(self.count + self.read_data[:16]),
            self.rare.eq((self.count[:5] == 21) & self.go),
        ]
        return m


class Comparer(wiring.Component):
    """A circuit that asserts that its input is not 7."""

    value: In(4)
    last: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += [self.last.eq(self.value), Assert(self.value != 7, "seven is not allowed")]
        return m


class Chain(wiring.Component):
    """A ready chain through one vector: bits of one signal that depend on one another."""

    value: In(8)
    first: Out(8)
    total: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chain = Signal(8)
        m.d.comb += chain[7].eq(self.value[7])
        for bit in range(7):
            m.d.comb += chain[bit].eq(chain[bit + 1] & self.value[bit])
        m.d.comb += self.first.eq(~chain)
        m.d.sync += self.total.eq(self.total + chain)
        return m


class Ripple(wiring.Component):
    """The function of ``Chain`` as one operation on whole words."""

    value: In(8)
    first: Out(8)
    total: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ripple = Signal(8)
        m.d.comb += ripple.eq(self.value & Cat(ripple[1:], 1))
        m.d.comb += self.first.eq(~ripple)
        m.d.sync += self.total.eq(self.total + ripple)
        return m


class Inverter(wiring.Component):
    """An inverter, without a register."""

    i: In(3)
    o: Out(3)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(~self.i)
        return m
