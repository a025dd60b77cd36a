"""Selects the frames that are meant for the board, and stores what a reply needs.

It stores no byte of a frame for good before the end of the frame, when everything is checked.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import QUERY, QUERY_BYTES
from ..board_addresses import BoardAddresses
from ..link import DatagramCheck, PacketWord
from .byte_sum import ByteSum
from .gmii import FrameBytes
from .packet_fifo import PACKET_WORDS, PacketWrites
from .tables import look_up

__all__ = ["FrameParser"]


class _Field(NamedTuple):
    """A field of a frame. Its bytes are checked if ``value`` is not None, and may be stored."""

    size: int
    value: bytes | None = None
    stored: bool = False


_TYPE, _ARP_TYPE, _TAG_TYPE = 0x08, 0x06, 0x81
"""The first byte of the types of IPv4 and ARP, the second one of ARP, the first one of a tag."""

_ECHO_PROTOCOL, _UDP_PROTOCOL = 1, 17
_MOST_PACKET_BYTES = 1500
_TYPE_POSITION = 12
_DATA_POSITION = 42
"""The position of the first byte of a datagram."""

_PSEUDO_HEADER = (1 << 16) - 1 - 20
"""Minus the length of the IPv4 header, in ones' complement: with the total length, that of UDP."""


def _fields(addresses: BoardAddresses) -> tuple[Sequence[_Field], Sequence[_Field]]:
    """Return the fields of an ARP request, and of a UDP datagram or an echo request in IPv4.

    Fields whose rule depends on more than the byte have no value. The datagram is a query.
    """
    ethernet = [
        _Field(4, addresses.mac[:4]),
        _Field(2, addresses.mac[4:], stored=True),
        _Field(6, stored=True),  # source
        _Field(2),  # type
    ]
    arp = [
        _Field(4, b"\0\1\x08\0", stored=True),
        _Field(4, b"\6\4\0\1"),
        _Field(6),  # MAC address of the sender: as the source
        _Field(4, stored=True),  # IPv4 address of the sender
        _Field(6),
        _Field(4),  # IPv4 address of the board
    ]
    ipv4 = [
        _Field(1, b"\x45", stored=True),
        _Field(1, stored=True),  # type of service
        _Field(2, stored=True),  # total length
        _Field(2),
        _Field(1),  # flags
        _Field(1, b"\0"),
        _Field(4),
        _Field(4, stored=True),  # source
        _Field(2),  # IPv4 address of the board
        _Field(2, stored=True),
        _Field(2, b"\x08\0", stored=True),  # type and code of ICMP, or source port
        _Field(2, addresses.port.to_bytes(2, "big")),
        _Field(4),
        _Field(len(QUERY), QUERY),
        _Field(6, addresses.mac),
    ]
    return [*ethernet, *arp], [*ethernet, *ipv4]


class _Tables(NamedTuple):
    """Positions in a frame: of bytes that are checked, and stored; and the bytes to compare with.

    ``values``: positions by bit of the byte.
    """

    checked: list[int]
    stored: list[int]
    values: list[list[int]]


def _tables(fields: Iterable[_Field]) -> _Tables:
    tables = _Tables([], [], [[] for _ in range(8)])
    position = 0
    for field in fields:
        positions = range(position, position + field.size)
        position += field.size
        if field.stored:
            tables.stored.extend(positions)
        if field.value is not None:
            tables.checked.extend(positions)
            for place, byte in zip(positions, field.value, strict=True):
                for bit in range(8):
                    if byte >> bit & 1:
                        tables.values[bit].append(place)
    return tables


