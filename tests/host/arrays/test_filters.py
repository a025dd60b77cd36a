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


WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "put": lambda x, v: np.put(x, [0, 5, -1, 5], v),
    "put wrap": lambda x, v: np.put(x, [[99], [-50]], v, mode="wrap"),
    "put clip": lambda x, v: np.put(x, [99, -50, 3], v, "clip"),
    "put nothing": lambda x, v: np.put(x, [], v),
    "fill_diagonal": lambda x, v: np.fill_diagonal(x[:, 0, :2], v),
    "fill_diagonal wrap": lambda x, v: np.fill_diagonal(x[:, 1, :2], v, wrap=True),
    "fill_diagonal cube": lambda x, v: np.fill_diagonal(x[:2, :2, :2], v),
    "flat": lambda x, v: setattr(x, "flat", v),
    "flat slice": lambda x, v: x.flat.__setitem__(slice(-2, None, -3), v),
    "flat list": lambda x, v: x.flat.__setitem__([4, -1, 4], v),
    "flat truth": lambda x, v: x.flat.__setitem__(np.arange(x.size) % 3 == 1, v),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("held", [False, True])
def test_elements_that_are_written_by_number(device: Device, name: str, held: bool) -> None:
    """The target is a part of a larger array, whose other elements stay."""
    kinds: tuple[Any, ...] = (7, [1, 2, 3], random((2, 9), "i4"), np.zeros(0, "u2"))
    for at, values in enumerate(kinds):
        for turn in (lambda v: v, lambda v: v.T, lambda v: v[::-1, :, ::-1]):
            whole = random((9, 6, 7), "u2", at)
            x = device.asarray(whole)
            given: Any = device.asarray(np.asarray(values)) if held else values
            WRITTEN[name](turn(x[1:8:2, 1:5, 1:6]), given)
            WRITTEN[name](turn(whole[1:8:2, 1:5, 1:6]), values)
            assert same(x.get(), whole)


def test_the_only_element_has_the_number_0(device: Device) -> None:
    a = np.array(3, "u2")
    x = device.asarray(a)
    for each in (x, a):
        np.put(each, [0, -1], [4, 5])
    assert same(x.get(), a)
    assert same(x.flat[[0]].get(), a.flat[[0]])
    assert len(x.flat) == 1
    assert [int(each) for each in x.flat] == [5]
    assert same(
        np.asarray(device.asarray(random((2, 3), "u1")).T.flat), random((2, 3), "u1").T.ravel()
    )


def test_a_row_is_compared_by_its_elements(device: Device) -> None:
    a, b = random((3, 4), "u1"), random((4, 3), "u1")
    b.flat[::2] = a.flat[::2]
    x, y = device.asarray(a), device.asarray(b)
    for other, one in ((y.flat, b.flat), (y.reshape(-1), b.reshape(-1)), (b.flat, b.flat), (7, 7)):
        assert same((x.flat == other).get(), a.flat == one)
        assert same((x.flat != other).get(), a.flat != one)


def test_values_of_the_same_array_are_read_before_it_is_written(device: Device) -> None:
    ways: list[Callable[[Any, Any], None]] = [
        lambda x, v: x.flat.__setitem__(slice(None, None, 2), v.reshape(-1)[::-1]),
        lambda x, v: x.flat.__setitem__(slice(600), v.reshape(-1)[899:299:-1]),
        lambda x, v: x.flat.__setitem__(..., v.T),
        lambda x, v: np.put(x, np.arange(x.size)[::-1], v[:2]),
        lambda x, v: np.fill_diagonal(x[:, :2], v[0], wrap=True),
        lambda x, v: np.place(x[1:], x[1:] == x[1:], v[:, 0]),
        lambda x, v: np.putmask(x, x == x, v[::-1, ::-1]),
    ]
    for way in ways:
        a = random((30, 40), "u2")
        x = device.asarray(a)
        way(x, x)
        way(a, a.copy())
        assert same(x.get(), a)


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
        (lambda x: np.place(x, x.get() == x.get(), []), ShapeError, "vals: no elements"),
        (lambda x: np.putmask(x, x, np.arange(3)), DataTypeError, "values: data type int64"),
        (lambda x: np.put(x, [9], 1), BitlaneError, "ind: 9; the array has 6 elements"),
        (lambda x: np.put(x, [2**64 - 1], 1), BitlaneError, "ind: 18446744073709551615; expected"),
        (lambda x: np.put(x, [2**63], 1, "clip"), BitlaneError, "expected numbers below 2"),
        (lambda x: np.put(x, [0], 1, "W"), ShapeError, "mode: 'W'; expected 'raise', 'wrap' or"),
        (lambda x: np.put(x.get(), [0], x), DataTypeError, "a: of type ndarray; expected"),
        (lambda x: np.fill_diagonal(x[0], 1), ShapeError, r"a: shape \(3,\); expected two axes"),
        (lambda x: np.delete(x, 9), BitlaneError, "obj: index 9 is out of bounds"),
        (lambda x: np.trim_zeros(x[0], "x"), ShapeError, "trim: 'x'; expected 'f', 'b' or 'fb'"),
        (lambda x: x.flat[9], BitlaneError, "flat: index 9 is out of bounds"),
        (lambda x: x.flat.__setitem__(np.True_, 1), BitlaneError, "flat: expected an integer, a"),
        (lambda x: x.flat[np.array(True)], BitlaneError, "flat: expected an integer, a slice"),
        (lambda x: x.flat.__setitem__(((None,),), 1), BitlaneError, "flat: expected an integer, a"),
        (lambda x: np.place(x.get(), x, 1), DataTypeError, "arr: of type ndarray; expected"),
    ],
)
def test_wrong_arguments(
    device: Device, call: Callable[[Any], Any], error: type[BitlaneError], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(device.asarray(random((2, 3), "u1")))
