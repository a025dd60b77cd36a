"""Run a row of `support.host.calls` on a view of NumPy's and on the same view on a device.

The device gets truth values of any bytes, as NumPy itself does not take them.
Results, the memory that they share, and all elements beside the view are compared bit for bit.
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bitlane
from bitlane import Array, BitlaneError, Device, array_api
from support.host.arrays import random, same
from support.host.calls import Row

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "other axes": lambda x: x.transpose(1, 0, 2),
    "gaps": lambda x: x[:, ::2, 1:],
    "backwards": lambda x: x[::-1, :, ::-1],
    "one row": lambda x: x[:, :, 1:2],
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "a block": lambda x: x[1:3, 1:3, 1:3],
    "a matrix": lambda x: x[1],
    "a matrix transposed": lambda x: x[1].T,
    "every other row": lambda x: x[::2, 1],
    "every other column": lambda x: x[:, 1, ::2],
    "a row": lambda x: x[1, 2],
    "a column": lambda x: x[:, 1, 1],
    "a column backwards": lambda x: x[::-1, 1, 3],
    "one element": lambda x: x[2:3, 1:2, 0],
    "an axis more": lambda x: x[:, None, 1],
    "without axes": lambda x: x[1, 1, 1, ...],
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[:, 1:3, :0],
}
"""Views of an array of ``SHAPE``."""

SHAPE = (4, 4, 4)

ORDERED = (" order=", "x.copy(", "np.copy(", "x.reshape(", "zeros_like", "ones_like")
"""Parts of rows that choose how the result lies in memory."""

READ_ONLY = ("broadcast_arrays", "meshgrid(x.reshape(-1), copy=False)")
"""Parts of rows that NumPy lets write to what it shows several times."""


def special(kind: str) -> NDArray[Any]:
    """Return numbers of each sort, both zeros, the least and the greatest, and all sorts of NaN."""
    if np.dtype(kind).kind != "f":
        limits = [0, 1] if kind == "?" else [np.iinfo(kind).min, np.iinfo(kind).max, 0, 1]
        return np.array(limits, kind)
    info = np.finfo(kind)
    numbers = [0.0, -0.0, 1, -1, np.nan, -np.nan, np.inf, -np.inf, info.max, -info.max]
    numbers += [info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    array = np.array(numbers, kind)
    unsigned = f"u{array.itemsize}"
    signalling = array[6:8].view(unsigned) | np.array(1, unsigned)
    return np.concatenate([array, signalling.view(kind)])


def content(kind: str, seed: int, shape: Any = SHAPE) -> NDArray[Any]:
    """Return random encodings, or for one seed in three random choices of special numbers."""
    if kind == "?":
        return random(shape, "u1", seed) > 127
    if seed % 3:
        return random(shape, kind, seed)
    numbers = special(kind)
    return numbers[random(shape, "u1", seed) % len(numbers)]


def of_any_bytes(x: NDArray[Any]) -> NDArray[Any]:
    """Return truth values that are True by any byte but 0, as on the device; others as they are."""
    if x.dtype != bool:
        return x
    return np.asarray(np.where(x, random(x.shape, "u1", 9) | 1 << 6, 0), "u1").view(bool)


def bit_count(x: Any, dtype: Any = "u1") -> NDArray[Any]:
    """Return the number of ones of each encoding; NumPy itself counts those of absolute values."""
    x = np.asarray(x)
    bits = x.astype("u1") if x.dtype == bool else x.view(f"{x.dtype.byteorder}u{x.itemsize}")
    return np.asarray(np.bitwise_count(bits).astype(dtype))


def cardinality(x: Any, axis: Any = -1, *, dtype: Any = "u4", keepdims: bool = False) -> Any:
    return np.asarray(bit_count(x).sum(axis, keepdims=keepdims)).astype(dtype)


def hamming(x: Any, y: Any, *args: Any, **options: Any) -> Any:
    return cardinality(x ^ y, *args, **options)


def jaccard(x: Any, y: Any, *args: Any, **options: Any) -> Any:
    shared, either = (cardinality(each, *args, **options) for each in (x & y, x | y))
    return np.divide(shared, either, out=np.zeros(shared.shape), where=either != 0)


COUNTS = (bit_count, cardinality, hamming, jaccard)
IN_NUMPY = {function.__name__: function for function in COUNTS}
ON_DEVICE = {name: getattr(bitlane, name) for name in IN_NUMPY}


def ways_of_axes(rank: int) -> list[Any]:
    """Return no axes, each, all pairs, and all of them."""
    return [None, *range(-rank, rank), *combinations(range(rank), 2), (), tuple(range(rank))[::-1]]


class Beside:
    """A view of NumPy's and the same on ``device``, with all other names of a row."""

    def __init__(self, device: Device, kind: str, layout: str, seed: int) -> None:
        self.kind = kind
        self.host = content(kind, seed)
        self.here = device.asarray(of_any_bytes(self.host))
        view = LAYOUTS[layout]
        x = view(self.host)
        y, m = view(content(kind, seed + 1)), view(content("?", seed + 2))
        wide = kind not in ("?", "u1", "i1")
        n = [1, [1, 0, 1], 1, content(kind, seed + 3, (2, 5)), 1, np.zeros(0, kind)][seed % 6]
        axes = ways_of_axes(x.ndim)[seed % 3 :: 3]
        shared = {"K": axes, "d": bool(seed & 1), "copy": copy, "np": np}
        names = {"x": x, "y": y, "m": m, "n": n, "z": x.copy()}
        dirty: list[Any] = [
            of_any_bytes(each) if isinstance(each, np.ndarray) else each for each in (y, m, n)
        ]
        y, m, n = dirty
        others = [y, y.astype(y.dtype.newbyteorder(">")) if wide else y, device.asarray(y)]
        self.in_numpy = {**shared, **IN_NUMPY, **names, "xp": np}
        own = view(self.here)
        self.on_device = {
            **shared,
            **ON_DEVICE,
            "xp": array_api,
            "x": own,
            "z": own,
            "y": others[seed % 3],
            "m": device.asarray(m) if seed & 2 else m,
            "n": device.asarray(n) if isinstance(n, np.ndarray) and seed & 1 else n,
        }

    def free(self) -> None:
        """Free all arrays: after an error, NumPy's ``reduce`` never gives back its operands."""
        for each in self.on_device.values():
            if isinstance(each, Array):
                each.free()

    def replace(self, seed: int) -> None:
        """Write other elements over all of both."""
        fresh = content(self.kind, seed)
        self.host[...] = fresh
        self.here[...] = of_any_bytes(fresh)


