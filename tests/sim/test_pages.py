"""The simulated memory's pages: what is forgotten takes no memory, and what is beside it stays."""

import mmap
import re
from pathlib import Path

import numpy as np
import pytest

from bitlane_sim.pages import Pages
from support.sim.resident import resident_bytes

PAGE = mmap.PAGESIZE


def full(pages: int) -> Pages:
    """Pages that are all written."""
    made = Pages(pages * PAGE)
    made.bytes[:] = 1
    return made


def test_a_large_memory_takes_nothing_until_it_is_written() -> None:
    memory = Pages(1 << 30).bytes
    assert memory.size == 1 << 30
    assert resident_bytes(memory) == 0
    memory[1 << 20] = 5
    assert resident_bytes(memory) < 1 << 24
    assert memory[(1 << 20) - 1 : (1 << 20) + 2].tolist() == [0, 5, 0]


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").is_dir(), reason="no such pages"
)
def test_large_memory_may_have_huge_pages() -> None:
    memory = Pages(1 << 30).bytes
    flags = re.findall(
        r"^(\w+)-(\w+) .*?^VmFlags:(.*?)$", Path("/proc/self/smaps").read_text(), re.M | re.S
    )
    address = memory.ctypes.data
    (own,) = [x for first, end, x in flags if int(first, 16) <= address < int(end, 16)]
    assert "hg" in own.split()


def test_what_is_forgotten_takes_no_memory_and_can_be_written_anew() -> None:
    pages = full(64)
    pages.forget(0, 64 * PAGE)
    assert resident_bytes(pages.bytes) == 0
    pages.bytes[7] = 7
    assert pages.bytes[:8].tolist() == [0] * 7 + [7]


@pytest.mark.parametrize(
    ("start", "size", "forgotten"),
    [
        (0, PAGE, [0]),
        (1, 2 * PAGE, [1]),
        (PAGE - 1, 2 * PAGE, [1]),
        (PAGE - 1, 2 * PAGE + 1, [1, 2]),
        (0, PAGE - 1, []),
        (1, 2 * PAGE - 2, []),
        (PAGE, 0, []),
        (3 * PAGE, PAGE, [3]),
    ],
)
def test_only_pages_without_other_bytes_are_forgotten(
    start: int, size: int, forgotten: list[int]
) -> None:
    pages = full(4)
    pages.forget(start, size)
    # Before they are looked at, which brings pages of zeros back.
    assert resident_bytes(pages.bytes) == (4 - len(forgotten)) * PAGE
    expected = np.ones((4, PAGE), np.uint8)
    expected[forgotten] = 0
    assert np.array_equal(pages.bytes.reshape(4, PAGE), expected)
