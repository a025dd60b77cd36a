"""``take``, ``repeat``, ``tile`` and their like give what NumPy's do, without sending elements."""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitlane import (
    Array,
    ArrayIndexError,
    AxisError,
    BitlaneError,
    DataTypeError,
    Device,
    NotOfferedError,
    OutOfHostMemory,
    OutOfRangeError,
    ShapeError,
    array_api,
)
from support.host.arrays import link_of, random, same
from support.host.refusals import refusals

A = random((3, 4), "u2")

HUGE = np.broadcast_to(np.int64(0), (1 << 58,))
"""Indices that take no memory until they are converted."""

CALLS: list[Callable[[Any], Any]] = [
    lambda x: np.take(x, [5, 0, -1]),
    lambda x: np.take(x, [[2, 0], [1, 1]], axis=1),
    lambda x: np.take(x, 1, axis=0),
    lambda x: np.take(x, [], axis=0),
    lambda x: np.take_along_axis(x, np.array([[3, 0], [1, 1], [-1, 2]]), axis=1),
    lambda x: np.take_along_axis(x, np.array([[2, 0, 1, 1]]), axis=0),
    lambda x: np.take_along_axis(x, np.array([11, 0]), axis=None),
    lambda x: np.repeat(x, 3),
    lambda x: np.repeat(x, 2, axis=1),
    lambda x: np.repeat(x, 0, axis=0),
    lambda x: np.repeat(x, [2], axis=0),
    lambda x: np.repeat(x, [2, 0, 3], axis=-2),
    lambda x: np.roll(x, np.array([1, 2]), (0, 1)),
    lambda x: np.roll(x, (1, 2), 0),
    lambda x: np.roll(x, 3, (0, 1)),
    lambda x: np.roll(x, (), 0),
    lambda x: np.expand_dims(x, np.int64(1)).copy(),
    lambda x: np.tile(x, np.array([2, 1])),
    lambda x: np.tile(x, np.int64(2)),
    lambda x: np.take_along_axis(x[(None,) * 40], np.zeros((1,) * 40 + (3, 1), int), -1),
    lambda x: x[:, np.zeros((1,) * 63, int)],
    lambda x: np.tile(x, 2),
    lambda x: np.tile(x, (2, 1, 3)),
    lambda x: np.tile(x[0], (2, 2)),
    lambda x: np.tile(x, ()),
]


@pytest.mark.parametrize("call", CALLS)
def test_elements_come_as_with_numpy(device: Device, call: Callable[[Any], Any]) -> None:
    x = device.asarray(A)
    link_of(device).traffic.clear()
    got = call(x)
    assert isinstance(got, Array)
    assert same(got.get(), call(A))
    got[...] = 0
    assert same(x.get(), A)


def test_repetitions_may_be_unsigned(device: Device) -> None:
    """NumPy refuses 64 unsigned bits, for which it would need a cast."""
    counts = np.array([1, 2, 0], np.uint64)
    assert same(np.repeat(device.asarray(A), counts, 0).get(), np.repeat(A, [1, 2, 0], 0))


def test_parts_along_an_axis(device: Device) -> None:
    x = device.asarray(A)
    for parts in (array_api.unstack(x, axis=1), np.unstack(x, axis=1)):
        assert [part.tolist() for part in parts] == A.T.tolist()


def test_one_repetition_of_everything_is_one_command(device: Device) -> None:
    x = device.asarray(A)
    for call in (lambda: np.repeat(x, 5, axis=0), lambda: np.tile(x, (4, 1))):
        link_of(device).log.clear()
        call().get()
        assert len(link_of(device).log) == 1


@pytest.mark.parametrize("options", [{}, {"indexing": "ij"}, {"sparse": True}, {"copy": False}])
def test_a_grid_is_numpys(device: Device, options: dict[str, Any]) -> None:
    sides = [random(n, "u1", n) for n in (2, 3, 4)]
    for count in range(1, 4):
        got = np.meshgrid(*map(device.asarray, sides[:count]), **options)
        wanted = np.meshgrid(*sides[:count], **options)
        assert isinstance(got, tuple)
        for one, other in zip(got, wanted, strict=True):
            assert same(one.get(), np.ascontiguousarray(other))


