"""Random values are written into random targets as NumPy writes them, and no byte beside them.

All arrays are compared, and the modelled device asserts that no access leaves an allocation.
"""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane import Array, BitlaneError, Device
from bitlane.errors import UnsupportedError
from bitlane.lowering.lower import lower
from bitlane.lowering.strided import Streams, View
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.arrays import KINDS, model, random, same
from support.seeds import seeds
from support.system.devices import DEFAULT, opened
from support.system.guards import guard

Host = NDArray[Any]
Random = np.random.Generator


@dataclass(eq=False)
class Pair:
    """An array of NumPy's, and the array on a device that must be equal to it."""

    host: Host
    here: Any


LOGIC = [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift]
TRUTHS = [np.equal, np.not_equal, np.logical_and, np.logical_or, np.logical_xor]
CIRCUITS: list[dict[str, Any]] = [
    {},
    {"loops": 1, "data_bytes": 4},
    {"data_bytes": 16, "read_ports": 1},
    {"modes": frozenset(Mode) - {Mode.SUM}},
    {"lanes": frozenset({Lane.BITS_8, Lane.BITS_32})},
    {"ops": frozenset(Op) - {Op.COUNT_XOR, Op.COUNT_AND, Op.NAND, Op.XNOR}},
]


@pytest.fixture(scope="module")
def circuit() -> Iterator[Device]:
    with bitlane.open(DEFAULT) as device:
        guarded = guard(device)
        yield device
        gc.collect()
        # NumPy's `reduce` never gives back its operands if their method raises an error.
        for left in guarded.taken:
            device.driver.free(left)
        assert not guarded.damaged


