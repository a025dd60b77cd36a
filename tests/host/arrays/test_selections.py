"""Selected elements are NumPy's, whether the device moves or masks them, or the host copies."""

from collections.abc import Callable
from functools import reduce
from random import Random
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import ArrayIndexError, Device, ShapeError
from bitlane.arrays import selections as assigned
from bitlane.compiler import Prices
from bitlane.compiler import selections as gathered
from bitlane.lowering import MovedBlock, Moves, group_moves
from bitlane_rtl.abi import Lane, Op
from support.host.arrays import KINDS, TYPES, link_of, model, random, same
from support.system.devices import DEVICES, opened

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


def drawn_mask(source: Random, device: Device, shape: Any) -> tuple[Any, Any]:
    share = source.choice([0.02, 0.5, 0.98])
    mask = np.random.default_rng(source.randrange(1000)).random(shape) < share
    return mask, device.asarray(mask) if source.random() < 0.5 else mask


def key_of(source: Random, device: Device, shape: Any) -> tuple[Any, Any]:
    if source.random() < 0.5:
        return drawn_mask(source, device, shape[: source.randrange(1, len(shape) + 1)])
    first = [source.randrange(-shape[0], shape[0]) for _ in range(source.choice([1, 5, 90]))]
    return np.array(first), first


def assign(source: Random, device: Device, a: Any, y: Any) -> None:
    key, held = key_of(source, device, a.shape)
    value = random(a[key].shape, "u1").astype(a.dtype) if source.random() < 0.5 else 1
    a[key] = value
    y[held] = device.asarray(value) if source.random() < 0.5 else value


def copy(source: Random, device: Device, a: Any, y: Any) -> None:
    mask, held = drawn_mask(source, device, a.shape)
    value = random(a.shape[-1], "u1").astype(a.dtype)
    np.copyto(a, value, where=mask)
    np.copyto(y, value, where=held)
    np.bitwise_xor(a, a[:1].copy(), out=a, where=~mask)
    np.bitwise_xor(y, y[:1], out=y, where=~held)


def put(source: Random, device: Device, a: Any, y: Any) -> None:
    mask, held = drawn_mask(source, device, a.shape)
    values = random(source.choice([1, 3, a.size]), "u1").astype(a.dtype)
    function = source.choice([np.place, np.putmask])
    function(y, held, values)
    part = a.copy()
    function(part, mask, values)
    a[...] = part


def number(source: Random, device: Device, a: Any, y: Any) -> None:
    numbers = [source.randrange(-a.size, a.size) for _ in range(source.choice([1, 5, 90]))]
    values = random(source.choice([1, 3, a.size]), "u1").astype(a.dtype)
    np.put(a, numbers, values)
    np.put(y, numbers, values)
    assert same(y.flat[numbers].get(), a.flat[numbers])
    assert same(np.delete(y, numbers).get(), np.delete(a, numbers))


def select(source: Random, device: Device, a: Any, y: Any) -> None:
    key, held = key_of(source, device, a.shape)
    assert same(y[held].get(), a[key])
    assert same((y[held] ^ y[held]).get(), a[key] ^ a[key])
    mask, held = drawn_mask(source, device, a.shape)
    assert same(np.extract(held, y).get(), np.extract(mask, a))
    assert same(y.sum(0, where=held).get(), a.sum(0, where=mask))


def bits(source: Random, device: Device, a: Any, y: Any) -> None:
    axis, order = source.choice([None, 0, -1]), source.choice(["big", "little"])
    options: dict[str, Any] = {"axis": axis, "bitorder": order}
    packed = np.packbits(a, **options)
    assert same(np.packbits(y, **options).get(), packed)
    size = 8 * (packed.size if axis is None else packed.shape[axis])
    options["count"] = source.choice([None, None, 0, 3, 8, -3, -size, size + 5])
    unpacked = np.unpackbits(packed, **options)
    assert same(np.unpackbits(device.asarray(packed), **options).get(), unpacked)


STEPS = [assign, assign, copy, put, number, select, bits]


def take_steps(
    source: Random, device: Device, count: int, kinds: Any = KINDS, steps: Any = STEPS
) -> None:
    """Take random steps on a view of a larger array, whose other bytes must not change."""
    for at in range(count):
        shape = [source.choice([1, 2, 3, 8, 9, 17, 40]) for _ in range(source.randrange(1, 4))]
        shape = shape if np.prod(shape) < 2000 else shape[:1]
        whole = random([2 * n + 3 for n in shape], source.choice(kinds), at)
        whole = whole.view("u1") > 99 if whole.dtype.kind == "b" else whole
        x = device.asarray(whole)
        cut = tuple(slice(1, 1 + step * n, step) for n in shape for step in [source.choice([1, 2])])
        turn = source.choice([lambda v: v, lambda v: v.T, lambda v: v[::-1]])
        a, y = turn(whole[cut]), turn(x[cut])
        step = source.choice(steps)
        step(source, device, a, y)
        assert same(x.get(), whole), (at, shape, step)
        del x, y


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_selections_of_a_model(monkeypatch: pytest.MonkeyPatch, way: str, seed: int) -> None:
    choose(monkeypatch, way)
    take_steps(Random(seed), model(memory_bytes=1 << 18), 40 if seed else 15)


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_take_lanes_of_8_bits_alone(seed: int) -> None:
    device = model(lanes=frozenset({Lane.BITS_8}), memory_bytes=1 << 18)
    take_steps(Random(seed), device, 25 if seed else 8, ["u1", "i1", "?"], [bits])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("url", DEVICES)
def test_random_selections_of_a_circuit(url: str, seed: int) -> None:
    with opened(url) as device:
        take_steps(Random(seed), device, 20 if seed else 8)


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


def test_a_selection_is_explained_as_if_it_began_with_a_beat(device: Device) -> None:
    table = bitlane.explain(device.asarray(random((9, 64), "u1"))[[0, 2, 7]]).splitlines()
    # Three runs of 8 beats; another place would take a beat more of each.
    assert table[1].split()[-5:] == ["3", "3", "192", "192", "41"]


@pytest.mark.parametrize(
    "part", [lambda x: x[[3, 9, 100, 4]], lambda x: x.reshape(4, 50).sum(axis=1, dtype=np.uint8)]
)
def test_an_array_is_overwritten_by_all_that_the_host_selects_and_adds_up(
    device: Device, part: Callable[[Any], Any]
) -> None:
    rows = [random((200,), "u1", seed) for seed in range(3)]
    wanted = np.full(4, 90, np.uint8)
    y = device.asarray(wanted)
    wanted ^= reduce(np.bitwise_xor, map(part, rows))
    y ^= reduce(np.bitwise_xor, [part(device.asarray(row)) for row in rows])
    assert same(y.get(), wanted)


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


def random_index(source: Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
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
        key = random_index(source, shape)
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