def test_the_host_has_a_part_in_a_grid_and_in_a_broadcast(device: Device) -> None:
    x, a = device.asarray(A), random(4, "u1")
    for one, other in zip(np.broadcast_arrays(x, a), np.broadcast_arrays(A, a), strict=True):
        assert same(one.get(), np.ascontiguousarray(other))
    assert same(np.meshgrid(a, x[0])[1].get(), np.meshgrid(a, A[0])[1])


def test_the_array_api_gives_lists_and_numpy_tuples(device: Device) -> None:
    x = device.asarray(A)
    assert type(array_api.broadcast_arrays(x, x[0])) is list
    assert type(array_api.meshgrid(x[0], x[1])) is list
    assert type(np.broadcast_arrays(x, x[0])) is tuple


def test_the_array_apis_take(device: Device) -> None:
    x = device.asarray(A)
    indices = device.asarray([2, 0])
    assert same(array_api.take(x, indices, axis=0).get(), A[[2, 0]])
    assert same(array_api.take(x[0], indices).get(), A[0, [2, 0]])


test_what_is_wrong_is_refused_by_name = refusals(
    A,
    [
        (lambda x: np.expand_dims(x, 4), AxisError, "axis: 4; expected -3 to 2"),
        (lambda x: array_api.expand_dims(x, axis=-4), AxisError, "axis: -4"),
        (lambda x: np.take(x, [0], axis=2), AxisError, "axis: 2; expected -2 to 1"),
        (lambda x: np.take(x, [3], axis=0), ArrayIndexError, "index: 3 for axis 0 of 3"),
        (lambda x: np.take(x, [0.5]), DataTypeError, "indices: data type float64"),
        (lambda x: np.take(x, [True]), DataTypeError, "indices: data type bool"),
        (lambda x: np.take(x, [0], mode="wrap"), NotOfferedError, "np.take: .*does not take mode"),
        (
            lambda x: np.take(x, [0], out=x),
            NotOfferedError,
            "np.take: .*it does not take out .*np.asarray",
        ),
        (lambda x: np.take(x, [[0], [1, 2]]), ShapeError, "indices: lists of different lengths"),
        (lambda x: np.take(x, [2**70]), OutOfRangeError, f"indices: {2**70}; expected integers of"),
        (lambda x: np.take(x, [0], (0,)), ShapeError, r"axis: \(0,\); expected an integer"),
        (lambda x: np.take(x, HUGE), OutOfHostMemory, "index: .* bytes do not fit"),
        (lambda x: x[HUGE], OutOfHostMemory, "index: .* bytes do not fit"),
        (
            lambda x: x[..., None, None, None].__setitem__(np.ix_(*[[0] * 8192] * 5), 1),
            OutOfHostMemory,
            f"index: {8 * 2**65} bytes do not fit",
        ),
        (lambda x: x[[2**70]], ArrayIndexError, f"index: {2**70}; expected integers of 64 bits"),
        (lambda x: x[0:1.5], DataTypeError, r"index: slice\(0, 1\.5, None\); expected integers"),
        (lambda x: np.size(x, 5), AxisError, "axis: 5; expected -2 to 1"),
        (lambda x: np.size(x, 0.5), ShapeError, r"axis: 0\.5; expected an integer"),
        (lambda x: np.expand_dims(x, 1.5), ShapeError, r"axis: 1\.5; expected an integer"),
        (lambda x: np.swapaxes(x, (0, 1), 0), ShapeError, r"axis: \(0, 1\); expected an integer"),
        (lambda x: np.concatenate([x, x], (0, 1)), ShapeError, "expected an integer"),
        (lambda x: np.stack([x, x], (0, 1)), ShapeError, "expected an integer"),
        (lambda x: array_api.unstack(x, axis=(0,)), ShapeError, "axis: .0,.; expected an integer"),
        (lambda x: array_api.eye(2, k=1.5), DataTypeError, r"k: 1\.5; expected an integer"),
        (lambda x: np.roll(x, 1.5), DataTypeError, r"shift: 1\.5; expected an integer"),
        (lambda x: np.roll(x, (1, 2, 3), (0, 1)), ShapeError, "expected one for each axis of"),
        (lambda x: np.take_along_axis(x, np.array([0]), 0), ShapeError, "expected 2 axes"),
        (lambda x: np.take_along_axis(A, x, 0), DataTypeError, "arr: an array on the host"),
        (lambda x: np.repeat(x, -1), ShapeError, "from -1 on"),
        (lambda x: np.repeat(x, [1, 2], axis=0), ShapeError, r"repeats: shape \(2,\), .* or 3 of"),
        (lambda x: np.repeat(x, [[1], [1, 2]]), ShapeError, "repeats: lists of different lengths"),
        (lambda x: np.repeat(x, 2, (0, 1)), ShapeError, r"axis: \(0, 1\); expected an integer"),
        (lambda x: np.repeat(x, 2**70), OutOfRangeError, f"repeats: {2**70}; expected integers"),
        (lambda x: np.repeat(x, [2**62, 1, 2], 0), OutOfHostMemory, "repeats: .* bytes do not fit"),
        (lambda x: np.repeat(x, 1.5), DataTypeError, "repeats: data type float64"),
        (lambda x: np.tile(x, -1), ShapeError, "none below 0"),
        (lambda x: np.tile(x, 1.5), ShapeError, r"reps: \[1\.5\]; expected integers"),
        (lambda x: np.tile(x, "2"), ShapeError, "expected integers"),
        (lambda x: np.meshgrid(x), ShapeError, "expected one axis each"),
        (lambda x: np.meshgrid(x[0], indexing="ii"), ShapeError, "indexing: 'ii'"),
        (lambda x: array_api.broadcast_arrays(A), DataTypeError, "none on a device"),
        *(
            (
                lambda x, join=join, other=other: join([x, other]),
                DataTypeError,
                f"arrays: data type {kind}; expected",
            )
            for join in (np.concatenate, np.stack)
            for other, kind in (
                (np.zeros((3, 4), "c16"), "complex128"),
                (np.full((3, 4), None), "object"),
                ([["a"] * 4] * 3, "<U1"),
            )
        ),
        (lambda x: array_api.arange(0, 5, 0), ShapeError, "arange: a step of 0; expected an"),
        (
            lambda x: array_api.arange(256, 258, dtype="u1"),
            OutOfRangeError,
            "arange: .* 256 out of bounds for uint8; expected numbers that the type holds",
        ),
        (lambda x: array_api.arange("x"), DataTypeError, "arange: "),
        (lambda x: array_api.arange(3, dtype=np.dtype("c8")), DataTypeError, "dtype: "),
        (lambda x: array_api.arange(1 << 62), ShapeError, "arange: "),
        (lambda x: array_api.linspace(0, 1, -1), ShapeError, "num: -1; expected 0 or more"),
        (lambda x: array_api.linspace(1j, 2, 3), DataTypeError, "linspace: "),
        (lambda x: array_api.linspace(0, 1, 2.5), DataTypeError, "linspace: "),
        (lambda x: array_api.take(x, x[0]), ShapeError, "axis: None"),
        (
            lambda x: array_api.finfo(array_api.uint8),
            DataTypeError,
            "x: uint8; expected a float type",
        ),
    ],
)


