"""``np.packbits`` and ``np.unpackbits`` are NumPy's, byte by byte, for every layout."""

from random import Random
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import BitlaneError, DataTypeError, Device, ShapeError
from bitlane_rtl.abi import Lane
from support.host.arrays import model, random, same
from support.host.refusals import refusals

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))]

LAYOUTS = [
    lambda v: v,
    lambda v: v.T,
    lambda v: v[::-1],
    lambda v: v[..., ::2],
    lambda v: v[..., ::-1].T,
    lambda v: v[1:, ...],
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lanes", [4, 1])
def test_random_arrays(seed: int, lanes: int) -> None:
    source = Random(seed)
    device = model(lanes=frozenset(list(Lane)[:lanes]), memory_bytes=1 << 18)
    with device:
        for at in range(25 if seed else 8):
            layout, order = source.choice(LAYOUTS), source.choice(["big", "little"])
            shape = [source.choice([1, 2, 7, 8, 9, 16, 17]) for _ in range(source.randrange(1, 4))]
            whole = random(shape, "u1", at)
            a, x = layout(whole), layout(device.asarray(whole))
            axis = source.choice([None, *range(-a.ndim, a.ndim)])
            bits = 8 * (a.size if axis is None else a.shape[axis])
            count = source.choice([None, None, 0, 3, 8, -3, -bits, bits + 5 if a.size else 0])
            options: dict[str, Any] = {"axis": axis, "bitorder": order}
            wanted = np.unpackbits(a, count=count, **options)
            assert same(np.unpackbits(x, count=count, **options).get(), wanted), (at, options)
            truth = whole > 99 if source.random() < 0.5 else (whole % 3).astype("i1")
            wanted = np.packbits(layout(truth), **options)
            got = np.packbits(layout(device.asarray(truth)), **options)
            assert same(got.get(), wanted), (at, shape, options)


def test_without_elements(device: Device) -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        for axis in range(len(shape)):
            a = np.zeros(shape, "u1")
            x = device.asarray(a)
            assert same(np.unpackbits(x, axis).get(), np.unpackbits(a, axis))
            assert same(np.packbits(x, axis).get(), np.packbits(a, axis))


def test_their_passes(device: Device) -> None:
    a = random((16, 64), "u1")
    x = device.asarray(a)
    unpacked = np.unpackbits(x, axis=0)
    assert bitlane.explain(unpacked).splitlines()[1].startswith("COUNT_AND TEST  16 x 8 x 64")
    assert "fused           1 pass " in bitlane.explain(unpacked)
    packed = np.packbits(device.asarray(a > 99), axis=1)
    titles = [line.split()[0] for line in bitlane.explain(packed).splitlines()[1:-2]]
    assert titles == [*["SHIFT_LEFT", "OR"] * 3, "COPY"]
    assert packed.pending
    assert same(packed.get(), np.packbits(a > 99, axis=1))


test_wrong_arguments = refusals(
    random((2, 4), "u1"),
    [
        (lambda x: np.unpackbits(x.astype("u2")), DataTypeError, "data type uint16; expected uint"),
        (lambda x: np.unpackbits(x, bitorder="middle"), ShapeError, "bitorder: 'middle'; expected"),
        (lambda x: np.unpackbits(x, 0, -17), ShapeError, "count: -17; expected -16 or more"),
        (lambda x: np.unpackbits(x, 2), BitlaneError, "axis: 2"),
        (lambda x: np.packbits(x.view("f4")), DataTypeError, "data type float32; expected integ"),
        (lambda x: np.packbits(x, bitorder=None), ShapeError, "bitorder: None; expected 'big'"),
    ],
)
