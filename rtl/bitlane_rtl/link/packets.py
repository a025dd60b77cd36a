"""The layout of packets between the parser, the user of datagrams and the builder.

A packet is a header of HEADER_WORDS words and a payload. Word 0 is a `PacketKind`. The others are
parts of the frame that came from the other side, in the order of the line:

====  ======================================================================
Word  Bytes
====  ======================================================================
1     2 that are ignored; bytes 0 and 1 of the MAC address
2     bytes 2 to 5 of the MAC address
3     2 that are ignored; the total length of the IPv4 packet (only of an echo)
4     the IPv4 address
5     2 that are ignored; the UDP port (only of a datagram)
====  ======================================================================

A datagram's payload is that of UDP. That of an echo starts with the identifier. An ARP packet ends
after word 4. Unused bytes of the last word are 0.
"""

from amaranth.lib import data

__all__ = ["HEADER_WORDS", "PacketKind", "PacketWord"]

HEADER_WORDS = 6


class PacketKind(data.Struct):
    """The kind of a packet: a request of ARP, an echo request of ICMP, a query, else a datagram.

    ``query``: a datagram of `abi.queries`, to be sent back as it is. ``sets``: it is one whose last
    word is the IPv4 address of the board from now on.
    """

    arp: 1
    echo: 1
    query: 1
    sets: 1


class PacketWord(data.Struct):
    """A word of a packet, the first byte in the lowest bits; ``last``: the packet ends with it."""

    data: 32
    last: 1