def test_a_wrong_axis_is_an_error_of_numpys_kinds(device: Device) -> None:
    x = device.asarray(A)
    for kind in (IndexError, ValueError, BitlaneError):
        with pytest.raises(kind, match="axis: 9"):
            np.moveaxis(x, 9, 0)


# --- creation -----------------------------------------------------------------------------------


def test_a_wrong_axis_is_numpys_error(device: Device) -> None:
    x = device.asarray(A)
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.any(x, axis=2),
        lambda x: x.all(axis=(0, 2)),
        lambda x: np.bitwise_or.reduce(x, axis=2),
        lambda x: np.squeeze(x, axis=2),
        lambda x: np.moveaxis(x, 0, 2),
        lambda x: np.swapaxes(x, 0, 2),
        lambda x: np.flip(x, 2),
        lambda x: np.concatenate([x, x], axis=2),
        lambda x: np.take(x, [0], axis=2),
        lambda x: np.count_nonzero(x, axis=2),
        lambda x: np.transpose(x, (0, 2)) if isinstance(x, Array) else np.any(x, axis=2),
    ]
    for call in calls:
        with pytest.raises(np.exceptions.AxisError) as expected:
            call(A)
        with pytest.raises(AxisError, match="axis: 2; expected -2 to 1") as caught:
            call(x)
        assert isinstance(caught.value, np.exceptions.AxisError)
        assert (caught.value.axis, caught.value.ndim) == (expected.value.axis, expected.value.ndim)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.axis, again.ndim) == (str(caught.value), 2, 2)
        (line,) = traceback.format_exception_only(caught.value)
        assert line.startswith("bitlane.AxisError: axis: 2")
    x.free()  # NumPy keeps a reference to it after an error in ``reduce``


