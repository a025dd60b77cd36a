"""Outputs that lie on themselves are refused before anything is sent; operands get layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane import Device
from bitlane.errors import BitlaneError, DataTypeError, OutOfRangeError, ShapeError
from bitlane.streaming.transfer import Layout, source_of, store
from support.host.arrays import link_of, model, random, same
from support.seeds import seeds


@pytest.fixture(scope="module")
def device() -> Device:
    device = model(memory_bytes=1 << 20)
    link_of(device).traffic.clear()
    return device


def refused(
    device: Device, error: type[BitlaneError], message: str, call: Callable[[Device], Any]
) -> None:
    with pytest.raises(error, match=message) as caught:
        call(device)
    assert "\n" not in str(caught.value)
    assert link_of(device).traffic == []


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
        refused(device, ShapeError, "lie on one another", lambda on: on.bit_not(a, out=out))


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


def test_truth_values_are_sent_as_0_and_1() -> None:
    x = np.arange(6, dtype=np.uint8).view(bool)
    layout = Layout.of(source_of(x), x.shape)
    assert elements(layout, x, "u1").tolist() == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["<u4", ">u4"])
@pytest.mark.parametrize("strides", [(40, 4), (4, 24)])
def test_results_are_stored_in_any_array(strides: tuple[int, int], kind: str) -> None:
    content = random((240,), "u1")
    target = np.empty((6, 10), kind)
    store(content, target, strides)
    assert same(target.astype("<u4"), np.ndarray((6, 10), "<u4", content, 0, strides))