def check(device: Device, row: Row, kind: str, layout: str, seed: int) -> bool:
    """Assert that ``row`` gives what NumPy gives; return whether NumPy has a result."""
    replay = f"check(device, {row!r}, {kind!r}, {layout!r}, {seed})"
    beside = Beside(device, kind, layout, seed)
    before = beside.host.copy()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted, error = _outcome(row, beside.in_numpy)
        got, refusal = _outcome(row, beside.on_device)
    if error is not None:
        beside.host[...] = before
        assert refusal is not None, f"{replay}: {got}, but NumPy: {error!r}"
        assert "\n" not in str(refusal), replay
        own = repr(refusal) == repr(error)  # of a part of the row that is NumPy's alone
        assert own or isinstance(refusal, BitlaneError), f"{replay}: {refusal!r}"
    else:
        assert refusal is None, f"{replay}: {refusal!r}"
        if seed & 4 or not all(isinstance(each, np.ndarray) for each in listed(wanted)):
            _compare(wanted, got, replay)
        if not row.writes:
            _follow(beside, row, wanted, got, seed, replay)
    assert same(beside.here.get(), beside.host), f"{replay}: the array"
    if error is not None:
        beside.free()
    return error is None


def _outcome(row: Row, names: dict[str, Any]) -> tuple[Any, Any]:
    """Return the result, and the error."""
    try:
        if row.writes:
            exec(row.text, names)
            return [], None
        return eval(row.text, names), None
    except Exception as error:  # noqa: BLE001, any of NumPy's
        return None, error


def _follow(beside: Beside, row: Row, wanted: Any, got: Any, seed: int, replay: str) -> None:
    """Write over the source, then over results: both show it where NumPy's do, nowhere else."""
    beside.replace(seed + 5)
    # NumPy's scalars show nothing.
    both = zip(listed(wanted), listed(got), strict=True)
    pairs = [pair for pair in both if isinstance(pair[0], np.ndarray)]
    for want, one in pairs:
        _compare(want, one, f"{replay}: after its source was written")
    for want, one in pairs:
        if np.shares_memory(want, beside.host) or any(word in row.text for word in ORDERED):
            alike = one.strides == want.strides or 1 in want.shape or not want.size
            assert alike, f"{replay}: strides {one.strides}, not {want.strides}"
        if any(part in row.text for part in READ_ONLY):
            continue
        assert one.flags.writeable == want.flags.writeable, f"{replay}: writeable"
        if want.flags.writeable and want.size:
            want[...] = want[(-1,) * want.ndim]
            one[...] = one[(-1,) * one.ndim]
    assert same(beside.here.get(), beside.host), f"{replay}: after its result was written"


def _compare(wanted: Any, got: Any, replay: str) -> None:
    pairs = zip(listed(wanted), listed(got), strict=True)
    for number, (want, one) in enumerate(pairs):
        assert isinstance(one, Array) or not isinstance(want, np.ndarray), replay
        expected, found = np.asarray(want), np.asarray(one.get() if isinstance(one, Array) else one)
        expected = expected.astype(expected.dtype.newbyteorder("="))
        assert same(found, expected), f"{replay}: {found!r} of result {number}, not {expected!r}"


def listed(results: Any) -> Sequence[Any]:
    return results if isinstance(results, list | tuple) else [results]
