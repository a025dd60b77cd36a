"""Operands and outputs of any layout, overlapping ones, and tensors that exceed the memory."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from bitlane import Device, reference
from bitlane.driver import Allocation
from bitlane.errors import OutOfDeviceMemory
from support.host.arrays import INTEGERS, TYPES, link_of, model, random, same, uploads
from support.seeds import examples


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Draw a view of ``shape``: permuted, cut, reversed, of foreign byte order or unaligned."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, 3])) for _ in shape]
    big = [shape[axis] * steps[axis] + draw(st.integers(0, 2)) for axis in order]
    base = random(big, draw(st.sampled_from(["<", "<", ">"])) + dtype, draw(st.integers(0, 99)))
    if draw(st.booleans()):
        raw = np.zeros(base.nbytes + 8, np.uint8)
        off = draw(st.integers(0, 7))
        moved = np.ndarray(base.shape, base.dtype, raw.data, off)
        moved[...] = base
        base = moved
    view = base.transpose(np.argsort(order))
    cut = [slice(None, n * step, step) for n, step in zip(shape, steps, strict=True)]
    view = view[(*cut, ...)]
    flips = [slice(None, None, draw(st.sampled_from([1, -1]))) for _ in shape]
    return view[(*flips, ...)]


@examples(1.5)
@given(data=st.data())
def test_any_layout_of_operands_and_output(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(TYPES))
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=1, max_side=5)
    )
    a = data.draw(layouts(shapes.input_shapes[0], dtype))
    b = data.draw(layouts(shapes.input_shapes[1], dtype))
    device = model(memory_bytes=data.draw(st.sampled_from([1 << 15, 512])))
    expected = reference.bit_xor(
        a.astype(a.dtype.newbyteorder("=")), b.astype(b.dtype.newbyteorder("="))
    )
    assert same(device.bit_xor(a, b), expected)
    out = data.draw(layouts(shapes.result_shape, dtype))
    around = out.base.copy() if out.base is not None else None
    assert device.bit_xor(a, b, out=out) is out
    assert same(out.astype(expected.dtype), expected)
    if around is not None and out.base is not None:
        # What lies between the elements of the output stays as it was.
        out[...] = 0
        hidden = np.ndarray(around.shape, around.dtype, around.data, strides=around.strides)
        changed = out.base.reshape(-1).view(np.uint8) != hidden.reshape(-1).view(np.uint8)
        assert np.count_nonzero(changed) <= out.nbytes


@given(data=st.data())
def test_shifts_and_counts_of_any_layout(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=6))
    a = data.draw(layouts(shape, dtype))
    b = data.draw(layouts(shape, dtype))
    native = np.dtype(dtype)
    b[...] = np.abs(b.astype(native)) % (8 * native.itemsize + 3)
    device = model()
    out = data.draw(layouts(shape, dtype))
    device.bit_shift_right(a, b, out=out)
    assert same(out.astype(native), np.right_shift(a.astype(native), b.astype(native)))
    counts = data.draw(layouts(shape, "u4"))
    device.bit_count(a, out=counts)
    assert same(counts.astype("u4"), reference.bit_count(a.astype(native), np.uint32))


def test_broadcast_operands_are_sent_once(device: Device) -> None:
    a = random((40, 50), "u4")
    uploads(device)
    device.bit_and(a, a[0])
    assert uploads(device) == [8000, 200]
    device.bit_and(a, 7)
    assert uploads(device) == [8000, 4]
    device.bit_and(np.broadcast_to(a[:, :1], (40, 50)), a[:1])
    assert uploads(device) == [40 * 4, 200]
    device.bit_xor(a, a)
    assert len(uploads(device)) == 2


@pytest.mark.parametrize(
    ("index", "sent"),
    [
        (np.s_[::-1, ::-1], 4 * 2000),
        (np.s_[5:10, :], 4 * 250),
        (np.s_[:, 10:40], 4 * (39 * 50 + 30)),
        (np.s_[::2, :], 4 * (38 * 50 + 50)),
        # Sparser than one in two: packed on the host.
        (np.s_[:, :20], 4 * 800),
        (np.s_[::3, ::3], 4 * 14 * 17),
    ],
)
def test_dense_views_are_sent_as_they_lie(device: Device, index: Any, sent: int) -> None:
    a = random((40, 50), "u4")
    uploads(device)
    assert same(device.bit_not(a[index]), np.invert(a[index]))
    assert uploads(device) == [sent]
    assert same(device.bit_not(a.T[index[::-1]]), np.invert(a.T[index[::-1]]))
    assert uploads(device) == [sent]


def test_fields_of_records_are_packed(device: Device) -> None:
    # Five bytes apart: no multiple of the element.
    records = random(200, "u1")[:200].view(np.dtype([("tag", "u1"), ("value", "<u4")]))
    values = records["value"]
    uploads(device)
    assert same(device.bit_not(values), np.invert(values))
    assert uploads(device) == [160]
    assert same(device.bit_count(values), np.bitwise_count(values))
    tags = records["tag"].copy()
    expected = np.left_shift(values, 7)
    assert same(device.bit_shift_left(values, 7, out=values), expected)
    assert same(records["tag"], tags)


def test_results_lie_like_their_operands(device: Device) -> None:
    a = np.asfortranarray(random((8, 9), "u2"))
    assert device.bit_not(a).flags.f_contiguous
    assert len(link_of(device).log) == 1
    assert link_of(device).log[0].loops == 1
    assert device.bit_xor(a[:, :1], a).flags.f_contiguous
    assert device.bit_not(a.T).flags.c_contiguous


# --- overlap and memory -----------------------------------------------------------------------


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
    a = random((20, 10), "u4")
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


def test_a_memory_too_small_for_an_element(device: Device) -> None:
    device.driver.allocate(device.driver.geometry.memory_bytes - 128)
    with pytest.raises(OutOfDeviceMemory, match=r"192 bytes for one element .* 128 bytes"):
        device.bit_xor(np.zeros(9, np.uint8), np.ones(9, np.uint8))
    assert device.driver.allocator.pieces == 1
    device.driver.free(Allocation(0, device.driver.geometry.memory_bytes - 128))
