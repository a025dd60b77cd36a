"""Connects a gigabit PHY with memory and control window. It only wires components.

The first request of a datagram, a READ of a word, by the cycles of ``sync`` after the first word of
its packet was at the reader, with a memory that answers in the next cycle::

     0  packet's header -> reader -> executor -> answers      ForwardRegister
     1  packet's header -> packer, which stores it
     6  SESSION -> reader
     7  first word -> reader
     8  ADDRESS at the reader, which decides
     9  first word -> executor
    10  ADDRESS -> executor
    11  last address, number of words
    12  comparison with the bounds
    13  start -> mover                                        Splitter
    14  burst -> read; answer -> answers                      ForwardRegister
    15  answer at the packer; beat -> mover                   Fifo, register
    16  packet's header, SESSION -> stack                     SkidBuffer
    18  word at the executor
    24  answer -> stack; word -> answers
    25  word -> stack

In the middle of a datagram the packet's header is not sent again, and what the reader does for a
request is done while the executor is busy with the one before: a request takes 6 cycles without
data, and a READ of a word 10.
"""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import DATAGRAM_RECEIVE_BYTES
from ..board_addresses import BoardAddresses
from ..configuration import Configuration
from ..link import AnswerPacker, AnswerWord, DataMover, RequestExecutor, RequestReader
from ..ports import ControlPort, ReadPort, WritePort
from ..streams import ForwardRegister
from .gmii import Gmii
from .line_status import LineStatus
from .packet_fifo import PACKET_WORDS
from .udp_stack import UdpStack

__all__ = ["NetworkBridge"]

_RECEIVE_WORDS = 1 << (DATAGRAM_RECEIVE_BYTES // 4 + PACKET_WORDS - 1).bit_length()
"""Words of the FIFO of datagrams, in which a packet needs room for PACKET_WORDS."""


class NetworkBridge(wiring.Component):
    """The board's side of the network link. Its contract is `abi.datagrams`.

    Nothing is authenticated: everybody on the network can use the board. A network that cannot be
    trusted must not reach it.

    Parameters
    ----------
    configuration
        Its widths are those of the memory's ports; its ``memory_base`` and ``memory_bytes`` bound
        the addresses that a host may access.
    addresses
        The addresses of the board.
    clock_hz
        Clocks of ``sync`` a second, for SESSION_SECONDS.

    Members
    -------
    rx
        From the PHY, in the domain ``rx``.
    tx
        To the PHY, in the domain ``tx``.
    read, write
        Ports of the memory.
    control
        Port of the controlled circuit.
        The bridge adds the word of `abi.line_status`.
    interrupt
        Level of the interrupt line of that circuit.
    blink
        Blinks while the PHY reports a link that is not a gigabit. See `LineStatus`.

    The domains and their clocks are those of `UdpStack`.

    Errors of the memory are not reported: see `DataMover`. The memory is accessed while the engine
    runs; a WRITE is answered after its responses, and a READ is requested after all answers before.

    Latency (``sync`` at 50 MHz, memory as below): the answer's preamble begins 1.3 us after the
    last byte of a READ of no data, 1.7 us after that of a READ of 64 bytes, and 1.9 us after that
    of a WRITE of 64 bytes.
    Throughput (cycles of ``sync``): in the middle of a datagram a request without data takes 6, and
    a READ or WRITE of ``w`` words ``w + 9`` with a memory that answers in the next cycle. With one
    that answers after 12 cycles and transfers a beat of 64 bits every 2, a datagram of 1,472 bytes
    with three requests takes 438: 315 MB/s at 93.75 MHz, or 157 in both directions at once, where a
    gigabit line carries 119.6 in each.
    Area (128 KiB of memory, data width 32): 2,234 LUT4, 328 CCU2C, 1,841 flip-flops, 16 LUT RAMs
    and 20 block RAMs on ECP5. The way from a block RAM to the register behind it bounds the clock
    of ``sync``; on the boards, ``rx`` has 140 to 238 MHz and ``tx`` 138 to 188 MHz.
    """

    def __init__(
        self, configuration: Configuration, addresses: BoardAddresses, clock_hz: int
    ) -> None:
        self._stack = UdpStack(addresses, _RECEIVE_WORDS, check=True)
        self._reader = RequestReader(clock_hz)
        self._executor = RequestExecutor(configuration, DATAGRAM_RECEIVE_BYTES)
        self._mover = DataMover(configuration)
        self._line = LineStatus(clock_hz)
        widths = configuration.address_width, configuration.data_width
        super().__init__(
            {
                "rx": In(Gmii()),
                "tx": Out(Gmii()),
                "read": Out(ReadPort(*widths)),
                "write": Out(WritePort(*widths)),
                "control": In(ControlPort()),
                "interrupt": In(1),
                "blink": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.stack = stack = self._stack
        m.submodules.reader = reader = self._reader
        m.submodules.executor = executor = self._executor
        m.submodules.mover = mover = self._mover
        # It cuts the path from a word's source to the CRC of the answers.
        m.submodules.answers = answers = ForwardRegister(AnswerWord)
        m.submodules.packer = packer = AnswerPacker()
        m.submodules.line = line = self._line
        wiring.connect(m, wiring.flipped(self.rx), stack.rx)
        wiring.connect(m, stack.received, reader.i)
        wiring.connect(m, reader.o, executor.i)
        wiring.connect(m, executor.memory, mover.transfer)
        wiring.connect(m, executor.o, answers.i)
        wiring.connect(m, answers.o, packer.i)
        wiring.connect(m, packer.o, stack.sent)
        wiring.connect(m, stack.tx, wiring.flipped(self.tx))
        wiring.connect(m, mover.read, wiring.flipped(self.read))
        wiring.connect(m, mover.write, wiring.flipped(self.write))
        wiring.connect(m, executor.control, line.i)
        wiring.connect(m, line.o, wiring.flipped(self.control))
        m.d.comb += [
            reader.interrupt.eq(self.interrupt),
            executor.interrupt.eq(self.interrupt),
            Cat(line.rx.data, line.rx.valid, line.rx.error).eq(
                Cat(self.rx.data, self.rx.valid, self.rx.error)
            ),
            line.damaged.eq(stack.damaged),
            self.blink.eq(line.blink),
        ]
        return m
