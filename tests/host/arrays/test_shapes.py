"""Functions of shapes are NumPy's over layouts: elements, views and copies."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import Device, ShapeError
from support.host.arrays import random, same
from support.host.refusals import refusals

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: np.transpose(x, (1, 0, 2)),
    "matrix_transpose": lambda x: np.matrix_transpose(x),
    "moveaxis": lambda x: np.moveaxis(x, (0, 1), (-1, 0)),
    "swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "rollaxis": lambda x: [np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, -1)],
    "reshape": lambda x: np.reshape(x, (4, -1)),
    "reshape F": lambda x: np.reshape(x, (4, -1), order="F"),
    "ravel": lambda x: [np.ravel(x, order) for order in "CFAK"],
    "ravel method": lambda x: [x.ravel(), x[0, 0].ravel(), x[:, 0, 0].ravel()],
    "flatten": lambda x: [x.flatten(order) for order in "CFAK"],
    "squeeze": lambda x: [np.squeeze(x[:, :1], 1), np.squeeze(x[:1, :, :1])],
    "expand_dims": lambda x: np.expand_dims(x, (0, -1)),
    "atleast_1d": lambda x: [np.atleast_1d(x), *np.atleast_1d(x[0, 0, 0:1], x[0])],
    "atleast_2d": lambda x: [np.atleast_2d(x), *np.atleast_2d(x[0, 0], x[0])],
    "atleast_3d": lambda x: [np.atleast_3d(x), *np.atleast_3d(x[0, 0], x[0])],
    "broadcast_to": lambda x: np.broadcast_to(x[:, :1], (5, *x[:, :1].shape)),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[:, :1]),
    "flip": lambda x: [np.flip(x), np.flip(x, 1), np.flip(x, (0, 2))],
    "fliplr": lambda x: np.fliplr(x),
    "flipud": lambda x: np.flipud(x),
    "rot90": lambda x: [np.rot90(x, k) for k in range(-1, 4)] + [np.rot90(x, 1, (2, 1))],
    "split": lambda x: [*np.split(x, 2), *np.split(x, [1, 1, 9], 1), *np.split(x, [-1])],
    "array_split": lambda x: [*np.array_split(x, 3), *np.array_split(x, 5, axis=2)],
    "hsplit": lambda x: [*np.hsplit(x, [1]), *np.hsplit(x[:, 0, 0], 2)],
    "vsplit": lambda x: np.vsplit(x, 2),
    "dsplit": lambda x: np.dsplit(x, [2, 3]),
    "diagonal": lambda x: [np.diagonal(x, k) for k in range(-4, 5)] + [np.diagonal(x, 1, 2, 0)],
    "unstack": lambda x: np.unstack(x, axis=1),
    "concatenate": lambda x: np.concatenate([x, x[:, 1:]], axis=1),
    "concatenate flat": lambda x: np.concatenate([x, x], axis=None),
    "stack": lambda x: np.stack([x, x ^ 1], axis=-1),
    "hstack": lambda x: [np.hstack([x, x]), np.hstack([x[0, 0], x[0, 1]])],
    "vstack": lambda x: [np.vstack([x, x]), np.vstack([x[0, 0], x[0]])],
    "dstack": lambda x: [np.dstack([x, x]), np.dstack([x[0, 0], x[0, 0]]), np.dstack([x[0], x[0]])],
    "column_stack": lambda x: [np.column_stack([x[0, 0], x[0].T]), np.column_stack([x, x])],
    "roll": lambda x: [np.roll(x, (1, -2), (0, 2)), np.roll(x, 5)],
    "delete": lambda x: [np.delete(x, 1, 0), np.delete(x, np.s_[::2], -1), np.delete(x, [0, 9])],
    "delete by truth": lambda x: np.delete(x, np.arange(x.shape[1]) % 2 == 1, 1),
    "trim_zeros": lambda x: [np.trim_zeros(x[0, 0]), np.trim_zeros((x & 1)[:, 1, 0], "b")],
    "flat": lambda x: [x.flat[5:40:3], x.flat[[3, -1]], x.flat[7], x.flat.copy(), x.flat[...]],
    "flat by truth": lambda x: x.flat[np.arange(x.size) % 5 == 1],
    "copy": lambda x: np.copy(x),
    "zeros_like": lambda x: [np.zeros_like(x), np.zeros_like(x, bool, "C", shape=(2, 3))],
    "ones_like": lambda x: [np.ones_like(x), np.ones_like(x, "i8", order="F")],
    "full_like": lambda x: [np.full_like(x, 7), np.full_like(x, -1, "i1", shape=5)],
    "empty_like": lambda x: np.empty_like(x) & 0,
}

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "other axes": lambda x: x.transpose(1, 0, 2),
    "gaps": lambda x: x[:, ::2, 1:],
    "backwards": lambda x: x[::-1, :, ::-1],
    "one row": lambda x: x[:, :, 1:2],
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_numpys(device: Device, name: str) -> None:
    a = random((4, 4, 4), "u2")
    for layout in LAYOUTS.values():
        here, there = layout(a), layout(device.asarray(a))
        try:
            wanted = FUNCTIONS[name](here)
        except ValueError:
            with pytest.raises(ShapeError):
                FUNCTIONS[name](there)
            continue
        for got, want in zip(listed(FUNCTIONS[name](there)), listed(wanted), strict=True):
            assert isinstance(got, bitlane.Array)
            assert same(got.get(), want)
            shared = np.shares_memory(want, here)
            if want.size:
                assert (got._value.stored.storage is there._value.stored.storage) == shared
            if shared or name.endswith("_like"):
                assert got.flags.c_contiguous == want.flags.c_contiguous
                assert got.flags.f_contiguous == want.flags.f_contiguous


def listed(arrays: Any) -> Sequence[Any]:
    return arrays if isinstance(arrays, list | tuple) else [arrays]


def test_views_that_must_not_be_written(device: Device) -> None:
    x = device.asarray(random((4, 4), "u1"))
    for view in (np.diagonal(x), np.broadcast_to(x, (2, 4, 4)), x.astype(bool).view("u1")):
        assert not view.flags.writeable
        with pytest.raises(ShapeError, match="read-only"):
            view[...] = 0
    assert x.flags.writeable
    assert x.T.flags["W"]


def test_names_of_flags(device: Device) -> None:
    x = device.asarray(random((4, 3), "u1"))
    for view, here in (
        (x, np.ones((4, 3))),
        (x.T, np.ones((4, 3)).T),
        (x[::2], np.ones((4, 3))[::2]),
    ):
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "C", "F", "FORC", "FNC", "CONTIGUOUS"):
            assert view.flags[name] == here.flags[name]
        assert view.flags.forc == here.flags.forc
        assert view.flags.contiguous == here.flags.contiguous
    with pytest.raises(IndexError, match="flags: 'OWNDATA'; expected C_CONTIGUOUS"):
        x.flags["OWNDATA"]
    with pytest.raises(AttributeError):
        x.flags.writeable = False


WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: np.split(x, 3), "indices_or_sections: 3; expected a number that divides 4"),
    (lambda x: np.array_split(x, 0), "indices_or_sections: 0; expected 1 or more"),
    (lambda x: np.dsplit(x, 1), r"np\.dsplit: shape \(4, 5\); expected 3 axes or more"),
    (lambda x: np.vsplit(x[0], 1), r"np\.vsplit: shape \(5,\); expected 2 axes or more"),
    (lambda x: np.fliplr(x[0]), r"np\.fliplr: shape \(5,\); expected 2 axes or more"),
    (lambda x: np.rot90(x, 1, (0, 0)), "axes|axis"),
    (lambda x: np.diagonal(x[0]), r"np\.diagonal: shape \(5,\)"),
    (lambda x: np.rollaxis(x, 2), "axis: 2"),
    (lambda x: np.hstack([x, x[0]]), "arrays: shapes"),
    (lambda x: x.ravel("X"), "order: 'X'; expected"),
]
test_wrong_arguments = refusals(
    random((4, 5), "u1"), [(call, ShapeError, words) for call, words in WRONG]
)
