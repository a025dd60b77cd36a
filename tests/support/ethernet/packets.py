"""Frames to and from a board, which scapy builds and reads. The host's addresses are fixed."""

from typing import Any

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether

from bitlane_rtl.ethernet.board_addresses import BoardAddresses

BOARD = BoardAddresses(mac=bytes.fromhex("02a1b2c3d4e5"), port=0xB17E)
BOARD_MAC, BOARD_IP = BOARD.mac.hex(":"), str(BOARD.ip)
HOST_MAC, HOST_IP, HOST_PORT = "02:11:22:33:44:55", "192.168.1.7", 50001


def ethernet(**changes: Any) -> Any:
    return Ether(**{"src": HOST_MAC, "dst": BOARD_MAC, **changes})


def ip(**changes: Any) -> Any:
    return IP(**{"src": HOST_IP, "dst": BOARD_IP, **changes})


def arp(to: str = "ff:ff:ff:ff:ff:ff", **changes: Any) -> Any:
    """Return a request of ARP."""
    fields = {"hwsrc": HOST_MAC, "psrc": HOST_IP, "pdst": BOARD_IP, **changes}
    return ethernet(dst=to) / ARP(**fields)


def echo(data: bytes, **changes: Any) -> Any:
    """Return an echo request of ICMP."""
    return ethernet() / ip() / ICMP(**{"id": 0x1234, "seq": 0xABCD, **changes}) / data


def datagram(data: bytes, **changes: Any) -> Any:
    """Return a UDP datagram to the board."""
    return ethernet() / ip() / UDP(**{"sport": HOST_PORT, "dport": BOARD.port, **changes}) / data


def recomputed(frame: Any) -> Any:
    """Return ``frame`` with lengths and checksums that scapy computes."""
    copy = frame.copy()
    for layer, names in ((IP, ("len", "chksum")), (UDP, ("len", "chksum")), (ICMP, ("chksum",))):
        if layer in copy:
            for name in names:
                delattr(copy[layer], name)
    return copy


def answer(request: Any) -> bytes:
    """Return the frame, without padding, with which a board replies that sends datagrams back.

    Datagrams are sent back in whole words.
    """
    back = Ether(src=BOARD_MAC, dst=request.src)
    if ARP in request:
        asked = request[ARP]
        fields = {"hwsrc": BOARD_MAC, "psrc": BOARD_IP, "hwdst": request.src, "pdst": asked.psrc}
        return bytes(back / ARP(op="is-at", **fields))
    back /= IP(src=BOARD_IP, dst=request[IP].src, id=0, flags="DF", ttl=64)
    if ICMP in request:
        asked = request[ICMP]
        return bytes(back / ICMP(type=0, id=asked.id, seq=asked.seq) / bytes(asked.payload))
    data = bytes(request[UDP].payload)
    ports = UDP(sport=BOARD.port, dport=request[UDP].sport)
    return bytes(back / ports / data.ljust(-(-len(data) // 4) * 4, b"\0"))
