"""Selected elements are NumPy's, whether the device moves or masks them, or the host copies."""

from random import Random
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane.api.device import Device
from bitlane.arrays import selections as assigned
from bitlane.compiler import selections as gathered
from bitlane.compiler.prices import Prices
from bitlane.lowering.moves import MovedBlock, Moves, group_moves
from bitlane_rtl.abi import Op
from support.host.arrays import KINDS, link_of, random, same

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))]

WAYS = {
    "moves": Prices(command=1e-9, beat=0, byte=1, transfer=1, element=1, move=0),
    "mask": Prices(command=1, beat=0, byte=1, transfer=1000, element=0, move=0),
    "host": Prices(command=1000, beat=0, byte=0, transfer=0, element=0, move=0),
}
"""Prices at which one way is the cheapest; the price of a command is never 0."""


def choose(patch: pytest.MonkeyPatch, way: str) -> None:
    for module in (assigned, gathered):
        patch.setattr(module, "prices_of", lambda link: WAYS[way])


def mask(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(shape) < 0.5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_selections_beside_guards(
    device: Device, monkeypatch: pytest.MonkeyPatch, way: str, seed: int
) -> None:
    """The target is a view of a larger array, whose other bytes must not change."""
    choose(monkeypatch, way)
    source = Random(seed)
    for at in range(40 if seed else 15):
        shape = tuple(source.choice([1, 2, 3, 5]) for _ in range(source.randrange(1, 4)))
        whole = random([2 * n + 3 for n in shape], source.choice(KINDS), at)
        if whole.dtype.kind == "b":
            whole = whole.view("u1") > 99
        x = device.asarray(whole)
        cut = tuple(slice(1, 1 + step * n, step) for n in shape for step in [source.choice([1, 2])])
        turn = source.choice([lambda v: v, lambda v: v.T, lambda v: v[::-1]])
        a, y = turn(whole[cut]), turn(x[cut])
        key = key_of(source, a.shape, at)
        held = device.asarray(key) if source.random() < 0.5 else key
        wanted = a[key]
        assert same(y[held].get(), wanted), (at, key)
        value = value_of(source, wanted, a.dtype)
        given = device.asarray(value) if source.random() < 0.5 else value
        a[key] = value
        y[held] = given
        assert same(x.get(), whole), (at, key, value)


def key_of(source: Random, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    rank = source.randrange(1, len(shape) + 1)
    if source.random() < 0.6:
        return mask(shape[:rank], seed)
    count = source.choice([1, 4, 9])
    return np.array([source.randrange(-shape[0], shape[0]) for _ in range(count)])


def value_of(source: Random, wanted: Any, dtype: Any) -> Any:
    rank = source.choice([0, 1, wanted.ndim])
    shape = wanted.shape[wanted.ndim - rank :] if rank else source.choice([(), (1,)])
    value = random(shape, "u1", wanted.size)
    return (value > 99) if dtype.kind == "b" else value.astype(dtype)


@pytest.mark.parametrize("way", WAYS)
def test_the_way_is_the_cheapest(device: Device, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    choose(monkeypatch, way)
    a = random(64, "u2")
    x, chosen = device.asarray(a), mask((64,), 1)
    held = device.asarray(chosen)
    log = link_of(device).log
    log.clear()
    x[held] = 7
    a[chosen] = 7
    ops = {Op(record.op) for record in log}
    assert ops >= {"moves": {Op.COPY}, "mask": {Op.XOR, Op.AND}, "host": set()}[way]
    assert (len(log) == 0) == (way == "host")
    assert same(x.get(), a)
    y = x[chosen]
    log.clear()
    assert same(y.get(), a[chosen])
    assert (len(log) == 0) == (way == "host")


def test_explain_names_the_selections(device: Device) -> None:
    a = random(4000, "u2")
    x, chosen = device.asarray(a), mask((4000,), 1)
    few, many = x[[5, 9, 2]], x[chosen]
    count, (found,) = np.count_nonzero(chosen), np.nonzero(chosen)
    fetched = 2 * (found[-1] - found[0] + 1)
    lines = bitlane.explain(few, many ^ 1).splitlines()
    assert lines[1].split()[:8] == ["COPY", "3", "selected", "of", "16", "bits", "3", "3"]
    assert lines[-1] == (
        f"host       selects {count:,} elements: fetches {fetched:,} bytes, sends {2 * count:,}"
    )
    assert few.pending, "explaining computes nothing"
    assert same(many.get(), a[chosen])


def test_a_selection_is_computed_before_its_source_changes(device: Device) -> None:
    a = random(300, "u1")
    x, chosen = device.asarray(a), mask((300,), 2)
    selected, sums = x[chosen], x[chosen].sum()
    both = selected ^ x[[0]]
    x[:] = 0
    assert same(selected.get(), a[chosen])
    assert same(both.get(), a[chosen] ^ a[[0]])
    assert sums.item() == a[chosen].sum()


def test_a_selection_keeps_its_indices(device: Device) -> None:
    a = random((6, 50), "u1")
    x = device.asarray(a)
    keys: list[Any] = [np.array([3, 0, 5]), mask((6, 50), 4), mask((6,), 5), np.arange(6) < 4]
    keys += [(slice(None), np.array([7, 40])), np.array([-1, 2])]
    for key in keys:
        wanted, selected = a[key], x[key]
        (key[1] if isinstance(key, tuple) else key)[...] = 0
        assert same(selected.get(), wanted)


def test_what_does_not_fit_stays_pending(device: Device) -> None:
    a = random(9000, "u1")
    x = device.asarray(a)
    y = x[np.arange(18_000) % 9000]
    with pytest.raises(bitlane.OutOfDeviceMemory):
        (y ^ 1).get()
    assert y.pending
    half = x[mask((9000,), 3)] ^ 1
    assert same(half.get(), a[mask((9000,), 3)] ^ 1)
    del y, half


@pytest.mark.parametrize("seed", range(2))
def test_groups_hold_all_moves_in_order(seed: int) -> None:
    source = Random(seed)
    for _ in range(80):
        whole = [
            np.array(distances(source, count), np.int64) for count in [source.randrange(25)] * 2
        ]
        moves = Moves(MovedBlock((), (), (), 1), *whole)
        groups = group_moves(moves)
        assert groups is not None
        got = [
            (
                g.source + i * g.read[0] + j * g.read[1],
                g.target + i * g.written[0] + j * g.written[1],
            )
            for g in groups
            for i in range(g.counts[0])
            for j in range(g.counts[1])
        ]
        assert got == list(zip(*(each.tolist() for each in whole), strict=True))
        most = source.randrange(6)
        assert (group_moves(moves, most) is None) == (len(groups) > most)


def distances(source: Random, count: int) -> list[int]:
    kind = source.randrange(3)
    if kind == 0:
        return [source.randrange(40) for _ in range(count)]
    width = source.randrange(1, 5)
    if kind == 1:
        return [at // width * 10 + at % width for at in range(count)]
    found: list[int] = []
    while len(found) < count:
        start, step = source.randrange(50), source.choice([0, 1, 2, -1])
        found += [start + step * at for at in range(source.randrange(1, 6))]
    return found[:count]


def grid(outer: int, inner: int) -> np.ndarray[Any, Any]:
    """Return 70 indices: ten times seven, at two distances."""
    return np.add.outer(np.arange(10) * outer, np.arange(7) * inner).reshape(-1)


@pytest.mark.parametrize(
    ("indices", "commands"),
    [
        (np.arange(3000), 1),
        (np.arange(3000, 0, -2), 1),
        (np.repeat(np.arange(1000), 3), 1),
        (np.add.outer(np.arange(0, 4000, 40), np.arange(7)).reshape(-1), 1),
        ([0, 1, 2, 3, 10, 12, 14, 5], 3),
        ([*grid(40, 1), *(5000 + grid(90, 2))], 2),
    ],
)
def test_runs_steps_and_repetitions_are_one_command(indices: Any, commands: int) -> None:
    offsets = np.array(indices, np.int64)
    moves = Moves(MovedBlock((), (), (), 1), offsets, np.arange(len(offsets)))
    for most in (None, commands):
        groups = group_moves(moves, most)
        assert groups is not None
        assert len(groups) == commands
    assert group_moves(moves, commands - 1) is None
