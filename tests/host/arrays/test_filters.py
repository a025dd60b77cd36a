"""NumPy's functions that find, take or replace elements by a condition."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitlane import BitlaneError, DataTypeError, ShapeError
from bitlane.api.device import Device
from support.host.arrays import random, same

FOUND: dict[str, Callable[[Any, Any], Any]] = {
    "nonzero": lambda x, m: np.nonzero(x & 3),
    "nonzero of truth": lambda x, m: np.nonzero(m),
    "flatnonzero": lambda x, m: np.flatnonzero(x & 1),
    "extract": lambda x, m: np.extract(m, x),
    "extract by numbers": lambda x, m: np.extract(x & 2, x),
    "compress rows": lambda x, m: np.compress(m[:, 0], x, axis=0),
    "compress columns": lambda x, m: np.compress(m[0], x, -1),
    "compress flat": lambda x, m: np.compress(m[0], x),
}


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("held", [False, True])
def test_elements_that_are_found(device: Device, name: str, held: bool) -> None:
    a, truth = random((5, 12), "u2"), random((5, 6), "u1") > 99
    for cut in (lambda v: v[:, :6], lambda v: v[:, ::2]):
        x = cut(device.asarray(a))
        got = FOUND[name](x, device.asarray(truth) if held else truth)
        wanted = FOUND[name](cut(a), truth)
        if not isinstance(wanted, tuple):
            got, wanted = (got,), (wanted,)
        for one, other in zip(got, wanted, strict=True):
            assert same(np.asarray(one), other)


@pytest.mark.parametrize("function", [np.place, np.putmask])
@pytest.mark.parametrize("held", [False, True])
def test_elements_that_are_replaced(
    device: Device, function: Callable[..., None], held: bool
) -> None:
    for at, values in enumerate((7, [1, 2, 3], random(5, "u1"), random((5, 6), "u2"))):
        whole = random((7, 15), "u2", at)
        x, truth = device.asarray(whole), random((5, 6), "u1", at) > 99
        given: Any = device.asarray(np.asarray(values, "u2")) if held else values
        function(x[1:6, 2:14:2], device.asarray(truth) if held else truth, given)
        part = whole[1:6, 2:14:2].copy()
        function(part, truth, values)
        whole[1:6, 2:14:2] = part
        assert same(x.get(), whole)


def test_nothing_is_found(device: Device) -> None:
    x = device.asarray(np.zeros((2, 3), "u1"))
    assert [each.shape for each in np.nonzero(x)] == [(0,), (0,)]
    np.place(x, x, [])
    assert np.extract(x, x).shape == (0,)


def test_an_output(device: Device) -> None:
    a = random((4, 3), "u1")
    out = device.asarray(np.zeros((2, 3), "i4"))
    assert np.compress([True, False, True], device.asarray(a), 0, out) is out
    assert same(out.get(), a[[0, 2]].astype("i4"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.nonzero(x[0, 0]), ShapeError, "an array without axes"),
        (lambda x: np.compress(x, x), ShapeError, r"condition: shape \(2, 3\)"),
        (lambda x: np.compress([1] * 7, x), BitlaneError, "index: 6 for axis 0 of 6"),
        (lambda x: np.place(x, [True], 1), ShapeError, "mask: 1 elements; expected 6"),
        (lambda x: np.place(x, x.get() == x.get(), []), ShapeError, "values: no elements"),
        (lambda x: np.putmask(x, x, np.arange(3)), DataTypeError, "values: data type int64"),
        (lambda x: np.place(x.get(), x, 1), DataTypeError, "arr: of type ndarray; expected"),
    ],
)
def test_wrong_arguments(
    device: Device, call: Callable[[Any], Any], error: type[BitlaneError], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(device.asarray(random((2, 3), "u1")))