class FrameParser(wiring.Component):
    """Stores the packets of requests of ARP, of echo requests of ICMP and of UDP datagrams.

    A frame is dropped unless it is good and for ``addresses``; a request of ARP may be for all, and
    so may a query of `abi.queries`. The source, to which an answer would go, is the MAC address of
    one station, not of a group. A tag of VLAN 0, which has only a priority (IEEE 802.1Q-2022, 9.6),
    is removed; frames with other tags are dropped. IPv4 headers have no options, and datagrams are
    not fragments. The checksum of IPv4, and that of UDP or ICMP, must be right; in UDP, 0 means
    that there is none. The lengths must agree: UDP's is that of IPv4 less 20, which is 1,500 at
    most, and the frame has at least as many bytes. A datagram without data is dropped, and one
    whose source port is the board's: two boards would answer each other for ever.

    Parameters
    ----------
    addresses
        The addresses of the board. A query may change the IPv4 address until the next reset.
    check
        Drop the datagrams that `DatagramCheck` finds bad, and accept queries.

    Latency: ``commit`` 3 cycles after ``i.end``. Throughput: a byte a cycle.
    Area: 334 LUT4, 31 CCU2C and 174 flip-flops on ECP5; with ``check`` 518, 37 and 313.
    Clock: 158 MHz on ECP5-6, of ``rx`` in `bitlane area --design network` (seed 1).
    """

    i: In(FrameBytes())
    """Frames from the `MacReceiver`."""
    o: Out(PacketWrites(PacketWord))
    """Packets, to a `PacketFifo`."""

    def __init__(self, addresses: BoardAddresses, *, check: bool = False) -> None:
        self._addresses = addresses
        self._check = check
        arp, ipv4 = _fields(addresses)
        self._arp_tables, self._ipv4_tables = _tables(arp), _tables(ipv4)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Of the byte at the input, not counting a tag; 63 stands for all behind the headers.
        position = Signal(6)
        end = Signal(3)
        good = Signal(3, reset_less=True)
        m.d.sync += [end.eq(Cat(self.i.end, end)), good.eq(Cat(self.i.good, good))]

        byte = _Byte(m, self.i, position, end)
        with m.If(self.i.end):
            m.d.sync += position.eq(0)
        with m.Elif(self.i.valid & byte.skipped):
            m.d.sync += position.eq(_TYPE_POSITION)
        with m.Elif(self.i.valid & ~position.all()):
            m.d.sync += position.eq(position + 1)
        last = Signal()
        ended = Signal()
        legal = Signal(reset_less=True)
        self._follow_length(m, byte, last, ended)
        sums = self._sums(m, byte, ended)
        differs = self._differs(m, byte)
        query = _Query(m, byte, differs, last) if self._check else None
        ours = self._compare(m, byte, differs, query)
        whole = self._store(m, byte, last, ended, query)
        m.d.sync += legal.eq(sums & ours & whole & self._datagram(m, byte, query))
        m.d.comb += self.o.commit.eq(end[2] & good[2] & legal)
        if query:
            with m.If(self.o.commit & query.sets):
                m.d.sync += self._ip.eq(query.address)
        return m

    def _follow_length(self, m: Module, byte: "_Byte", last: Signal, ended: Signal) -> None:
        """Drive ``last``: the byte is the last one of its packet. Bad lengths are wrong."""
        value, echo, most = byte.value, byte.echo, _MOST_PACKET_BYTES
        # Bytes of IPv4 that follow the header's, from byte 39 on one more than are left: the length
        # in UDP's header is compared with it at bytes 38 and 39.
        left = Signal(11, reset_less=True)
        high, low = byte.at(m, [16]), byte.at(m, [17])
        udp_high, udp_low = byte.at(m, [38]), byte.at(m, [39])
        with m.If(high):
            m.d.sync += left[8:].eq(value)
        with m.Elif(low):
            m.d.sync += left[:8].eq(value)
        with m.Elif(~udp_high):
            m.d.sync += left.eq(left - 1)
        too_short = left[3:] == 0
        m.d.comb += [
            byte.payload.eq(
                ~byte.arp & ~ended & Mux(echo, byte.at(m, range(38, 64)), byte.at(m, range(42, 64)))
            ),
            last.eq((byte.payload & (left == 6)) | (byte.arp & byte.at(m, [31]))),
        ]
        differs = (udp_high & (value != left[8:])) | (udp_low & (value != left[:8]))
        byte.wrong += [
            high & ~byte.arp & (value > most >> 8),
            low & ~byte.arp & (left[8:] == most >> 8) & (value > most & 0xFF),
            ~byte.arp & ((udp_high & too_short) | (~echo & differs)),
        ]

    def _sums(self, m: Module, byte: "_Byte", ended: Signal) -> Value:
        """Return whether the checksums are right, if the packet has any."""
        m.submodules.header_sum = header = ByteSum()
        m.submodules.data_sum = data = ByteSum(_PSEUDO_HEADER)
        pseudo = byte.at(m, [16, 17, 23, *range(26, 34)])
        inside = byte.at(m, range(34, 64)) & ~ended
        m.d.comb += [
            header.clear.eq(byte.at(m, range(14))),
            header.byte.eq(byte.value & byte.at(m, range(14, 34)).replicate(8)),
            data.clear.eq(header.clear),
            # An echo's checksum has no pseudo-header.
            data.zero.eq(byte.at(m, [33]) & byte.echo),
            data.byte.eq(byte.value & (pseudo | inside).replicate(8)),
        ]
        none = Signal(reset_less=True)  # a datagram without a checksum
        with m.If(byte.at(m, [40])):
            m.d.sync += none.eq(~byte.echo & (byte.value == 0))
        with m.If(byte.at(m, [41])):
            m.d.sync += none.eq(none & (byte.value == 0))
        return byte.arp | (header.complete & (data.complete | none))

    def _datagram(self, m: Module, byte: "_Byte", query: "_Query | None") -> Value:
        """Return whether the packet is not a bad datagram."""
        if query is None:
            return Const(1)
        m.submodules.check = check = DatagramCheck()
        m.d.comb += [
            check.reset.eq(byte.reset),
            check.valid.eq(byte.payload),
            check.byte.eq(byte.value),
        ]
        return byte.arp | byte.echo | query.valid | check.good

    def _differs(self, m: Module, byte: "_Byte") -> Value:
        """Return whether the byte is not its field's value. Drive ``byte.expected``."""
        tables = zip(self._arp_tables.values, self._ipv4_tables.values, strict=True)
        expected = [byte.of_type(m, of_arp, of_ipv4) for of_arp, of_ipv4 in tables]
        m.d.comb += byte.expected.eq(Cat(expected))
        return byte.value != byte.expected

    def _compare(self, m: Module, byte: "_Byte", differs: Value, query: "_Query | None") -> Value:
        """Return whether the headers are those of a frame for this board."""
        arp, ipv4 = self._arp_tables, self._ipv4_tables
        value = byte.value
        destination = byte.at(m, range(6))
        either = [place for place in ipv4.checked if 6 <= place < 34]
        checked = byte.of_type(m, [place for place in arp.checked if place >= 6], either)
        by_protocol = Mux(byte.echo, byte.at(m, [34, 35]), byte.at(m, [36, 37])) & ~byte.arp
        source_high, source_low = byte.at(m, [34]), byte.at(m, [35])
        port = self._addresses.port
        own_port = Signal(reset_less=True)  # as far as the first byte of the source port
        with m.If(source_high):
            m.d.sync += own_port.eq(value == port >> 8)
        byte.wrong += [
            (checked | by_protocol) & differs,
            byte.at(m, [6]) & value[0],  # the source is a group
            source_low & ~byte.arp & ~byte.echo & own_port & (value == port & 0xFF),
            byte.at(m, [_TYPE_POSITION]) & ~byte.starts_tag & (value != _TYPE),
            byte.at(m, [13]) & ((value & (0xFF ^ _ARP_TYPE)).any() | (value[1] ^ value[2])),
            # Of the flags, one may be 1: do not fragment.
            byte.at(m, [20]) & ~byte.arp & (value & 0xBF).any(),
            byte.at(m, [23]) & ~byte.arp & (value != _UDP_PROTOCOL) & (value != _ECHO_PROTOCOL),
        ]
        ip_differs = self._ip_differs(m, byte)
        of_arp, of_ipv4 = (
            byte.of_type(m, *ranges) for ranges in ((range(38, 42), ()), ((), range(30, 34)))
        )
        byte.wrong += [of_arp & ip_differs]
        wrong, elsewhere, not_all = Signal(), Signal(), Signal()
        other = (destination & differs) | (of_ipv4 & ip_differs)
        not_one = (destination | of_ipv4) & (value != 0xFF)
        m.d.sync += [
            wrong.eq((wrong | Cat(byte.wrong).any()) & ~byte.reset),
            elsewhere.eq((elsewhere | other) & ~byte.reset),
            not_all.eq((not_all | not_one) & ~byte.reset),
        ]
        may_be_for_all = byte.arp | query.valid if query else byte.arp
        return ~wrong & (~elsewhere | (may_be_for_all & ~not_all))

    def _ip_differs(self, m: Module, byte: "_Byte") -> Value:
        """Return whether the byte is another one than that of the board's IPv4 address.

        It is valid in the fields of that address, whose positions in both types of frame have the
        same lowest bits.
        """
        self._ip = Signal(32, init=int.from_bytes(self._addresses.ip.packed, "little"))
        own = Signal(8, reset_less=True)
        m.d.sync += own.eq(self._ip.word_select(byte.position[:2] ^ 2, 8))
        return byte.value != own

    def _store(
        self, m: Module, byte: "_Byte", last: Signal, ended: Signal, query: "_Query | None"
    ) -> Value:
        """Write the stored bytes. Return whether the packet fitted, and its frame is complete."""
        value: Value = byte.value | query.mac if query else byte.value
        stored = byte.payload | byte.of_type(m, self._arp_tables.stored, self._ipv4_tables.stored)
        lane = Signal(2)
        trailer = Signal(4)  # number of bytes behind the packet, one hot: the FCS at least
        full = Signal()
        count = Signal(range(PACKET_WORDS), init=1)
        is_kind = Signal()
        m.d.comb += [self.o.offset.eq(Mux(is_kind, 0, count)), self.o.words.eq(count)]
        m.d.sync += [
            self.o.write.eq(((stored & (last | (lane == 3))) | (byte.ended & ended)) & ~full),
            self.o.word.last.eq(last),
            is_kind.eq(byte.ended),
        ]
        for number in range(4):
            with m.If(stored & ((lane == number) | (lane == 0))):
                m.d.sync += self.o.word.data.word_select(number, 8).eq(
                    value & (lane == number).replicate(8)
                )
        of_query = (query.valid, query.sets) if query else (Const(0), Const(0))
        kind = Cat(byte.arp, byte.echo, *of_query)
        with m.If(byte.ended):
            m.d.sync += self.o.word.data[: len(kind)].eq(kind)
        with m.If(stored):
            m.d.sync += lane.eq(lane + 1)
        with m.If(last):
            m.d.sync += ended.eq(1)
        with m.If(byte.valid):
            m.d.sync += trailer.eq(Cat(ended, trailer))
        # The packet before may be committed later than this one begins. Nothing is written yet.
        with m.If(byte.at(m, [5]) & ~self.o.room):
            m.d.sync += full.eq(1)
        with m.If(self.o.write & ~is_kind):
            m.d.sync += count.eq(count + 1)
        with m.If(byte.reset):
            m.d.sync += [Cat(lane, ended, trailer, full).eq(0), count.eq(1)]
        return trailer[3] & ~full


