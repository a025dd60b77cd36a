"""Arrays have layouts on the device that hold their elements, and the gaps where that is cheap."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.streaming.transfer import Layout, source_of, store
from support.host.arrays import random, same

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