def test_axes_and_shapes_may_be_arrays(device: Device) -> None:
    x = device.asarray(A)
    assert same(np.transpose(x, np.array([1, 0])).get(), A.T)
    assert same(x.transpose(np.array([1, 0])).get(), A.T)
    assert same(x.transpose(np.array(1), np.int64(0)).get(), A.T)
    assert same(x.reshape(np.array([2, -1])).get(), A.reshape(2, -1))
    assert same(x.reshape(np.array(-1)).get(), A.reshape(-1))
    assert same(np.broadcast_to(x, np.array([2, 3, 4])).get(), np.broadcast_to(A, (2, 3, 4)))
    assert same(np.flip(x, np.array([0, 1])).get(), A[::-1, ::-1])
    assert same(np.moveaxis(x, np.array([0]), np.array([1])).get(), A.T)
    for refused in (np.expand_dims, np.squeeze, np.any):
        with pytest.raises(ShapeError, match="expected an integer"):
            refused(x[None], axis=np.array([0]))
    assert array_api.empty(np.array([2, 3]), device=device).shape == (2, 3)
    for wrong in (np.array([0.0, 1.0]), np.array([[0, 1]]), np.array(["0"])):
        with pytest.raises(ShapeError, match="expected integers"):
            x.transpose(wrong)
        with pytest.raises(ShapeError, match="expected integers"):
            x.reshape(wrong)


@pytest.mark.parametrize("k", [0, 1, -2, 3, 9, -9, 2**70])
@pytest.mark.parametrize("shape", [(3, None), (3, 5), (4, 2), (0, 3)])
def test_eye(device: Device, shape: tuple[int, int | None], k: int) -> None:
    for dtype in (None, "u1", "f4", "?"):
        kind = None if dtype is None else np.dtype(dtype)
        got = array_api.eye(*shape, k=k, dtype=kind, device=device)
        width = min(abs(k), 20) * (1 if k > 0 else -1)
        assert same(got.get(), np.eye(*shape, k=width, dtype=kind or "f8"))


def test_ranges(device: Device) -> None:
    xp = array_api
    assert same(xp.arange(5, device=device).get(), np.arange(5))
    assert same(xp.arange(5, 0, -2, dtype=xp.uint8, device=device).get(), np.arange(5, 0, -2, "u1"))
    assert same(xp.arange(0, 1, 0.25, device=device).get(), np.arange(0, 1, 0.25))
    assert same(xp.linspace(0, 1, 5, device=device).get(), np.linspace(0, 1, 5))
    got = xp.linspace(0, 1, 5, dtype=xp.float32, endpoint=False, device=device)
    assert same(got.get(), np.linspace(0, 1, 5, endpoint=False, dtype="f4"))


def test_finfo_gives_pythons_floats(device: Device) -> None:
    for dtype in (array_api.float32, array_api.float64):
        found = array_api.finfo(dtype)
        limits = (found.eps, found.max, found.min, found.smallest_normal)
        assert all(type(limit) is float for limit in limits)
        assert found == array_api.finfo(device.asarray(np.ones(1, dtype)))
        assert (found.bits, found.dtype, found.max) == (8 * dtype.itemsize, dtype, limits[1])