class _Byte:
    """The byte that was at the input a cycle before, and the state of its frame.

    ``position``: of the byte at the input. ``expected``: the value of the byte's field.
    ``ended``: the frame ended with the byte before. ``reset``: the frame is committed or dropped.
    ``wrong``: conditions to drop the frame. ``starts_tag``: the byte is a tag's first one.
    ``skipped``: the byte at the input is the third or fourth of a tag, and has no position.
    """

    def __init__(self, m: Module, i: Any, position: Signal, end: Signal) -> None:
        self.position = position
        self.expected = Signal(8, name="expected")
        self.ended, self.reset = end[0], end[2]
        self.value = Signal(8, name="byte", reset_less=True)
        self.valid = Signal(name="valid")
        self.payload = Signal(name="payload")
        tag = Signal(3, name="tag")  # one hot: the byte is the second, third or fourth of a tag
        tagged = Signal(name="tagged")
        self.skipped = tag[0] | tag[1]
        self._entering = i.valid & ~self.skipped
        self.starts_tag = self.at(m, [_TYPE_POSITION]) & ~tagged & (self.value == _TAG_TYPE)
        m.d.sync += [
            tag.eq(Cat(self.starts_tag, tag)),
            tagged.eq((tagged | self.starts_tag) & ~self.reset),
        ]
        vlan = self.value & Mux(tag[1], 0x0F, 0xFF)  # its first bits are a priority
        self.wrong: list[Value] = [tag.any() & vlan.any()]
        # The type selects the tables of the bytes behind it, and so it is ahead of them.
        self.arp = Signal(name="arp", reset_less=True)
        self.echo = Signal(name="echo", reset_less=True)
        m.d.sync += [self.value.eq(i.byte), self.valid.eq(i.valid)]
        with m.If(position == 13):
            m.d.sync += self.arp.eq(i.byte == _ARP_TYPE)
        with m.If(position == 23):
            m.d.sync += self.echo.eq(~self.arp & (i.byte == _ECHO_PROTOCOL))

    def at(self, m: Module, positions: Iterable[int]) -> Signal:
        """Return a register: 1 if the byte is at one of ``positions`` of its frame."""
        return self._register(m, self._table(positions))

    def of_type(self, m: Module, arp: Iterable[int], ipv4: Iterable[int]) -> Signal:
        """Return the same, with one set of positions for each type of frame."""
        return self._register(m, Mux(self.arp, self._table(arp), self._table(ipv4)))

    def _table(self, positions: Iterable[int]) -> Value:
        chosen = set(positions)
        return look_up(self.position, [place in chosen for place in range(64)], 1)

    def _register(self, m: Module, value: Value) -> Signal:
        flag = Signal(name="flag", reset_less=True)
        m.d.sync += flag.eq(value & self._entering)
        return flag


