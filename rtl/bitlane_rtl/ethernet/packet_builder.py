"""Builds frames of packets: headers, checksums and payload, for the transmitter of the MAC."""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..board_addresses import BoardAddresses
from ..link import HEADER_WORDS, PacketKind, PacketWord
from ..primitives import Ram
from .packet_fifo import PacketWrites
from .tables import look_up

__all__ = ["PacketBuilder"]

_WORDS = 11
"""Words of the headers, and of a reply of ARP. `MacTransmitter` ignores the first two bytes."""

_ECHO_WORDS = 10
"""The same without the second word of ICMP's header, which is in the payload."""

_ECHO_CHECKSUM = 9
"""Number of the word with the checksum of ICMP."""

_PSEUDO = 11
"""Number of the word of UDP's pseudo-header that is not in the frame: protocol and length."""

_UDP_HEADER, _IPV4_HEADER, _ETHERNET_HEADER, _ARP_BYTES = 8, 20, 14, 28


class _Word(NamedTuple):
    """The sources of a word of the headers.

    ``constant``: bytes; a bit that is 0 may come from another source. Of its lower and its upper
    half: whether it is a part of the peer's header, word ``peer``; a length; or a part of the
    board's IPv4 address, in ARP the other half.
    """

    constant: bytes = bytes(4)
    peer: int = 0
    from_peer: tuple[bool, bool] = (False, False)
    length: tuple[bool, bool] = (False, False)
    from_board: tuple[bool, bool] = (False, False)


_LOWER, _UPPER, _BOTH = (True, False), (False, True), (True, True)


def _headers(addresses: BoardAddresses) -> tuple[list[_Word], list[_Word], list[_Word]]:
    """Return the words of UDP and of its pseudo-header, of an echo reply, and of ARP."""
    mac = addresses.mac
    common = [
        _Word(peer=1, from_peer=_UPPER, length=_LOWER),
        _Word(peer=2, from_peer=_BOTH),
        _Word(mac[:4]),
    ]
    ipv4 = [
        *common,
        _Word(mac[4:] + b"\x08\0"),
        _Word(b"\x45\0\0\0", length=_UPPER),
        _Word(b"\0\0\x40\0"),  # do not fragment
    ]
    ends = [_Word(from_board=_BOTH), _Word(peer=4, from_peer=_BOTH)]
    udp = [
        *ipv4,
        _Word(b"\x40\x11\0\0"),  # time to live, protocol
        *ends,
        _Word(addresses.port.to_bytes(2, "big") + bytes(2), peer=5, from_peer=_UPPER),
        _Word(length=_LOWER),
        _Word(b"\0\x11\0\0", length=_UPPER),
    ]
    echo = [*ipv4, _Word(b"\x40\x01\0\0"), *ends, _Word()]
    arp = [
        *common,
        _Word(mac[4:] + b"\x08\x06"),
        _Word(b"\0\1\x08\0"),
        _Word(b"\6\4\0\2"),
        _Word(mac[:4]),
        _Word(mac[4:] + bytes(2), from_board=_UPPER),
        _Word(peer=1, from_peer=_UPPER, from_board=_LOWER),
        _Word(peer=2, from_peer=_BOTH),
        _Word(peer=4, from_peer=_BOTH),
    ]
    return udp, echo, arp


class _Step(data.Struct):
    """A step of the script that writes the headers.

    ``number``: the word; ``write``, ``add``: write it into the frame, or add it to the sum.
    ``fold``: add the sum's halves. ``use``: the word's upper half is the sum, which is then 0.
    ``transport``: an echo has not this step, but the use of the sum in another word. ``begin``,
    ``grow``: change the length to that of UDP, or to that of the layer below. ``commit``: the frame
    is complete.
    """

    number: 4 = 15
    write: 1
    add: 1
    fold: 1
    use: 1
    transport: 1
    begin: 1
    grow: 1
    commit: 1


def _step(number: int = 15, **flags: int) -> int:
    """Return the bits of a step; word 15 is 0."""
    return int(_Step.const({"number": number, **flags}).as_bits())


