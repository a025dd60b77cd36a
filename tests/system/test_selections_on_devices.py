"""Random selections, masks and bits on the devices themselves, with guards around all memory."""

from random import Random
from typing import Any

import numpy as np
import pytest

import bitlane
from support.host.arrays import KINDS, random, same
from support.seeds import slow
from support.system.devices import DEVICES, opened

SEEDS = [0, *(slow(seed) for seed in range(1, 13))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("url", DEVICES)
def test_random_steps(url: str, seed: int) -> None:
    source = Random(seed)
    with opened(url) as device:
        for at in range(20 if seed else 8):
            shape = [source.choice([1, 3, 8, 40]) for _ in range(source.randrange(1, 3))]
            whole = random([n + 3 for n in shape], source.choice(KINDS), at)
            whole = whole.view("u1") > 99 if whole.dtype.kind == "b" else whole
            x = device.asarray(whole)
            cut = tuple(slice(1, 1 + n) for n in shape)
            a, y = whole[cut], x[cut]
            if source.random() < 0.5:
                a, y = a.T, y.T
            step = source.choice([assign, copy, put, number, select, bits])
            step(source, device, a, y)
            assert same(x.get(), whole), (seed, at, step)
            del x, y


def mask_of(source: Random, device: bitlane.Device, shape: Any) -> tuple[Any, Any]:
    share = source.choice([0.02, 0.5, 0.98])
    mask = np.random.default_rng(source.randrange(1000)).random(shape) < share
    return mask, device.asarray(mask) if source.random() < 0.5 else mask


def key_of(source: Random, device: bitlane.Device, shape: Any) -> tuple[Any, Any]:
    if source.random() < 0.5:
        return mask_of(source, device, shape[: source.randrange(1, len(shape) + 1)])
    first = [source.randrange(-shape[0], shape[0]) for _ in range(source.choice([1, 5, 90]))]
    return np.array(first), first


def assign(source: Random, device: bitlane.Device, a: Any, y: Any) -> None:
    key, held = key_of(source, device, a.shape)
    value = random(a[key].shape, "u1").astype(a.dtype) if source.random() < 0.5 else 1
    a[key] = value
    y[held] = device.asarray(value) if source.random() < 0.5 else value


def copy(source: Random, device: bitlane.Device, a: Any, y: Any) -> None:
    mask, held = mask_of(source, device, a.shape)
    value = random(a.shape[-1], "u1").astype(a.dtype)
    np.copyto(a, value, where=mask)
    np.copyto(y, value, where=held)
    np.bitwise_xor(a, a[:1].copy(), out=a, where=~mask)
    np.bitwise_xor(y, y[:1], out=y, where=~held)


def put(source: Random, device: bitlane.Device, a: Any, y: Any) -> None:
    mask, held = mask_of(source, device, a.shape)
    values = random(source.choice([1, 3, a.size]), "u1").astype(a.dtype)
    function = source.choice([np.place, np.putmask])
    function(y, held, values)
    part = a.copy()
    function(part, mask, values)
    a[...] = part


def number(source: Random, device: bitlane.Device, a: Any, y: Any) -> None:
    numbers = [source.randrange(-a.size, a.size) for _ in range(source.choice([1, 5, 90]))]
    values = random(source.choice([1, 3, a.size]), "u1").astype(a.dtype)
    np.put(a, numbers, values)
    np.put(y, numbers, values)
    assert same(y.flat[numbers].get(), a.flat[numbers])
    assert same(np.delete(y, numbers).get(), np.delete(a, numbers))


def select(source: Random, device: bitlane.Device, a: Any, y: Any) -> None:
    key, held = key_of(source, device, a.shape)
    assert same(y[held].get(), a[key])
    assert same((y[held] ^ y[held]).get(), a[key] ^ a[key])
    mask, held = mask_of(source, device, a.shape)
    assert same(np.extract(held, y).get(), np.extract(mask, a))
    assert same(y.sum(0, where=held).get(), a.sum(0, where=mask))


def bits(source: Random, device: bitlane.Device, a: Any, y: Any) -> None:
    options: dict[str, Any] = {
        "axis": source.choice([None, 0, -1]),
        "bitorder": source.choice(["big", "little"]),
    }
    packed = np.packbits(a, **options)
    assert same(np.packbits(y, **options).get(), packed)
    assert same(np.unpackbits(device.asarray(packed), 0).get(), np.unpackbits(packed, 0))
