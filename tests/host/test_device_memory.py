"""Operands that overlap the output, and tensors that exceed the device's memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane import reference
from bitlane.device import Device
from bitlane.driver.allocator import Allocation, OutOfDeviceMemory
from bitlane.driver.queue import DeviceFault
from support.host.arrays import link_of, model, random, same, uploads


@given(data=st.data())
def test_overlap_is_as_if_operands_had_been_copied(data: st.DataObject) -> None:
    base = random(60, "u2", data.draw(st.integers(0, 9)))
    count = data.draw(st.integers(1, 20))

    def part() -> NDArray[Any]:
        step = data.draw(st.sampled_from([1, 2, -1, -2]))
        start = data.draw(st.integers(0, 59))
        stop = start + step * count
        assume(-1 <= stop <= 60)
        return base[slice(start, None if stop < 0 else stop, step)]

    a, b, out = part(), part(), part()
    expected = np.bitwise_xor(a.copy(), b.copy())
    device = model(memory_bytes=data.draw(st.sampled_from([1 << 12, 192, 256])))
    device.bit_xor(a, b, out=out)
    assert same(out, expected)


@pytest.mark.parametrize("memory_bytes", [1 << 15, 1 << 9])
def test_in_place(memory_bytes: int) -> None:
    device = model(memory_bytes=memory_bytes)
    a, b = random((20, 10), "u4", 1), random((20, 10), "u4", 2)
    first, second = a.copy(), b.copy()
    expected = np.bitwise_xor(a, b)
    assert same(device.bit_xor(first, b, out=first), expected)
    assert same(device.bit_xor(a, second, out=second), expected)
    inverted = np.invert(a)
    reversed_rows = a[::-1]
    assert same(device.bit_not(a, out=reversed_rows), inverted)
    square = random((12, 12), "u4")
    turned = np.invert(square.T)
    device.bit_not(square.T, out=square)
    assert same(square, turned)


def test_counts_over_their_own_operand() -> None:
    for memory_bytes in (1 << 15, 256):
        device = model(memory_bytes=memory_bytes)
        a = random(100, "u4")
        expected = reference.bit_count(a)
        out = a.view(np.uint8)[:100]
        assert same(device.bit_count(a, out=out), expected)


# --- memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [192, 256, 1000, 4096])
@pytest.mark.parametrize("shape", [(5000,), (50, 100), (3, 4, 5, 7, 6), (1, 2000), (2000, 1)])
def test_tensors_larger_than_the_memory(memory_bytes: int, shape: tuple[int, ...]) -> None:
    device = model(memory_bytes=memory_bytes // 8 * 8)
    a, b = random(shape, "u2", 1), random(shape[-1:], "u2", 2)
    assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))
    assert same(device.bit_not(a.T), np.invert(a.T))
    assert same(
        device.bit_count(a[..., ::-1], np.uint32), np.bitwise_count(a[..., ::-1]).astype("u4")
    )


def test_pieces_fill_the_memory_and_repeated_operands_are_sent_once() -> None:
    device = model(memory_bytes=1 << 12)
    a, b = random((100, 256), "u1", 1), random(256, "u1", 2)
    uploads(device)
    device.bit_and(a, b)
    sizes = uploads(device)
    # 256 bytes of b, and twice 3 rows of a and of the result, one of which is on its way; with 4 it
    # would be more than 4096. The last piece has the row that is left.
    assert sizes == [3 * 256, 256, *[3 * 256] * 32, 256]


def test_a_last_piece_that_is_denser_than_the_others() -> None:
    # 22 rows of 40 in 82 bytes are packed: they span more than twice their bytes. The 21 rows left
    # would not, but must fit where the 22 were.
    device = model(memory_bytes=2 * 1824)
    a = random((2, 43, 82), "u1")[..., :40]
    uploads(device)
    assert same(device.bit_not(a), np.invert(a))
    assert uploads(device) == [22 * 40, 21 * 40] * 2


def test_files_larger_than_the_memory(tmp_path: Path) -> None:
    device = model(memory_bytes=1 << 12)
    a = np.memmap(tmp_path / "a", np.uint32, "w+", shape=(200, 99))
    a[...] = random((200, 99), "u4")
    out = np.memmap(tmp_path / "out", np.uint32, "w+", shape=(200, 99))
    assert device.bit_not(a, out=out) is out
    assert same(np.asarray(out), np.invert(np.asarray(a)))


def test_a_memory_too_small_for_an_element(device: Device) -> None:
    device.driver.allocate(device.driver.geometry.memory_bytes - 128)
    with pytest.raises(OutOfDeviceMemory, match=r"192 bytes for one element .* 128 bytes"):
        device.bit_xor(np.zeros(9, np.uint8), np.ones(9, np.uint8))
    assert device.driver.allocator.pieces == 1
    device.driver.free(Allocation(0, device.driver.geometry.memory_bytes - 128))


def test_a_fault_leaves_nothing_allocated(device: Device) -> None:
    link_of(device).fail_reads = frozenset({3})
    with pytest.raises(DeviceFault):
        device.bit_not(np.zeros(9, np.uint8))
    link_of(device).fail_reads = frozenset()
    assert device.bit_not(np.zeros(2, np.uint8)).tolist() == [255, 255]
