"""Sums of counts on the simulated circuit: NumPy's answers for any layout, axes and width."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitlane
from bitlane import reference
from support.host.arrays import INTEGERS, same
from support.seeds import examples
from support.system.devices import noise
from support.system.views import ViewOf, shapes, views


@st.composite
def pairs(draw: st.DrawFn) -> tuple[ViewOf, ViewOf, tuple[int, ...] | None]:
    """Two views of one shape and type, and the axes to add up along."""
    shape, dtype = draw(shapes(300)), draw(st.sampled_from(INTEGERS))
    some = st.sets(st.sampled_from(range(len(shape)))) if shape else st.none()
    axes = draw(st.one_of(st.none(), some))
    pair = draw(views(shape, dtype)), draw(views(shape, dtype))
    return (*pair, None if axes is None else tuple(axes))


@examples(0.4)
@given(pairs())
def test_any_layout_along_any_axes(
    device: bitlane.Device, pair: tuple[ViewOf, ViewOf, tuple[int, ...] | None]
) -> None:
    one, other, axis = pair
    a, b = one.of(noise(one.size, 1)), other.of(noise(other.size, 2))
    expected = np.asarray(reference.cardinality(reference.bit_xor(a, b), axis).astype(np.uint32))
    assert same(device.hamming(a, b, axis), expected)
    assert same(device.hamming(device.asarray(a), device.asarray(b), axis).get(), expected)


@pytest.mark.parametrize("part", [np.s_[::-1], np.s_[:, ::-1], np.s_[::3, 5:], np.s_[:, ::7]])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_parts_of_an_array_that_stays(device: bitlane.Device, part: Any, axis: int | None) -> None:
    a = noise(60 * 77, 3).reshape(60, 77)
    x = device.asarray(a)
    expected = np.asarray(np.bitwise_count(a[part]).sum(axis=axis, dtype=np.uint32))
    assert same(bitlane.cardinality(x[part], axis).get(), expected)
    assert same(bitlane.bit_count(x[part]).sum(axis=axis).get(), expected)