class Scene:
    """Two blocks of bytes on a device and in NumPy, and random views, values and targets."""

    def __init__(self, rng: Random, device: Device, *, limited: bool) -> None:
        self.limited = limited
        self.rng = rng
        self.device = device
        self.blocks = [self._block(size) for size in (160, 96)]
        self.steps: list[str] = []

    def _block(self, size: int) -> Pair:
        host = random(size, "u1", int(self.rng.integers(1 << 30)))
        return Pair(host, self.device.asarray(host))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    # --- views ----------------------------------------------------------------------------------

    def shape(self) -> tuple[int, ...]:
        return tuple(int(self.pick([1, 1, 2, 3, 4, 5])) for _ in range(self.pick([0, 1, 2, 2, 3])))

    def view(self, shape: tuple[int, ...], kind: str) -> Pair:
        """Return a view of ``shape`` of a block: at any byte, with gaps, reversed, transposed."""
        size = np.dtype(kind).itemsize
        steps = [int(self.pick([1, 1, 1, 2, 3])) for _ in shape]
        order = self.rng.permutation(len(shape)) if self.chance(0.3) else np.arange(len(shape))
        sides = [shape[axis] * steps[axis] for axis in order]
        count = int(np.prod(sides))
        block = self.pick(self.blocks)
        room = len(block.host) - count * size
        if room < 0:
            if max(steps, default=1) > 1:
                return self.view(shape, kind)
            fresh = random(shape, "u1", int(self.rng.integers(1 << 30))).astype(kind)
            return Pair(fresh, self.device.asarray(fresh))
        at = int(self.rng.integers(room + 1))
        at -= 0 if self.chance(0.2) else at % size
        key = tuple(
            slice(None, None, -steps[axis] if self.chance(0.3) else steps[axis]) for axis in order
        )
        back = np.argsort(order)
        name = f"blocks[{self.blocks.index(block)}][{at}:].view({kind}).reshape({sides})[{key}]"
        self.steps.append(f"{name}.transpose({back})")

        def take(array: Any) -> Any:
            part = array[at : at + count * size].view("u1" if kind == "?" else kind)
            return part.reshape(sides)[(*key, ...)].transpose([int(axis) for axis in back])

        return Pair(take(block.host), take(block.here))

    def leaf(self, shape: tuple[int, ...]) -> Pair:
        """Return an operand that broadcasts to ``shape``: a view, or an array of its own."""
        some = tuple(1 if self.chance(0.15) else n for n in shape)
        some = some[int(self.rng.integers(len(some) + 1)) if self.chance(0.15) else 0 :]
        kind = str(self.pick(KINDS))
        if kind != "?":
            return self.view(some, kind)
        host = random(some, "u1", int(self.rng.integers(1 << 30))) > 127
        here = self.device.asarray(host)
        if self.chance(0.2):
            return Pair(np.broadcast_to(host, shape), here.broadcast_to(shape))
        return Pair(host, here)

    # --- values ---------------------------------------------------------------------------------

    def value(self, shape: tuple[int, ...], depth: int) -> Pair:
        """Return a random expression of a shape that broadcasts to ``shape``."""
        if not depth or self.chance(0.1):
            return self.leaf(shape)
        x = self.value(shape, depth - 1)
        makers = [
            *(self._binary, self._binary, self._binary, self._binary, self._unary, self._cast),
            *(self._truth, self._count, self._sum, self._sum, self._sum, self._test),
            *(self._reduce, self._choose),
        ]
        make = self.pick(makers)
        return make(x, shape, depth)

    def _apply(self, name: str, x: Pair, function: Callable[..., Any], *others: Pair) -> Pair:
        """Return ``function`` of NumPy's arrays and of the device's; what is refused, unchanged."""
        self.steps.append(name)
        host = np.asarray(function(x.host, *(y.host for y in others)))
        return Pair(host, function(x.here, *(y.here for y in others)))

    def _beside(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        """Return a second operand, which broadcasts with ``x``."""
        y = self.value(shape, depth - 1)
        try:
            np.broadcast_shapes(x.host.shape, y.host.shape)
        except ValueError:
            return self.leaf(x.host.shape)
        return y

    def _binary(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        y = self._beside(x, shape, depth)
        function = self.pick(LOGIC)
        try:
            function.resolve_dtypes((x.host.dtype, y.host.dtype, None))
        except TypeError:
            y = self._as(y, x.host.dtype)
        return self._apply(function.__name__, x, function, y)

    def _as(self, x: Pair, kind: np.dtype[Any]) -> Pair:
        return self._apply(f"astype({kind})", x, lambda a: a.astype(kind))

    def _unary(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        return self._apply("~", x, lambda a: ~a)

    def _cast(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        return self._as(x, np.dtype(self.pick(KINDS)))

    def _truth(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        y = self._as(self._beside(x, shape, depth), x.host.dtype)
        function = self.pick(TRUTHS)
        return self._apply(function.__name__, x, function, y)

    def _count(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        kind = self.pick([np.uint8, np.uint32])
        self.steps.append(f"bit_count({kind.__name__})")
        return Pair(_ones(x.host).astype(kind), bitlane.bit_count(x.here, dtype=kind))

    def _axes(self, rank: int) -> Any:
        if self.chance(0.3):
            return None
        chosen = tuple(axis for axis in range(rank) if self.chance(0.5))
        return chosen[0] if len(chosen) == 1 else chosen

    def _sum(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        """Sums of elements, counts, truth values and distances, with and without their axes."""
        axes, keep = self._axes(x.host.ndim), self.chance(0.7)
        name = self.pick(["sum", "count", "nonzero", "hamming", "cardinality"])
        self.steps.append(f"{name}({axes}, keepdims={keep})")
        options = {"axis": axes, "keepdims": keep}
        if name == "nonzero":
            counts = np.count_nonzero(x.host, **options)
            return Pair(np.asarray(counts, np.int64), np.count_nonzero(x.here, **options))
        if name == "sum":
            return self._apply(name, x, lambda a: a.sum(**options))
        if name == "hamming":
            y = self._as(self._beside(x, shape, depth), x.host.dtype)
            ones = _ones(x.host ^ y.host)
            # The result may have more axes than x.
            options["axis"] = axes = None if axes == () or ones.ndim != x.host.ndim else axes
            here = bitlane.hamming(x.here, y.here, **options)
            return Pair(np.asarray(ones.sum(**options), np.uint32), here)
        ones = _ones(x.host)
        if name == "count":
            sums = np.asarray(ones.sum(**options), np.uint64)
            return Pair(sums, bitlane.bit_count(x.here).sum(**options))
        sums = np.asarray(ones.sum(**options), np.uint32)
        return Pair(sums, bitlane.cardinality(x.here, **options))

    def _test(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        axes, keep = self._axes(x.host.ndim), self.chance(0.7)
        function = self.pick([np.any, np.all])
        name = f"{function.__name__}({axes}, keepdims={keep})"
        return self._apply(name, x, lambda a: function(a, axis=axes, keepdims=keep))

    def _reduce(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        axes, keep = self._axes(x.host.ndim), self.chance(0.7)
        function = self.pick(LOGIC[:3])
        name = f"{function.__name__}.reduce({axes}, keepdims={keep})"
        return self._apply(name, x, lambda a: function.reduce(a, axis=axes, keepdims=keep))

    def _choose(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        a = self._beside(x, shape, depth)
        b = self._as(self.leaf(a.host.shape), a.host.dtype)
        return self._apply("where", x, np.where, a, b)

    # --- targets --------------------------------------------------------------------------------

    def target(self, x: Host) -> Pair:
        """Return memory that ``x`` broadcasts to: a view of a block, or an array alone."""
        wide = tuple(int(self.pick([2, 3])) if n == 1 and self.chance(0.2) else n for n in x.shape)
        if self.chance(0.1):
            wide = (int(self.pick([1, 2])), *wide)
        kind = x.dtype.str if self.chance(0.6) else str(self.pick(KINDS))
        if x.dtype.kind != "b" and kind != "?" and self.chance(0.6):
            return self.view(wide, kind)
        self.steps.append(f"alone {wide} {kind}")
        host = random(wide, "u1", int(self.rng.integers(1 << 30))).astype(kind)
        return Pair(host, self.device.asarray(host))

    def write(self) -> None:
        """Write a random value into a random target in a random way, and compare all bytes."""
        shape = self.shape()
        x = self.value(shape, int(self.rng.integers(4)))
        way = self.pick(WAYS)
        target = self.target(x.host)
        self.steps.append(way.__name__)
        pairs = [*self.blocks, target]
        before = [pair.host.copy() for pair in pairs]
        refused = _refuses(lambda: way(target.host, x.host))
        try:
            way(target.here, x.here)
        except UnsupportedError:
            assert self.limited, f"refused: {self}"
            refused = True
        except BitlaneError:
            if not refused:
                raise AssertionError(f"refused: {self}") from None
        else:
            assert not refused, f"not refused: {self}"
        for pair, old in zip(pairs, before, strict=True):
            if refused:
                pair.host[...] = old
        self.compare(pairs)

    def compare(self, pairs: list[Pair]) -> None:
        for number, pair in enumerate(pairs):
            got = pair.here.get()
            assert same(got, pair.host), f"array {number}: {got}, not {pair.host}: {self}"

    def __repr__(self) -> str:
        return "; ".join(self.steps)


def _ones(x: Host) -> Host:
    return np.bitwise_count(x.view(f"u{x.itemsize}"))


def _refuses(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (TypeError, ValueError):
        return True
    return False


def _assign(target: Any, value: Any) -> None:
    target[...] = value


def _copy_to(target: Any, value: Any) -> None:
    np.copyto(target, value, casting="unsafe")


def _combine_into(target: Any, value: Any) -> None:
    np.bitwise_or(value, value, out=target)


def _in_place(target: Any, value: Any) -> None:
    target ^= value


def _any_into(target: Any, value: Any) -> None:
    _reduce_into(target, np.any, value)


def _xor_into(target: Any, value: Any) -> None:
    _reduce_into(target, np.bitwise_xor.reduce, value)


def _reduce_into(target: Any, function: Callable[..., Any], value: Any) -> None:
    axis = -1 if value.ndim else None
    shape = (*value.shape[:-1], 1) if value.ndim else ()
    first = (0,) * (target.ndim - len(shape))
    part = target[(*first, *map(slice, shape), ...)]
    if isinstance(target, Array):
        function(value, axis=axis, keepdims=True, out=part)
    else:
        np.copyto(part, function(value, axis=axis, keepdims=True))


def _join(target: Any, value: Any) -> None:
    row = value.reshape(1, -1)
    target[...] = np.concatenate([row, row])[1].reshape(value.shape)


def _stack(target: Any, value: Any) -> None:
    target[...] = np.stack([value, value], axis=-1)[..., 1]


def _repeat(target: Any, value: Any) -> None:
    target[...] = (
        np.tile(value, 2)[..., : value.shape[-1]] if value.ndim else np.repeat(value, 2)[0, ...]
    )


def _scatter(target: Any, value: Any) -> None:
    if target.ndim:
        target[np.arange(target.shape[0])[::-1]] = value
    else:
        target[()] = value


WAYS = [
    *(_assign, _assign, _assign, _copy_to, _combine_into, _in_place, _any_into, _xor_into),
    *(_join, _stack, _repeat, _scatter),
]


@pytest.mark.parametrize("changes", CIRCUITS, ids=str)
@pytest.mark.parametrize("seed", seeds(12, 200))
def test_any_value_over_any_target(seed: int, changes: dict[str, Any]) -> None:
    _play(Scene(np.random.default_rng(seed), model(**changes), limited=bool(changes)))


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_any_value_over_any_target_of_a_circuit(circuit: Device, seed: int) -> None:
    _play(Scene(np.random.default_rng(seed), circuit, limited=False))


def _play(scene: Scene) -> None:
    for _ in range(4):
        try:
            scene.write()
        except UnsupportedError:
            assert scene.limited, scene
            scene.compare(scene.blocks)
        scene.steps.clear()


def _write_behind() -> None:
    with opened(DEFAULT) as device:
        x = device.asarray(random(9, "u1"))
        memory = device.driver.link.memory_view
        assert memory is not None
        memory[x._value.stored.storage.address - device.driver.geometry.memory_base + 12] ^= 1
        x.free()


def test_guard_bytes_of_a_circuit_are_looked_at() -> None:
    with pytest.raises(AssertionError, match=r"bytes \[3\] of the guard behind"):
        _write_behind()


def test_an_access_beside_an_allocation_is_seen() -> None:
    driver = model().driver
    source, target = driver.allocate(16).address, driver.allocate(15).address
    with pytest.raises(AssertionError, match=r"write: bytes .* are in no single allocation"):
        driver.write(source + 9, bytes(8))
    with pytest.raises(AssertionError, match="read: bytes"):
        driver.read(target - 1, 2)
    streams = Streams(View(source, (1,), 1), None, View(target, (1,), 1))
    has = driver.geometry
    with pytest.raises(AssertionError, match="WRITE: bytes"):
        driver.run(lower(Op.COPY, (16,), streams, has.abilities, has.memory))
