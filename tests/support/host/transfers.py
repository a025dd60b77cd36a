"""Transfers over any link to a memory, compared byte by byte. No tests here."""

from random import Random

from hypothesis import strategies as st

from bitlane.links.link import Link
from support.board.model import MemoryDevice

BASE = MemoryDevice.memory_base

RANGES = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), max_size=6)
"""Gaps and sizes of ranges, for `expect_exchange`."""


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
