"""Calls on NumPy's arrays: overlapping outputs are refused, and distances take one pass.

Outputs that lie on themselves are refused before anything is sent; operands get layouts.
"""

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
from bitlane.streaming import Layout, source_of, store
from bitlane_rtl.abi import Mode
from support.host.arrays import INTEGERS, link_of, model, random, same
from support.host.refusals import refused
from support.seeds import seeds
from support.system.views import shapes, views


@pytest.mark.parametrize(
    ("dtype", "shape", "strides"),
    [
        ("u1", (2, 3), (1, 1)),
        ("u1", (3, 3), (2, 1)),
        ("u1", (2, 3), (-2, 1)),
        ("u1", (4, 3), (3, 4)),
        ("u2", (3,), (1,)),
        ("u4", (2, 2), (6, 3)),
        ("u2", (2, 2, 2), (4, 2, 2)),
    ],
)
def test_elements_of_an_output_must_not_lie_on_one_another(
    device: Device, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    expect_written_or_refused(device, dtype, shape, strides)


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_outputs_that_overlap_themselves_are_found(device: Device, seed: int) -> None:
    generator = np.random.default_rng(seed)
    dtype = f"u{generator.choice([1, 2, 4])}"
    shape = tuple(generator.integers(1, 4, generator.integers(1, 4)).tolist())
    strides = tuple(generator.integers(-12, 13, len(shape)).tolist())
    expect_written_or_refused(device, dtype, shape, strides)


def expect_written_or_refused(
    device: Device, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """Expect an output with these strides to be refused exactly if it names a byte twice."""
    out = strided(dtype, shape, strides)
    a = np.arange(out.size).reshape(shape).astype(dtype)
    places = [address + byte for address in addresses(out) for byte in range(out.itemsize)]
    if len(places) == len(set(places)):
        assert np.array_equal(model().bit_not(a, out=out), np.invert(a)), f"{shape} {strides}"
    else:
        with refused(device, ShapeError, "lie on one another"):
            device.bit_not(a, out=out)


def strided(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return a strided view that starts in the middle of a block of memory."""
    memory = np.zeros(256, np.uint8)
    return np.ndarray(shape, dtype, memory.data, 128, strides)


def addresses(array: np.ndarray[Any, Any]) -> list[int]:
    return [
        sum(i * step for i, step in zip(index, array.strides, strict=True))
        for index in np.ndindex(array.shape)
    ]


def test_refusals_are_what_numpy_users_catch() -> None:
    assert issubclass(DataTypeError, TypeError)
    assert issubclass(ShapeError, ValueError)
    assert issubclass(OutOfRangeError, OverflowError)


# --- layouts on the device ------------------------------------------------------------------------


A = random((6, 10), "u4")
ARRAYS: list[tuple[NDArray[Any], bool]] = [
    (A, True),
    (A.T, True),
    (A[::-1, ::-1], True),
    (A[:, 1:9], True),
    (A[::3, ::4], False),
    (np.broadcast_to(A[2], (5, 10)), True),
    (A[:, ::2][..., None, :], True),
    (A.astype(">u4"), False),
    (A[1, 1], True),
]
"""Arrays, and whether the bytes of their memory are sent as they are."""


def elements(layout: Layout, x: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return the elements that the device finds in the content of ``layout``."""
    content = layout.content(x)
    assert content.size == layout.size
    return np.ndarray(x.shape, dtype, content, layout.first, layout.strides)


@pytest.mark.parametrize(("x", "raw"), ARRAYS)
def test_the_elements_are_in_the_content(x: NDArray[Any], raw: bool) -> None:
    layout = Layout.of(source_of(np.asarray(x)), x.shape)
    assert layout.raw is raw
    assert same(elements(layout, np.asarray(x), "<u4"), np.asarray(x).astype("<u4"))


def test_elements_are_converted_on_their_way() -> None:
    x = A[::-1, ::2]
    layout = Layout.of(source_of(x, np.dtype("u8")), x.shape)
    assert same(elements(layout, x, "<u8"), x.astype("<u8"))


@pytest.mark.parametrize("kind", ["<u4", ">u4"])
@pytest.mark.parametrize("strides", [(40, 4), (4, 24)])
def test_results_are_stored_in_any_array(strides: tuple[int, int], kind: str) -> None:
    content = random((240,), "u1")
    target = np.empty((6, 10), kind)
    store(content, target, strides)
    assert same(target.astype("<u4"), np.ndarray((6, 10), "<u4", content, 0, strides))


# --- distances ------------------------------------------------------------------------------------


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


def test_no_elements_give_zeros_or_nothing() -> None:
    device = model()
    empty = np.empty((3, 0), np.uint8)
    assert same(device.hamming(empty, empty), np.zeros(3, np.uint32))
    assert same(device.hamming(empty, empty, 0), np.zeros(0, np.uint32))
    assert same(device.cardinality(empty, None, keepdims=True), np.zeros((1, 1), np.uint32))


def test_a_device_without_room_or_sums_is_refused_by_name() -> None:
    a = random((2, 3), "u1")
    with pytest.raises(OutOfDeviceMemory):
        model(memory_bytes=128).hamming(a, a)
    with pytest.raises(UnsupportedError, match="without sums of COUNT_XOR"):
        model(modes=frozenset(Mode) - {Mode.SUM}).hamming(a, a)


def test_the_modules_functions_use_the_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    device: Device = model()
    monkeypatch.setattr("bitlane.api.default.default_device", lambda: device)
    a, b = random((4, 9), "u1", 1), random((4, 9), "u1", 2)
    assert same(bitlane.hamming(a, b), distances(a, b))
    assert same(bitlane.cardinality(a, None), np.asarray(np.bitwise_count(a).sum(dtype=np.uint32)))
    shared, either = np.bitwise_count(a & b).sum(1), np.bitwise_count(a | b).sum(1)
    assert same(bitlane.jaccard(a, b), shared / either)
