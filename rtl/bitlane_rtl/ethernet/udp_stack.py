"""From the bytes of a gigabit PHY to UDP datagrams, and back. It only wires components."""

from amaranth.hdl import DomainRenamer, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..board_addresses import BoardAddresses
from ..link import PacketWord
from ..streams import SkidBuffer
from .frame_parser import FrameParser
from .gmii import Gmii
from .mac_receiver import MacReceiver
from .mac_transmitter import MacTransmitter
from .packet_builder import PacketBuilder
from .packet_fifo import PacketFifo
from .packet_router import PacketRouter

__all__ = ["UdpStack"]


class UdpStack(wiring.Component):
    """Receives and sends UDP datagrams, and answers ARP and echo requests (ping) by itself.

    There is no authentication: everybody on the network can send datagrams. A network that cannot
    be trusted must not reach it.

    Parameters
    ----------
    addresses
        The addresses of the board. With ``check``, a query may change the IPv4 address until the
        next reset.
    receive_words
        Words of the FIFO of packets that were received: a power of two, 1,024 or more. A frame is
        dropped if less than 512 of them are free when it begins.
    check
        Drop the datagrams that `DatagramCheck` finds bad, and answer the queries of `abi.queries`.

    The domains ``rx``, ``tx`` and ``sync`` must be reset together. The clock of ``sync`` must have
    more than a quarter of the frequency of that of ``tx``, so that it fills the FIFO in time.

    Throughput: that of the line, from 32 MHz of ``sync`` on. Frames of any legal length may follow
    each other with the least gap.
    """

    rx: In(Gmii())
    """From the PHY, in the domain ``rx``."""
    damaged: Out(1)
    """Asserted in the domain ``rx`` when an illegal or damaged frame has ended."""
    tx: Out(Gmii())
    """To the PHY, in the domain ``tx``."""
    received: Out(stream.Signature(PacketWord))
    """Datagrams. While one is not taken, neither are requests of ARP nor echoes behind it."""
    sent: In(stream.Signature(PacketWord))
    """Datagrams of whole words. The header is as in ``received``: it has the addresses to send
    to."""

    def __init__(
        self, addresses: BoardAddresses, receive_words: int = 1024, *, check: bool = False
    ) -> None:
        self._addresses = addresses
        self._receive_words = receive_words
        self._check = check
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        receiver = MacReceiver()
        parser = FrameParser(self._addresses, check=self._check)
        to_user = PacketFifo(PacketWord, self._receive_words)
        to_line = PacketFifo(32, 1024)
        transmitter = MacTransmitter()
        m.submodules.receiver = DomainRenamer("rx")(receiver)
        m.submodules.parser = DomainRenamer("rx")(parser)
        m.submodules.to_user = DomainRenamer({"write": "rx", "read": "sync"})(to_user)
        # It cuts the path from the user's `ready` to the block RAM.
        m.submodules.registered = registered = SkidBuffer(PacketWord)
        m.submodules.router = router = PacketRouter()
        # It cuts the paths from the user to the sums of the builder, and from its room to the user.
        m.submodules.sending = sending = SkidBuffer(PacketWord)
        m.submodules.builder = builder = PacketBuilder(self._addresses)
        m.submodules.to_line = DomainRenamer({"write": "sync", "read": "tx"})(to_line)
        m.submodules.transmitter = DomainRenamer("tx")(transmitter)
        wiring.connect(m, wiring.flipped(self.rx), receiver.i)
        wiring.connect(m, receiver.o, parser.i)
        m.d.comb += self.damaged.eq(receiver.o.end & ~receiver.o.good)
        wiring.connect(m, parser.o, to_user.i)
        wiring.connect(m, to_user.o, registered.i)
        wiring.connect(m, registered.o, router.i)
        wiring.connect(m, router.received, wiring.flipped(self.received))
        wiring.connect(m, wiring.flipped(self.sent), sending.i)
        wiring.connect(m, sending.o, router.sent)
        wiring.connect(m, router.o, builder.i)
        wiring.connect(m, builder.o, to_line.i)
        wiring.connect(m, to_line.o, transmitter.i)
        wiring.connect(m, transmitter.o, wiring.flipped(self.tx))
        return m
