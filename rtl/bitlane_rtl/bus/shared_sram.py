"""An adapter that shares a single-port memory between the engine and the host."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import WORD_BYTES
from ..ports import WordAccess
from ..ports.signatures import memory_members
from .sram import Sram, SramPort

__all__ = ["SharedSram"]


class SharedSram(wiring.Component):
    """An adapter from an engine's ports and a host's word port to a single-port memory.

    Parameters
    ----------
    address_width, data_width, words, read_ports
        The parameters of `SramPort`.

    Members
    -------
    a, b
        Read ports; ``b`` exists only with two.
    write
        The write port.
    host
        Always ready. Address bits above the memory's size are ignored.
    memory
        The memory.

    Latency: as for `SramPort`; ``host`` reads in 1 cycle. Throughput: one access per cycle. The
    engine pauses in each cycle in which the host accesses the memory.
    Area (32 bits, one reader): iCE40 133 LUT4 and 45 flip-flops.
    Path through it: from ``host.enable`` to the memory's ``address``.
    """

    def __init__(
        self, address_width: int, data_width: int, words: int, *, read_ports: int = 2
    ) -> None:
        self._port = SramPort(address_width, data_width, words, read_ports=read_ports)
        self._word_bits = exact_log2(data_width // 32)
        super().__init__(
            memory_members(address_width, data_width, read_ports)
            | {
                "host": In(WordAccess(address_width)),
                "memory": Out(Sram(words, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.port = port = self._port
        for name in port.signature.members:
            if name in ("a", "b", "write"):
                wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(port, name))

        host, engine, memory = self.host, port.memory, self.memory
        lane, beat = host.address[2 : 2 + self._word_bits], host.address[2 + self._word_bits :]
        words = 1 << self._word_bits
        lane_read = Signal(self._word_bits, reset_less=True)
        with m.If(host.enable):
            m.d.sync += lane_read.eq(lane)
        m.d.comb += [
            host.ready.eq(1),
            host.read_data.eq(memory.read_data.word_select(lane_read, 32)),
            port.hold.eq(host.enable),
            engine.read_data.eq(memory.read_data),
            memory.enable.eq(host.enable | engine.enable),
            memory.address.eq(Mux(host.enable, beat, engine.address)),
            memory.strobe.eq(Mux(host.enable, host.strobe << WORD_BYTES * lane, engine.strobe)),
            memory.write_data.eq(
                Mux(host.enable, host.write_data.replicate(words), engine.write_data)
            ),
        ]
        return m
