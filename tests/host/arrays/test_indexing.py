"""Indices that are arrays pick, and are written to, as NumPy's are: by copies on the device."""

from random import Random
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import ArrayIndexError, ShapeError
from bitlane.api.device import Device
from bitlane_rtl.abi import Op
from support.host.arrays import TYPES, link_of, random, same


def key_of(source: Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return an index with parts of all kinds, sometimes one that NumPy refuses."""
    return tuple(
        _part(source, shape[min(axis, len(shape) - 1)] if shape else 1)
        for axis in range(source.randrange(1, len(shape) + 2))
    )


def _part(source: Random, n: int) -> Any:
    kind = source.randrange(7)
    if kind == 0:
        return source.randrange(-n, n) if n else 0
    if kind == 1:
        ends = [source.choice([None, source.randrange(-n - 1, n + 2)]) for _ in range(2)]
        return slice(*ends, source.choice([None, 1, 2, -1]))
    if kind == 2:
        return source.choice([None, ...])
    if kind == 3:
        return np.array([source.random() < 0.5 for _ in range(n)], bool)
    shape: tuple[int, ...] = source.choice([(3,), (1,), (2, 3), (0,), (2, 1), ()])
    limit = n + source.choice([0] * 9 + [1])
    numbers = [source.randrange(-n, limit) if n else 0 for _ in range(int(np.prod(shape)))]
    return np.array(numbers, source.choice(["i8", "i1"])).reshape(shape)


@pytest.mark.parametrize("seed", range(6))
def test_random_indices_pick_and_set_what_numpys_do(device: Device, seed: int) -> None:
    source = Random(seed)
    done = 0
    for at in range(50):
        shape = tuple(source.choice([0, 1, 2, 3, 4, 4]) for _ in range(source.randrange(5)))
        a = random(shape, source.choice(TYPES), at)
        key = key_of(source, shape)
        x = device.asarray(a)
        try:
            wanted = a[key]
        except (IndexError, ValueError, DeprecationWarning):
            with pytest.raises((ArrayIndexError, ShapeError)):
                x[key]
            continue
        done += 1
        assert same(x[key].get(), wanted), (seed, shape, key)
        value = random(wanted.shape, a.dtype.str, at + 1)
        a[key] = value
        x[key] = value
        assert same(x.get(), a), (seed, shape, key)
    assert done > 20


@pytest.mark.parametrize(
    ("shape", "mask"),
    [
        ((3, 4), (0, 0)),
        ((0, 3), (0, 0)),
        ((4, 0, 0), (0, 0)),
        ((2, 3), (0,)),
        ((2, 3), (2, 0)),
        ((2, 3), (5, 0)),
        ((2, 3), (0, 2)),
        ((0, 5), (0, 5)),
    ],
)
def test_masks_without_elements_are_numpys(device: Device, shape: Any, mask: Any) -> None:
    a, key = random(shape, "u2"), np.zeros(mask, bool)
    x = device.asarray(a)
    try:
        wanted = a[key]
    except IndexError:
        with pytest.raises(ArrayIndexError, match="truth values of shape"):
            x[key]
        return
    assert same(x[key].get(), wanted)
    x[key] = 0
    assert same(x.get(), a)


def test_what_waits_for_the_elements_is_computed_before_they_are_set(device: Device) -> None:
    a = random(8, "u1")
    x = device.asarray(a)
    pending = x ^ 1
    x[[0, 7]] = 0
    assert same(pending.get(), a ^ 1)


@pytest.mark.parametrize(
    ("key", "commands"),
    [
        ([5, 4, 3, 2, 1, 0], 1),
        ([0, 2, 4, 1, 3, 5], 2),
        ([3, 3, 3, 3], 1),
        ([0, 5, 1], 3),
        (np.arange(6) % 2 == 0, 1),
        ((slice(None), [1, 0]), 2),
    ],
)
def test_equal_distances_are_one_command(device: Device, key: Any, commands: int) -> None:
    a = random((6, 4), "u4")
    x = device.asarray(a)
    log, traffic = link_of(device).log, link_of(device).traffic
    log.clear()
    traffic.clear()
    y = x[key]
    assert y.pending
    bitlane.compute(y)
    assert [record.op for record in log] == [Op.COPY] * commands
    assert sum(size for kind, _, size in traffic if kind == "read") < a.nbytes
    assert same(y.get(), a[key])
