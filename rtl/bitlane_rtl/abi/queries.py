"""The contract of queries, which find boards on a network and set their addresses. Plain data only.

A query is a datagram of UDP, of QUERY_BYTES bytes, to the port of the boards:

====== ===== ====================================================================
Offset Bytes Contents
====== ===== ====================================================================
0      8     QUERY, which no datagram of `datagrams` has: its first word is not 0
8      6     the MAC address of one board; 0: all boards
14     2     a number of the host's choice
16     4     an IPv4 address, or 0; the first byte of the address first
====== ===== ====================================================================

It is sent to a board, or to all: to the MAC address of all and to 255.255.255.255. A board answers
it with the same bytes, but with the board's MAC address, from the board's IPv4 address. If both
addresses are 0, the board only answers. If the MAC address is that of the board, and a station can
have the IPv4 address, this is the board's address from then on, also in the answer, until the board
loses power or is configured again. Boards drop every other query, and other datagrams to all.

`is_settable` defines the addresses that a station can have. A session goes on at the new address.

Ethernet and UDP protect queries and answers with their checksums: a query to all does not leave its
network. Nothing is authenticated.
"""

__all__ = ["QUERY", "QUERY_BYTES", "is_settable"]

QUERY = b"\0\0\0\0find"
"""The first bytes of a query, and of its answer."""

QUERY_BYTES = 20


def is_settable(ip: bytes) -> bool:
    """Return whether a board takes ``ip``, 4 bytes: 1.0.0.0 to 223.255.255.255 without 127.*."""
    return 0 < ip[0] < 224 and ip[0] != 127