class _Query:
    """Recognises a query of `abi.queries` in a datagram.

    ``valid``: the datagram is a query that the board answers. ``sets``: it sets the board's IPv4
    address to ``address``. All are valid behind the datagram's last byte. ``mac``: the byte of
    the board's MAC address at its position in the answer; else 0.
    """

    def __init__(self, m: Module, byte: _Byte, differs: Value, last: Signal) -> None:
        mac, ip = _DATA_POSITION + len(QUERY), _DATA_POSITION + QUERY_BYTES - 4
        in_query = byte.at(m, range(_DATA_POSITION, mac))
        in_mac, in_ip = byte.at(m, range(mac, mac + 6)), byte.at(m, range(ip, ip + 4))
        first, at_end = byte.at(m, [ip]), byte.at(m, [ip + 3])
        value = byte.value
        # As `abi.queries.is_settable`.
        settable = (value[:7].any() & ~value[:7].all() & ~value[7]) | (value[7] & ~value[5:7].all())
        other = Signal(name="no_query")
        named = Signal(name="named")  # an address that is not 0
        refused = Signal(name="refused")  # another board's MAC address, or a bad IPv4 address
        whole = Signal(name="whole_query")
        self.address = Signal(32, name="new_ip", reset_less=True)
        with m.If(in_ip):
            m.d.sync += self.address.eq(Cat(self.address[8:], value))
        with m.If(last):
            m.d.sync += whole.eq(at_end)
        m.d.sync += [
            other.eq((other | (in_query & (differs | byte.echo))) & ~byte.reset),
            named.eq((named | ((in_mac | in_ip) & value.any())) & ~byte.reset),
            refused.eq((refused | (in_mac & differs) | (first & ~settable)) & ~byte.reset),
        ]
        query = whole & ~other & ~byte.arp & ~byte.echo
        self.valid = Signal(name="is_query")
        self.sets = Signal(name="sets_ip")
        m.d.comb += [self.valid.eq(query & ~(named & refused)), self.sets.eq(query & ~refused)]
        self.mac = byte.expected & (in_mac & ~other).replicate(8)
