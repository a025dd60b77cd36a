"""`hamming`, `jaccard` and `cardinality` of NumPy's arrays: one pass, in tiles if they are long."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitlane
from bitlane import Device, reference
from bitlane.errors import (
    DataTypeError,
    OutOfDeviceMemory,
    OutOfRangeError,
    ShapeError,
    UnsupportedError,
)
from bitlane_rtl.abi import Mode
from support.host.arrays import INTEGERS, link_of, model, random, same
from support.system.views import shapes, views


def distances(a: Any, b: Any, axis: Any = -1) -> NDArray[np.uint32]:
    return reference.cardinality(reference.bit_xor(a, b), axis).astype(np.uint32)


@given(st.data(), shapes(200), st.sampled_from(INTEGERS), st.booleans())
def test_any_layout(data: st.DataObject, shape: tuple[int, ...], dtype: str, small: bool) -> None:
    one, other = data.draw(views(shape, dtype)), data.draw(views(shape, dtype))
    axes = data.draw(
        st.one_of(st.none(), st.sets(st.sampled_from(range(len(shape))))) if shape else st.none()
    )
    axis = None if axes is None else tuple(axes)
    a, b = (view.of(random(view.size, "u1", 3)) for view in (one, other))
    changes: dict[str, Any] = {"modes": {Mode.DENSE, Mode.SUM}, "loops": 1} if small else {}
    got = model(**changes).hamming(a, b, axis)
    assert same(got, np.asarray(distances(a, b, axis)))


def test_two_types_meet_and_numbers_take_the_others() -> None:
    device = model()
    a, b = random((3, 8), "i1", 1), random((3, 8), "u2", 2)
    assert same(device.hamming(a, b), distances(a.astype("i4"), b.astype("i4")))
    assert same(device.hamming(b, 0xFFFF), distances(b, np.uint16(0xFFFF)))
    truth = random((3, 8), "u1") > 99
    assert same(device.cardinality(truth), truth.sum(axis=1, dtype=np.uint32))


def test_jaccard_is_tanimotos_similarity() -> None:
    a = np.array([[0b1100], [0b1111], [0], [0]], np.uint8)
    b = np.array([[0b0110], [0b1111], [1], [0]], np.uint8)
    assert model().jaccard(a, b).tolist() == [1 / 3, 1.0, 0.0, 0.0]
    assert model().jaccard(a, b, 0, keepdims=True).tolist() == [[5 / 8]]


def test_a_query_is_sent_once_for_all_rows() -> None:
    device = model(memory_bytes=1 << 20)
    rows, query = random((900, 256), "u1", 1), random(256, "u1", 2)
    assert same(device.hamming(rows, query), distances(rows, query))
    assert len(link_of(device).log) == 1
    sent = [size for kind, at, size in link_of(device).traffic if kind == "write" and size > 200]
    assert sorted(sent) == [256, 900 * 256]


@pytest.mark.parametrize("memory", [1 << 14, 1 << 17])
@pytest.mark.parametrize("shape", [(3, 70_000), (700, 300), (50_000,), (2, 1, 40_000)])
def test_what_exceeds_the_memory_or_a_run_is_cut(shape: tuple[int, ...], memory: int) -> None:
    a, b = random(shape, "u1", 1), random(shape, "u1", 2)
    device = model(memory_bytes=memory, length_bits=12)
    assert same(device.hamming(a, b), np.asarray(distances(a, b)))
    assert same(device.hamming(a, b, 0), np.asarray(distances(a, b, 0)))
    assert device.driver.allocator.pieces == 0


def test_a_file_is_read_in_pieces(tmp_path: Any) -> None:
    rows = np.memmap(tmp_path / "rows", np.uint8, "w+", shape=(2000, 64))
    rows[:] = random((2000, 64), "u1")
    device = model(memory_bytes=1 << 14)
    assert same(device.hamming(rows, rows[7]), distances(rows, rows[7]))


def test_types_are_those_that_hold_the_bits_of_a_row() -> None:
    a = random((2, 31), "u1")
    assert same(model().cardinality(a, dtype=np.uint8), reference.cardinality(a).astype("u1"))
    with pytest.raises(OutOfRangeError, match="uint8 holds sums up to 255; these may be 256"):
        model().cardinality(random((2, 32), "u1"), dtype=np.uint8)
    huge = np.broadcast_to(np.uint8(1), (1 << 29,))
    with pytest.raises(OutOfRangeError, match="4294967295; these may be 4294967296"):
        model().cardinality(huge)


def test_no_elements_give_zeros_or_nothing() -> None:
    device = model()
    empty = np.empty((3, 0), np.uint8)
    assert same(device.hamming(empty, empty), np.zeros(3, np.uint32))
    assert same(device.hamming(empty, empty, 0), np.zeros(0, np.uint32))
    assert same(device.cardinality(empty, None, keepdims=True), np.zeros((1, 1), np.uint32))


def test_what_is_wrong_is_named_before_anything_is_sent() -> None:
    device = model()
    a = random((2, 3), "u1")
    link_of(device).traffic.clear()
    with pytest.raises(ShapeError, match="do not broadcast"):
        device.hamming(a, a[:, :2])
    with pytest.raises(ShapeError, match="axis: 2; expected -2 to 1"):
        device.cardinality(a, 2)
    with pytest.raises(ShapeError, match="there are no axes"):
        device.cardinality(np.uint8(3))
    with pytest.raises(DataTypeError, match="data types"):
        device.jaccard(a, a.astype(float))
    with pytest.raises(OutOfDeviceMemory):
        model(memory_bytes=128).hamming(a, a)
    assert link_of(device).traffic == []
    lacking = model(modes=frozenset(Mode) - {Mode.SUM})
    with pytest.raises(UnsupportedError, match="without sums of COUNT_XOR"):
        lacking.hamming(a, a)


def test_the_modules_functions_use_the_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    device: Device = model()
    monkeypatch.setattr("bitlane.api.default.default_device", lambda: device)
    a, b = random((4, 9), "u1", 1), random((4, 9), "u1", 2)
    assert same(bitlane.hamming(a, b), distances(a, b))
    assert same(bitlane.cardinality(a, None), np.asarray(np.bitwise_count(a).sum(dtype=np.uint32)))
    shared, either = np.bitwise_count(a & b).sum(1), np.bitwise_count(a | b).sum(1)
    assert same(bitlane.jaccard(a, b), shared / either)
