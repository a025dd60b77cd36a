"""Transfers over any link to a memory, compared byte by byte. No tests here."""

from collections.abc import Callable
from random import Random

from hypothesis import strategies as st

from bitlane.errors import LinkError
from bitlane.links import Link
from bitlane_rtl.abi import CONTROL_BASE, SESSION_SECONDS
from support.board.line import Fault, ModelLine, ModelPort, ModelSocket
from support.board.model import MemoryDevice

BASE = MemoryDevice.memory_base

Make = Callable[..., ModelLine]
LINES: dict[str, Make] = {"serial": ModelPort, "network": ModelSocket}
"""The lines that keep the contract of a link to a board."""

RANGES = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), max_size=6)
"""Gaps and sizes of ranges, for `expect_exchange`."""


def some(size: int) -> bytes:
    """Return bytes of which a quarter are zero, more than in most data."""
    random = Random(size)
    return bytes(random.randrange(256) * (random.random() > 0.25) for _ in range(size))


def expect_well(line: ModelLine) -> None:
    """Expect that a new link to the board of ``line`` works, whose session there may be dead."""
    with line.again(SESSION_SECONDS).link() as link:
        expect_transfer(link, line.board.memory_device, Random(9).randbytes(5000))
        assert link.wait(0) is False


def expect_transfer(link: Link, device: MemoryDevice, data: bytes, offset: int = 77) -> None:
    """Write ``data`` at ``offset`` of the memory; expect it there, and when it is read."""
    link.write(BASE + offset, data)
    assert bytes(device.memory[offset : offset + len(data)]) == data
    assert link.read(BASE + offset, len(data)).tobytes() == data


def expect_exchange(
    link: Link,
    device: MemoryDevice,
    writes: list[tuple[int, int]],
    reads: list[tuple[int, int]],
    seed: int,
) -> None:
    """Exchange `RANGES`, each in its own 6000 bytes, and expect the right bytes everywhere."""
    content = bytearray(device.memory)
    device.written.clear()
    data = [
        (BASE + 6000 * k + gap, Random(seed + k).randbytes(size))
        for k, (gap, size) in enumerate(writes)
    ]
    wanted = [(BASE + 6000 * (k + 6) + gap, size) for k, (gap, size) in enumerate(reads)]
    results = link.exchange(data, wanted)
    assert [x.tobytes() for x in results] == [
        bytes(content[address - BASE : address - BASE + size]) for address, size in wanted
    ]
    for address, written in data:
        content[address - BASE : address - BASE + len(written)] = written
    assert device.memory == content
    assert all(count == 1 for count in device.written.values())


def expect_write(link: Link, device: MemoryDevice, data: bytes, offset: int) -> None:
    """Write; expect the bytes there, none beside them, and every byte written once."""
    before = bytes(device.memory)
    device.written.clear()
    link.write(BASE + offset, data)
    assert bytes(device.memory) == before[:offset] + data + before[offset + len(data) :]
    assert all(count == 1 for count in device.written.values())


def random_exchanges(line: ModelLine, seed: int, count: int) -> list[str]:
    """Make exchanges and write a register; return the error, if there is one, that ends them."""
    random, device = Random(seed), line.board.memory_device
    device.memory[:] = random.randbytes(len(device.memory))
    try:
        with line.link() as link:
            for turn in range(count):
                size = random.choice([1, 4, 60, 512, 3000])
                writes, reads = (
                    [(random.randrange(3000), size)] * random.randrange(2) for _ in range(2)
                )
                expect_exchange(link, device, writes, reads, random.randrange(100))
                link.write(CONTROL_BASE + 0x1C, bytes((turn,)) * 4)
                assert device.window_writes[turn:] == [(0x1C, bytes((turn,)) * 4)]
    except LinkError as error:
        return [str(error)]
    return []


def nth(position: int, change: Fault) -> Fault:
    """Return a fault that changes the frames or datagrams from that at ``position`` on, once."""
    passed = 0

    def apply(units: list[bytes]) -> list[bytes]:
        nonlocal passed
        here, passed = position - passed, passed + len(units)
        if not 0 <= here < len(units):
            return units
        return units[:here] + change(units[here:])

    return apply