_SCRIPT = (
    _step(begin=1),
    # The checksum of UDP. That of an echo is the sum of its payload alone.
    _step(7, add=1, transport=1),
    _step(8, add=1, transport=1),
    _step(9, write=1, add=1, transport=1),
    _step(10, add=1, transport=1),
    _step(_PSEUDO, add=1, transport=1),
    _step(fold=1),
    _step(1, write=1),
    _step(2, write=1),
    _step(10, write=1, use=1, transport=1, grow=1),
    # The checksum of IPv4's header.
    _step(4, write=1, add=1),
    _step(5, write=1, add=1),
    _step(6, add=1),
    _step(7, write=1, add=1),
    _step(8, write=1, add=1, grow=1),
    _step(fold=1),
    _step(0, write=1),
    _step(3, write=1),
    _step(6, write=1, use=1),
    _step(commit=1),
    # `PacketFifo.room` does not count the frame before.
    _step(),
    _step(),
    _step(),
)
"""A sum is used 3 steps after it is folded, because its last carry is added a step later."""


class PacketBuilder(wiring.Component):
    """Writes the frames of packets into a `PacketFifo`: replies of ARP, echo replies, datagrams.

    The payload is written first, and summed up; the headers follow with the checksums. One adder of
    32 bits serves both checksums.

    Latency: 22 cycles from a packet's last word to ``commit``. Throughput: a word a cycle, and 23
    more cycles for each packet.
    Area: 361 LUT4, 35 CCU2C, 159 flip-flops and 8 LUT RAMs on ECP5. It does not
    bound the clock of `bitlane area --design network`, 129 MHz on ECP5-6 (seeds 1 to 3).
    """

    i: In(stream.Signature(PacketWord))
    """Packets to reply to, or datagrams to send, which have whole words. A query may change the
    IPv4 address until the next reset."""
    o: Out(PacketWrites(32))
    """Frames, to a `PacketFifo`."""

    def __init__(self, addresses: BoardAddresses) -> None:
        self._headers = _headers(addresses)
        self._ip = int.from_bytes(addresses.ip.packed, "little")
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        packet = _Packet(self._ip)
        step: Any = Signal(_Step)
        total = Signal(32)
        self._sequence(m, packet, step)
        self._length(m, packet, step)
        checksum = total[:16] & (step.use & ~packet.arp).replicate(16)
        header = self._header(packet, checksum)
        payload = self.i.payload.data & packet.payload.replicate(32)
        m.d.sync += [
            self.o.word.eq(header | payload),
            self.o.write.eq(step.write | packet.payload),
            self.o.offset.eq(Mux(packet.payload, self.o.words, packet.number)),
            self.o.commit.eq(step.commit),
        ]
        add, fold, clear = Signal(), Signal(), Signal()
        m.d.sync += [
            add.eq(packet.payload | (step.add & ~(step.transport & packet.echo))),
            fold.eq(step.fold),
            clear.eq(step.use),
        ]
        # The complements are added, so that the sum is the checksum, and never 0.
        carry = Signal()
        addend = Mux(fold, total.rotate_left(16), ~self.o.word & add.replicate(32))
        m.d.sync += Cat(total, carry).eq(total + addend + carry)
        with m.If(clear):
            m.d.sync += [total.eq(0), carry.eq(0)]
        return m

    def _sequence(self, m: Module, packet: "_Packet", step: Any) -> None:
        """Drive ``packet`` and ``step``."""
        i, words = self.i, self.o.words
        accepted = i.valid & i.ready
        place = Signal(range(len(_SCRIPT)))
        m.submodules.header = packet.header.memory
        m.d.comb += [
            packet.header.write.addr.eq(packet.index),
            packet.header.write.data.eq(i.payload.data),
            packet.header.write.en.eq(accepted),
            packet.header.read.addr.eq(packet.peer),
        ]
        with m.FSM():
            with m.State("header"):
                m.d.comb += i.ready.eq(self.o.room)
                with m.If(packet.index == 0):
                    kind: Any = data.View(PacketKind, i.payload.data[: PacketKind.as_shape().size])
                    m.d.sync += [
                        packet.arp.eq(kind.arp),
                        packet.echo.eq(kind.echo),
                        packet.sets.eq(kind.sets),
                    ]
                m.d.sync += [words.eq(Mux(packet.echo, _ECHO_WORDS, _WORDS)), place.eq(0)]
                with m.If(accepted):
                    m.d.sync += packet.index.eq(packet.index + 1)
                    with m.If(packet.index == HEADER_WORDS - 1):
                        m.next = "payload"
                    with m.If(i.payload.last):
                        m.next = "script"
            with m.State("payload"):
                m.d.comb += [i.ready.eq(1), packet.payload.eq(i.valid)]
                with m.If(accepted):
                    m.d.sync += words.eq(words + 1)
                    with m.If(i.payload.last):
                        m.next = "script"
                    with m.If(i.payload.last & packet.sets):
                        m.d.sync += packet.ip.eq(i.payload.data)
            with m.State("script"):
                following: Any = Signal(_Step)
                m.d.comb += following.eq(look_up(place, _SCRIPT, len(following.as_value())))
                m.d.sync += [step.eq(following), place.eq(place + 1), packet.index.eq(0)]
                self._select(m, packet, following)
                with m.If(place == len(_SCRIPT) - 1):
                    m.next = "header"

    def _length(self, m: Module, packet: "_Packet", step: Any) -> None:
        """Drive the length: of IPv4's packet at first, then those that ``step`` selects."""
        length = packet.length
        with m.If(self.i.ready & (packet.index == 3)):
            m.d.sync += length.eq(Cat(self.i.payload.data[24:], self.i.payload.data[16:19]))
        with m.If(packet.payload & ~packet.echo):
            m.d.sync += length.eq((self.o.words + 1) << 2)
        # Of a datagram, the length at first is that of its words in the FIFO.
        skipped = 4 * _WORDS - _UDP_HEADER
        with m.If(step.begin):
            m.d.sync += length.eq(length - Mux(packet.echo, _IPV4_HEADER, skipped))
            with m.If(packet.arp):
                m.d.sync += length.eq(_ARP_BYTES - _IPV4_HEADER)
        with m.If(step.grow):
            m.d.sync += length.eq(length + Mux(step.use, _IPV4_HEADER, _ETHERNET_HEADER))

    def _select(self, m: Module, packet: "_Packet", step: Any) -> None:
        """Select the word of the next step, and of the peer's header, a cycle ahead of their use.

        The RAM with the peer's header, and what follows it, takes most of a cycle.
        """
        number = Signal.like(step.number)
        m.d.comb += number.eq(step.number)
        with m.If(step.transport & step.use & packet.echo):
            m.d.comb += number.eq(_ECHO_CHECKSUM)
        index = Cat(number, packet.echo, packet.arp)
        peers = [word.peer for word in self._words()]
        m.d.sync += [
            packet.number.eq(number),
            packet.peer.eq(look_up(index, peers, len(packet.peer))),
        ]

    def _words(self) -> list[_Word]:
        """Return the words of the headers by their number and the packet's kind."""
        udp, echo, arp = ([*words, *[_Word()] * (16 - len(words))] for words in self._headers)
        return [*udp, *echo, *arp, *arp]

    def _header(self, packet: "_Packet", total: Value) -> Value:
        """Return the selected word of the headers, with ``total`` as its checksum."""
        index = Cat(packet.number, packet.echo, packet.arp)
        words = self._words()
        constant = look_up(index, [int.from_bytes(word.constant, "little") for word in words], 32)
        peer = packet.header.read.data
        board = Mux(packet.arp, packet.ip.rotate_left(16), packet.ip)
        big_endian = Cat(packet.length[8:], Const(0, 5), packet.length[:8])
        halves = []
        for half in range(2):
            from_peer = look_up(index, [word.from_peer[half] for word in words], 1)
            is_length = look_up(index, [word.length[half] for word in words], 1)
            from_board = look_up(index, [word.from_board[half] for word in words], 1)
            halves.append(
                (peer.word_select(half, 16) & from_peer.replicate(16))
                | (big_endian & is_length.replicate(16))
                | (board.word_select(half, 16) & from_board.replicate(16))
            )
        return constant | Cat(*halves) | Cat(Const(0, 16), total)


class _Packet:
    """Signals of the packet that is built."""

    def __init__(self, ip: int) -> None:
        self.ip = Signal(32, name="ip", init=ip)
        """The board's IPv4 address."""
        self.arp = Signal(name="arp", reset_less=True)
        self.echo = Signal(name="echo", reset_less=True)
        self.sets = Signal(name="sets", reset_less=True)
        """The last word is the board's IPv4 address from now on."""
        self.header = Ram(32, 8, style="distributed")
        """The words of the packet's header. Words of the payload are written behind them."""
        self.index = Signal(3, name="index")
        """Index of the next word, up to the header's end."""
        self.number = Signal(4, name="number", init=15)
        """Number of the word of this step; word 15 is 0."""
        self.peer = Signal(3, name="peer")
        """Index of the word of the peer's header that it contains."""
        self.payload = Signal(name="payload")
        """A word of the payload arrives in this cycle."""
        self.length = Signal(11, name="length", reset_less=True)
