"""A result shares its source's memory where NumPy's does, and nowhere else.

The source is written to after each call, and then the result.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitlane import Array, Device, array_api
from support.host.arrays import random, same

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "reversed": lambda x: x[::-1],
    "every other row": lambda x: x[::2],
    "every other column": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
    "one row": lambda x: x[1:2],
    "one column": lambda x: x[:, 1:2],
    "one element": lambda x: x[2:3, 1:2],
    "a row": lambda x: x[1],
    "a column": lambda x: x[:, 1],
    "a column and every other row": lambda x: x[::2, 1],
    "a block": lambda x: x[1:3, 1:3],
    "with an axis": lambda x: x[:, None],
    "without axes": lambda x: x[1, 1, ...],
    "no elements": lambda x: x[:0],
}

BOTH: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x.copy(),
    "np.copy": lambda x: np.copy(x),
    "copy.copy": lambda x: copy.copy(x),
    "copy.deepcopy": lambda x: copy.deepcopy(x),
    "astype": lambda x: x.astype("u2"),
    "astype without copy": lambda x: x.astype("u2", copy=False),
    "astype u4": lambda x: x.astype("u4", copy=False),
    "astype i2": lambda x: x.astype("i2", copy=False),
    "view": lambda x: x.view("i2"),
    "view u2": lambda x: x.view("u2"),
    "T": lambda x: x.T,
    "index": lambda x: x[...],
    "slice": lambda x: x[..., None],
    "reshape": lambda x: x.reshape(-1),
    "reshape the same": lambda x: x.reshape(x.shape),
    "reshape with an axis": lambda x: x.reshape(*x.shape, 1),
    "np.reshape": lambda x: np.reshape(x, -1),
    "np.ravel": lambda x: np.ravel(x),
    "np.transpose": lambda x: np.transpose(x),
    "np.squeeze": lambda x: np.squeeze(x),
    "np.expand_dims": lambda x: np.expand_dims(x, 0),
    "np.flip": lambda x: np.flip(x),
    "np.flip no axes": lambda x: np.flip(x, ()),
    "np.roll": lambda x: np.roll(x, 1),
    "np.roll by 0": lambda x: np.roll(x, 0),
    "np.roll by nothing": lambda x: np.roll(x, (), ()),
    "np.concatenate": lambda x: np.concatenate([np.expand_dims(x, 0)]),
    "np.concatenate flat": lambda x: np.concatenate([x], axis=None),
    "np.stack": lambda x: np.stack([x]),
    "np.tile": lambda x: np.tile(x, 1),
    "np.tile no times": lambda x: np.tile(x, ()),
    "np.tile twice": lambda x: np.tile(x, 2),
    "np.repeat": lambda x: np.repeat(x, 1),
    "np.repeat axis": lambda x: np.repeat(np.expand_dims(x, 0), 1, axis=0),
    "np.take": lambda x: np.take(np.expand_dims(x, 0), 0, axis=0),
    "np.take list": lambda x: np.take(np.expand_dims(x, 0), [0], axis=0),
    "x[[0]]": lambda x: np.expand_dims(x, 0)[[0]],
    "x[mask]": lambda x: np.expand_dims(x, 0)[np.array([True])],
    "x[True]": lambda x: x[True],
    "np.take_along_axis": lambda x: np.take_along_axis(
        np.expand_dims(x, 0), np.zeros((1,) * (x.ndim + 1), int), 0
    ),
    "np.where": lambda x: np.where(np.True_, x, x),
    "np.moveaxis": lambda x: np.moveaxis(x, range(x.ndim), range(x.ndim)),
    "np.swapaxes": lambda x: np.swapaxes(np.expand_dims(x, 0), 0, 0),
    "x | 0": lambda x: x | 0,
    "~~x": lambda x: ~~x,
    "reduce along no axes": lambda x: np.bitwise_or.reduce(x, axis=()),
    "reduce along one element": lambda x: np.bitwise_or.reduce(np.expand_dims(x, 0), axis=0),
    "np.meshgrid": lambda x: np.meshgrid(np.ravel(x.copy()), np.ravel(x))[1],
    "np.meshgrid of one": lambda x: np.meshgrid(x.reshape(-1))[0],
    "np.meshgrid sparse": lambda x: np.meshgrid(x.reshape(-1), sparse=True)[0],
    "+x": lambda x: +x,
    "np.positive": lambda x: np.positive(x),
}

READ_ONLY: dict[str, Callable[[Any], Any]] = {
    "np.meshgrid views": lambda x: np.meshgrid(x.reshape(-1), copy=False)[0],
    "np.broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "np.broadcast_to the same": lambda x: np.broadcast_to(x, x.shape),
    "np.broadcast_arrays": lambda x: np.broadcast_arrays(x, np.zeros((2, *([1] * x.ndim))))[0],
    "np.broadcast_arrays one": lambda x: np.broadcast_arrays(x)[0],
}

API: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "asarray": (lambda x: array_api.asarray(x), True),
    "asarray without copy": (lambda x: array_api.asarray(x, copy=False), True),
    "asarray copied": (lambda x: array_api.asarray(x, copy=True), False),
    "Device.asarray": (lambda x: x.device.asarray(x), True),
    "Device.asarray copied": (lambda x: x.device.asarray(x, copy=True), False),
    "from_dlpack": (lambda x: array_api.from_dlpack(x, copy=True), False),
    "astype": (lambda x: array_api.astype(x, x.dtype), False),
    "astype without copy": (lambda x: array_api.astype(x, x.dtype, copy=False), True),
    "reshape": (lambda x: array_api.reshape(x, x.shape), True),
    "reshape copied": (lambda x: array_api.reshape(x, x.shape, copy=True), False),
    "method reshape copied": (lambda x: x.reshape(x.shape, copy=True), False),
    "permute_dims": (lambda x: array_api.permute_dims(x, tuple(range(x.ndim))), True),
    "matrix_transpose": (lambda x: array_api.matrix_transpose(x), True),
    "positive": (lambda x: array_api.positive(x), False),
    "unstack": (lambda x: array_api.unstack(array_api.expand_dims(x))[0], True),
    "meshgrid": (lambda x: array_api.meshgrid(x.reshape(-1, copy=False))[0], False),
    "host": (lambda x: x.device.asarray(x.get()), False),
    "bit_copy": (lambda x: x.device.bit_copy(x), False),
}


def _change(x: Any) -> None:
    x ^= 0xA5A5


@pytest.mark.parametrize("name", [*BOTH, *READ_ONLY])
def test_memory_is_shared_where_numpy_shares_it(device: Device, name: str) -> None:
    for layout in LAYOUTS:
        _expect_alike(device, name, layout)


def _expect_alike(device: Device, name: str, layout: str) -> None:
    call = (BOTH | READ_ONLY)[name]
    host = random((4, 6), "u2")
    here = device.asarray(host)
    try:
        expected = call(LAYOUTS[layout](host))
    except ValueError:
        # NumPy has no roll by nothing of an array without axes.
        return
    got = call(LAYOUTS[layout](here))
    assert isinstance(got, Array)
    if not isinstance(expected, np.ndarray):
        # A scalar of NumPy's; on a device there are none, but views without axes.
        assert same(got.get(), np.asarray(expected)), layout
        return
    _change(host)
    _change(here)
    assert same(got.get(), expected), layout
    if name not in READ_ONLY:
        expected[...] = 7
        got[...] = 7
        assert same(here.get(), host), layout


@pytest.mark.parametrize("name", API)
@pytest.mark.parametrize("layout", ["whole", "a block", "transposed", "no elements"])
def test_the_array_api_copies_where_it_says_so(device: Device, name: str, layout: str) -> None:
    call, shared = API[name]
    host = random((4, 6), "u2")
    here = device.asarray(host)
    view = LAYOUTS[layout](here)
    if name == "meshgrid" and layout != "whole":
        view = here[0]
    result = call(view)
    before = result.get()
    _change(here)
    assert same(result.get(), before ^ 0xA5A5 if shared else before)


@pytest.mark.parametrize(
    "bring", [np.asarray, np.array, lambda x: x.get(), lambda x: x.__array__()]
)
def test_what_comes_to_the_host_is_a_copy(device: Device, bring: Callable[[Any], Any]) -> None:
    x = device.asarray(random((4, 6), "u2"))
    result = bring(x)
    before = result.copy()
    _change(x)
    assert same(result, before)
    changed = x.get()
    result[...] = 0
    assert same(x.get(), changed)
