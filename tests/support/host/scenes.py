"""Random steps on arrays of a device and on NumPy's beside them, which must always be equal."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bitlane
from bitlane import Array, BitlaneError, Device
from bitlane.errors import UnsupportedError
from support.host.arrays import KINDS, OPERATORS, random, same
from support.host.beside_numpy import bit_count, cardinality, hamming

Host = NDArray[Any]

TRUTHS = [np.equal, np.not_equal, np.logical_and, np.logical_or, np.logical_xor]
NUMBERS = [0, 1, 5, 7, 64, 200, -1, -3, 70000]


@dataclass(eq=False)
class Pair:
    """An array of NumPy's, and the array on a device that must be equal to it."""

    host: Host
    here: Any


class Scene:
    """Two blocks of bytes, values that are kept unread, and random steps on all of them.

    ``limited``: the device lacks abilities, so that it may refuse what takes them.
    """

    def __init__(self, device: Device, seed: int, *, limited: bool = False) -> None:
        self.limited = limited
        self.device = device
        self.rng = np.random.default_rng(seed)
        self.words: list[str] = []
        """The step in words."""
        self.lost = False
        """Whether NumPy's ``reduce`` raised an error, after which it never gives back operands."""
        self.kept: deque[Pair] = deque(maxlen=6)
        self.blocks = [self.put(self.noise(size, "u1")) for size in (160, 96)]

    def step(self) -> None:
        """Take a random step."""
        self.words.clear()
        try:
            self.pick(ACTIONS)(self)
        except UnsupportedError:
            assert self.limited, self
            self.kept.clear()
            self.compare(self.blocks)

    def finish(self) -> None:
        self.compare(self.blocks if self.limited else [*self.kept, *self.blocks])

    # --- decisions ------------------------------------------------------------------------------

    def decide(self, count: int) -> int:
        """Return a number below ``count``."""
        return int(self.rng.integers(count))

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.decide(len(choices))]

    def chance(self, percent: int) -> bool:
        return self.decide(100) < percent

    def noise(self, shape: Any, kind: str) -> Host:
        seed = self.decide(1 << 20)
        if kind == "?":
            return random(shape, "u1", seed) > 127
        return random(shape, kind, seed)

    # --- arrays ---------------------------------------------------------------------------------

    def put(self, host: Host) -> Pair:
        return Pair(host, self.device.asarray(host))

    def apply(self, name: str, function: Callable[..., Any], *operands: Pair) -> Pair:
        """Return ``function`` of NumPy's arrays and of the device's."""
        self.words.append(name)
        with np.errstate(all="ignore"):
            host = np.asarray(function(*(each.host for each in operands)))
        return Pair(host, function(*(each.here for each in operands)))

    def shape(self) -> tuple[int, ...]:
        return tuple(self.pick([1, 1, 2, 3, 4, 5]) for _ in range(self.pick([0, 1, 2, 2, 3])))

    def view(self, shape: tuple[int, ...], kind: str) -> Pair:
        """Return a view of ``shape`` of a block: at any byte, with gaps, reversed, transposed."""
        size = np.dtype(kind).itemsize
        steps = [self.pick([1, 1, 1, 2, 3]) for _ in shape]
        order = list(range(len(shape)))
        if self.chance(30):
            order.sort(key=lambda axis: self.decide(100))
        sides = [shape[axis] * steps[axis] for axis in order]
        count = int(np.prod(sides))
        block = self.pick(self.blocks)
        room = len(block.host) - count * size
        if room < 0:
            if max(steps, default=1) > 1:
                return self.view(shape, kind)
            return self.put(self.noise(shape, kind))
        at = self.decide(room + 1)
        at -= 0 if self.chance(20) else at % size
        key = tuple(
            slice(None, None, -steps[axis] if self.chance(30) else steps[axis]) for axis in order
        )
        back = [int(axis) for axis in np.argsort(order)]
        name = f"blocks[{self.blocks.index(block)}][{at}:].view({kind}).reshape({sides})[{key}]"

        def take(array: Any) -> Any:
            part = array[at : at + count * size].view(kind)
            return part.reshape(sides)[(*key, ...)].transpose(back)

        return self.apply(f"{name}.transpose({back})", take, block)

    def leaf(self, shape: tuple[int, ...]) -> Pair:
        """Return an operand that broadcasts to ``shape``: a view, a kept value, a new array."""
        alike = [x for x in self.kept if x.host.shape == shape]
        if alike and self.chance(50):
            self.words.append("a kept value")
            return self.pick(alike)  # type: ignore[no-any-return]
        some = tuple(1 if self.chance(15) else n for n in shape)
        some = some[self.decide(len(some) + 1) if self.chance(15) else 0 :]
        kind = self.pick(KINDS)
        if kind != "?":
            return self.view(some, kind)
        truth = self.put(self.noise(some, kind))
        if self.chance(80):
            return truth
        return self.apply("repeated", lambda x: np.broadcast_to(x, shape), truth)

    # --- values ---------------------------------------------------------------------------------

    def value(self, shape: tuple[int, ...], depth: int) -> Pair:
        """Return a random expression of a shape that broadcasts to ``shape``."""
        if not depth or self.chance(10):
            return self.leaf(shape)
        return self.pick(MAKERS)(self, self.value(shape, depth - 1), shape, depth)  # type: ignore[no-any-return]

    def beside(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        """Return a second operand, which broadcasts with ``x``."""
        y = x if self.chance(10) else self.value(shape, depth - 1)
        try:
            np.broadcast_shapes(x.host.shape, y.host.shape)
        except ValueError:
            return self.leaf(x.host.shape)
        return y

    def cast(self, x: Pair, kind: Any) -> Pair:
        return self.apply(f"astype({kind})", lambda a: a.astype(kind), x)

    def binary(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        y = self.beside(x, shape, depth)
        function = self.pick(OPERATORS)
        try:
            function.resolve_dtypes((x.host.dtype, y.host.dtype, None))
        except TypeError:
            y = self.cast(y, x.host.dtype)
        if self.chance(20):  # as the host's
            y = Pair(y.host, y.host.copy())
        return self.apply(function.__name__, function, *((y, x) if self.chance(20) else (x, y)))

    def number(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        """Operate on a Python integer, which may not fit the type."""
        function, number = self.pick(OPERATORS), self.pick(NUMBERS)
        refused = refuses(lambda: function(x.host, number))
        if not refused:
            return self.apply(f"{function.__name__} of {number}", lambda a: function(a, number), x)
        assert refuses(lambda: function(x.here, number), BitlaneError), self
        return x

    def unary(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        return self.apply("~", lambda a: ~a, x)

    def convert(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        return self.cast(x, self.pick(KINDS))

    def copy(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        order = self.pick("CF")
        return self.apply(f"copy {order}", lambda a: a.copy(order), x)

    def truth(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        function = self.pick(TRUTHS)
        y = self.cast(self.beside(x, shape, depth), x.host.dtype)
        return self.apply(function.__name__, function, x, y)

    def count(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        kind = self.pick([np.uint8, np.uint32])
        return self.both("bit_count", bit_count, x, dtype=kind)

    def both(self, name: str, numpys: Any, *operands: Pair, **options: Any) -> Pair:
        self.words.append(f"{name} {options}")
        host = np.asarray(numpys(*(each.host for each in operands), **options))
        here = getattr(bitlane, name)(*(each.here for each in operands), **options)
        return Pair(host, here)

    def along(self, x: Pair) -> dict[str, Any]:
        axes: Any = None
        if self.chance(70):
            axes = tuple(axis for axis in range(x.host.ndim) if self.chance(50))
            axes = axes[0] if len(axes) == 1 else axes
        return {"axis": axes, "keepdims": self.chance(70)}

    def sums(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        """Sums of elements, counts, truth values and distances, with and without their axes."""
        options, name = self.along(x), self.pick(["sum", "count", "nonzero", "hamming", "ones"])
        if name == "hamming":
            y = self.cast(self.beside(x, shape, depth), x.host.dtype)
            # The result may have more axes than x.
            if (x.host ^ y.host).ndim != x.host.ndim:
                options["axis"] = None
            return self.both(name, hamming, x, y, **options)
        if name == "ones":
            return self.both("cardinality", cardinality, x, **options)
        if name == "count":
            x = self.both("bit_count", bit_count, x)
        call = np.count_nonzero if name == "nonzero" else np.sum
        return self.apply(f"{name} {options}", lambda a: call(a, **options), x)

    def reduce(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        options = self.along(x)
        call = self.pick([np.any, np.all, *(each.reduce for each in OPERATORS[:3])])
        return self.apply(f"{call} {options}", lambda a: call(a, **options), x)

    def choose(self, x: Pair, shape: tuple[int, ...], depth: int) -> Pair:
        a = self.beside(x, shape, depth)
        b = self.cast(self.leaf(a.host.shape), a.host.dtype)
        return self.apply("where", np.where, x, a, b)

    # --- actions --------------------------------------------------------------------------------

    def keep(self) -> None:
        """Compute a value, or a view of one that is kept, and read it later."""
        if self.kept and self.chance(20):
            last = self.pick(list(self.kept))
            turned = self.apply("turned", lambda a: a.T[::-1] if a.ndim else a.T, last)
            self.kept.append(turned)
        else:
            self.kept.append(self.value(self.shape(), self.decide(4)))

    def look(self) -> None:
        """Compare a value, or compute it together with one that it may be a part of."""
        if not self.kept:
            return
        pair, other = self.pick(list(self.kept)), self.kept[-1]
        if self.chance(50):
            bitlane.compute(pair.here, other.here)
        self.compare([pair, other])

    def change(self) -> None:
        """Operate in place on a kept value, which may be pending."""
        kept = [x for x in self.kept if x.host.flags.writeable]
        if kept:
            x = self.pick(kept)
            self.write_to(x, self.cast(self.leaf(x.host.shape), x.host.dtype), in_place)

    def target(self, x: Host) -> Pair:
        """Return memory that ``x`` broadcasts to: a view of a block, or an array alone."""
        wide = tuple(self.pick([2, 3]) if n == 1 and self.chance(20) else n for n in x.shape)
        if self.chance(10):
            wide = (self.pick([1, 2]), *wide)
        kind = x.dtype.str if self.chance(60) else self.pick(KINDS)
        if x.dtype.kind != "b" and kind != "?" and self.chance(60):
            return self.view(wide, kind)
        return self.put(self.noise(wide, "u1").astype(kind))

    def write(self) -> None:
        """Write a random value into a random target in a random way, and compare all bytes."""
        x = self.value(self.shape(), self.decide(4))
        way = self.pick(WAYS)
        self.write_to(self.target(x.host), x, way)

    def write_to(self, target: Pair, x: Pair, way: Callable[[Any, Any], None]) -> None:
        self.words.append(way.__name__)
        pairs = [*self.blocks, *self.kept, target]
        before = [pair.host.copy() for pair in pairs]
        # A copy, as NumPy loses bytes of operands that overlap, repeat and are not aligned.
        refused = refuses(lambda: way(target.host, x.host.copy()))
        try:
            way(target.here, x.here)
        except UnsupportedError:
            assert self.limited, f"refused: {self}"
            refused = True
        except BitlaneError:
            assert refused, f"refused: {self}"
        else:
            assert not refused, f"not refused: {self}"
        if refused:
            self.lost |= way.__name__ == "reduce_into"
            self.kept.clear() if self.limited else None
            for pair, old in zip(pairs, before, strict=True):
                if pair.host.flags.writeable:
                    pair.host[...] = old
        self.compare([*self.blocks, target])

    def compare(self, pairs: Sequence[Pair]) -> None:
        for number, pair in enumerate(pairs):
            got = pair.here.get() if isinstance(pair.here, Array) else pair.here
            assert same(got, pair.host), f"array {number}: {got}, not {pair.host}: {self}"

    def __repr__(self) -> str:
        return "; ".join(self.words)


def refuses(call: Callable[[], Any], kind: type[Exception] = Exception) -> bool:
    """Return whether ``call`` raises an error of NumPy's kinds that is of ``kind``, too."""
    try:
        with np.errstate(all="ignore"):
            call()
    except (TypeError, ValueError, OverflowError) as error:
        return isinstance(error, kind)
    return False


def assign(target: Any, value: Any) -> None:
    target[...] = value


def copy_to(target: Any, value: Any) -> None:
    np.copyto(target, value, casting="unsafe")


def combine_into(target: Any, value: Any) -> None:
    np.bitwise_or(value, value, out=target)


def in_place(target: Any, value: Any) -> None:
    target ^= value


def _reduce_into(function: Callable[..., Any]) -> Callable[[Any, Any], None]:
    def reduce_into(target: Any, value: Any) -> None:
        axis = -1 if value.ndim else None
        shape = (*value.shape[:-1], 1) if value.ndim else ()
        part = target[(*(0,) * (target.ndim - len(shape)), *map(slice, shape), ...)]
        if isinstance(target, Array):
            function(value, axis=axis, keepdims=True, out=part)
        else:
            np.copyto(part, function(value, axis=axis, keepdims=True))

    return reduce_into


def join(target: Any, value: Any) -> None:
    row = value.reshape(1, -1)
    target[...] = np.concatenate([row, row])[1].reshape(value.shape)


def stack(target: Any, value: Any) -> None:
    target[...] = np.stack([value, value], axis=-1)[..., 1]


def repeat(target: Any, value: Any) -> None:
    target[...] = (
        np.tile(value, 2)[..., : value.shape[-1]] if value.ndim else np.repeat(value, 2)[0, ...]
    )


def scatter(target: Any, value: Any) -> None:
    target[np.arange(target.shape[0])[::-1] if target.ndim else ()] = value


MAKERS: list[Callable[..., Pair]] = [
    *[Scene.binary] * 4,
    *(Scene.number, Scene.unary, Scene.convert, Scene.copy, Scene.truth, Scene.count),
    *[Scene.sums] * 3,
    *(Scene.reduce, Scene.reduce, Scene.choose),
]
WAYS = [
    *(assign, assign, assign, copy_to, combine_into, in_place),
    *(_reduce_into(np.any), _reduce_into(np.bitwise_xor.reduce), join, stack, repeat, scatter),
]
ACTIONS = [Scene.keep, Scene.keep, Scene.keep, Scene.look, Scene.change, *[Scene.write] * 4]
