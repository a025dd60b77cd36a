"""Bytes of a gigabit line, frames on it, and simulated pins with a double data rate.

Slow and plain, apart from the circuit. Scapy builds and reads the frames to and from a board. The
host's addresses are fixed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
from amaranth.hdl import ClockDomain, ClockSignal, Module, Mux, Signal
from amaranth.lib import io
from numpy.typing import NDArray
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether

from bitlane_rtl.ethernet import BoardAddresses
from cppsim import Model, Program

Columns = Mapping[str, NDArray[Any]]
"""The values of ports in every cycle, by name."""

HEAD = b"\x55" * 7 + b"\xd5"


def with_fcs(content: bytes) -> bytes:
    return content + crc32(content).to_bytes(4, "little")


def padded(content: bytes) -> bytes:
    return content.ljust(60, b"\0")


def frame(content: bytes) -> bytes:
    """Return the frame of ``content``, from destination address to FCS."""
    return with_fcs(padded(content))


@dataclass(frozen=True)
class Burst:
    """Bytes that follow each other on a line, ``idle`` cycles after the bytes before.

    ``errors``: positions of the bytes in which the PHY signals an error.
    """

    data: bytes
    idle: int = 12
    errors: Iterable[int] = ()


def on_line(content: bytes, idle: int = 12, errors: Iterable[int] = ()) -> Burst:
    """Return a legal frame, with preamble and FCS."""
    return Burst(HEAD + frame(content), idle, errors)


def gmii(bursts: Sequence[Burst], after: int = 40) -> Columns:
    """Return the line with ``bursts``, and with ``after`` idle cycles at its end."""
    data, valid, error = bytearray(), bytearray(), bytearray()
    for burst in bursts:
        marks = set(burst.errors)
        data += bytes(burst.idle) + burst.data
        valid += bytes(burst.idle) + b"\1" * len(burst.data)
        error += bytes(burst.idle) + bytes(place in marks for place in range(len(burst.data)))
    idle = bytes(after)
    return {
        name: np.frombuffer(bytes(column + idle), np.uint8)
        for name, column in (("data", data), ("valid", valid), ("error", error))
    }


def bursts_on(line: Columns) -> list[Burst]:
    """Return what was transmitted on ``line``."""
    bursts: list[Burst] = []
    valid = np.concatenate([[0], line["valid"], [0]]).astype(np.int8)
    begins, ends = np.flatnonzero(np.diff(valid) == 1), np.flatnonzero(np.diff(valid) == -1)
    before = 0
    for begin, end in zip(begins, ends, strict=True):
        data = line["data"][begin:end].astype(np.uint8).tobytes()
        errors = np.flatnonzero(line["error"][begin:end])
        bursts.append(Burst(data, int(begin - before), tuple(errors.tolist())))
        before = end
    return bursts


def checked(burst: Burst) -> bytes:
    """Return the frame of ``burst`` without its FCS. Fails if it is not legal."""
    assert not burst.errors
    assert burst.data[:8] == HEAD
    content = burst.data[8:-4]
    assert len(content) >= 60
    assert with_fcs(content) == burst.data[8:]
    return content


def run(model: Model, inputs: Columns, outputs: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Set the ports of ``model`` in every cycle; return its outputs in every cycle."""
    program = Program()
    with program.repeat(len(next(iter(inputs.values())))):
        for name, values in inputs.items():
            program.set(name, values[None])
        for name in outputs:
            program.get(name)
        program.step()
    return model.run(program)


def _buffer(buffer: io.DDRBuffer) -> Module:
    """Return the circuit of a buffer whose port has signals in place of pins.

    A bit at the falling edge is valid together with the one at the rising edge before it.
    """
    m = Module()
    port: Any = buffer.port
    if buffer.direction is io.Direction.Input:
        rising = Signal.like(port.i)
        falling = Signal.like(port.i)
        m.domains.falling = ClockDomain(local=True, reset_less=True, clk_edge="neg")
        m.d.comb += ClockSignal("falling").eq(ClockSignal())
        m.d.sync += [rising.eq(port.i), buffer.i[0].eq(rising), buffer.i[1].eq(falling)]
        m.d.falling += falling.eq(port.i)
    else:
        first, second = Signal.like(port.o), Signal.like(port.o)
        m.d.sync += [first.eq(buffer.o[0]), second.eq(buffer.o[1])]
        m.d.comb += port.o.eq(Mux(ClockSignal(), first, second))
    return m


PLATFORM: Any = SimpleNamespace(get_io_buffer=_buffer)
"""The part of a platform that `amaranth.lib.io` uses."""


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
