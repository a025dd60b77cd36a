"""What a batch is to do without returning to Python: set, step, until, get, repeat.

All instances follow the same instructions, each with its own values and for as many cycles as its
own waits take.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .description import BatchError, Description, PortPlace
from .values import as_array, counted

__all__ = ["Encoded", "Program", "Result"]

Words = NDArray[np.uint64]

_DEPTH = 8
_ONES = (1 << 64) - 1
_REPEATS = 1 << 32


class _Code(IntEnum):
    """As in batch.h."""

    SET = 0
    TAKE = 1
    GET = 2
    STEP = 3
    UNTIL = 4
    REPEAT = 5
    AGAIN = 6


@dataclass(frozen=True, slots=True)
class _Item:
    """An instruction. ``amount`` is of cycles, or of repetitions of ``body``."""

    code: _Code
    port: str = ""
    values: Any = None
    amount: int = 0
    body: "tuple[_Item, ...]" = ()


@dataclass(frozen=True, slots=True)
class Result:
    """Where the values of a name are among the columns: a base, and a stride for each loop."""

    name: str
    base: int
    loops: tuple[int, ...]
    strides: tuple[int, ...]
    words: int
    signed: bool
    width: int

    def taken(self, columns: Words) -> NDArray[Any]:
        """Values of shape (instances, loops...), or (instances, loops..., words) of wide ports."""
        places = np.array(self.base)
        for count, stride in zip(self.loops, self.strides, strict=True):
            places = places[..., None] + np.arange(count) * stride
        places = places[..., None] + np.arange(self.words)
        values = columns[:, places]
        if self.words > 1:
            return values
        values = values[..., 0]
        if self.signed:
            spare = np.int64(64 - self.width)
            return np.asarray(values.view(np.int64) << spare >> spare)
        return values


@dataclass(frozen=True, slots=True)
class Encoded:
    """A program for a number of instances: instructions, columns to take, and results to give.

    ``instructions`` has rows as in batch.h; ``input`` is of shape (instances, columns).
    """

    instructions: Words
    input: Words
    results: tuple[Result, ...]
    columns: int

    def about(self) -> dict[str, Any]:
        """What is no array, for JSON."""
        return {"columns": self.columns, "results": [asdict(x) for x in self.results]}

    @staticmethod
    def from_parts(about: Mapping[str, Any], instructions: Words, taken: Words) -> "Encoded":
        """From what `about` gave and the arrays."""
        results = tuple(
            Result(**{**x, "loops": tuple(x["loops"]), "strides": tuple(x["strides"])})
            for x in about["results"]
        )
        return Encoded(instructions, taken, results, about["columns"])


class Program:
    """Instructions in order; each method adds one.

    >>> program = Program()
    >>> program.set("w_data", [1, 2, 3]).set("w_en", 1).step()
    >>> with program.repeat(4):
    ...     program.step(10).get("level")
    """

    def __init__(self) -> None:
        self._items: list[_Item] = []

    def set(self, port: str, values: ArrayLike) -> "Program":
        """Set an input: one number for all, or an array of integers with an axis of instances.

        Within ``repeat`` the array may have an axis for each loop behind it. Ports of more than 64
        bits have a last axis of words, the least significant first.
        """
        return self._add(_Item(_Code.SET, port, values))

    def step(self, cycles: int = 1) -> "Program":
        """Let ``cycles`` pass."""
        return self._add(_Item(_Code.STEP, amount=counted(cycles, "cycles", 0)))

    def until(self, port: str, limit: int, name: str | None = None) -> "Program":
        """Let cycles pass up to the first edge before which ``port`` is not 0, ``limit`` at most.

        The result ``name``, by default the port's, has the cycles that passed, 0 where it was
        never seen.
        """
        amount = counted(limit, "limit", 1)
        return self._add(_Item(_Code.UNTIL, port, name or port, amount))

    def get(self, port: str, name: str | None = None) -> "Program":
        """Look at a port; the result is called ``name``, by default as the port."""
        return self._add(_Item(_Code.GET, port, name or port))

    @contextmanager
    def repeat(self, times: int) -> Iterator["Program"]:
        """What is added meanwhile is done ``times`` times."""
        before, self._items = self._items, []
        try:
            yield self
        finally:
            body, self._items = tuple(self._items), before
        self._add(_Item(_Code.REPEAT, amount=counted(times, "times", 1, _REPEATS), body=body))

    def replaced(self, port: str, values: ArrayLike) -> "Program":
        """The same program with other values wherever it sets ``port``.

        If it does so once, ``values`` are as `set` takes them; else a number is for every time, and
        an array has a second axis of one place for each time, in order. Raises ``BatchError`` if
        that does not fit.
        """
        times = sum(1 for x in _all(self._items) if x.code is _Code.SET and x.port == port)
        if not times:
            names = dict.fromkeys(x.port for x in _all(self._items) if x.code is _Code.SET)
            raise BatchError(f"no port {port!r} is set; set are: {', '.join(names) or 'none'}")
        each: list[Any] = [values] * times
        if times > 1 and not isinstance(values, int | np.integer):
            array = as_array(values, f"port {port!r}")
            if array.shape[1:2] != (times,):
                shape = f"(instances, {times})"
                raise BatchError(f"port {port!r} is set {times} times: {shape}, not {array.shape}")
            each = [array[:, k] for k in range(times)]
        other = Program()
        other._items = _replaced(self._items, port, iter(each))
        return other

    def _add(self, item: _Item) -> "Program":
        self._items.append(item)
        return self

    def encoded(self, description: Description, instances: int) -> Encoded:
        """For ``instances``. Raises ``BatchError`` for what the design or the arrays do not fit."""
        encoder = _Encoder(description, instances)
        columns = encoder.block(self._items, ())
        total = encoder.results_of(self._items, 0, (), ())
        names = [x.name for x in encoder.results]
        for name in names:
            if names.count(name) > 1:
                raise BatchError(f"two results are called {name!r}; give one of them a name")
        instructions = np.array(encoder.rows, dtype=np.uint64).reshape(-1, 4)
        return Encoded(instructions, columns, tuple(encoder.results), total)


def _all(items: Sequence[_Item]) -> Iterator[_Item]:
    for item in items:
        yield item
        yield from _all(item.body)


def _replaced(items: Sequence[_Item], port: str, each: Iterator[Any]) -> list[_Item]:
    found = []
    for item in items:
        if item.code is _Code.SET and item.port == port:
            found.append(replace(item, values=next(each)))
        else:
            found.append(replace(item, body=tuple(_replaced(item.body, port, each))))
    return found


class _Encoder:
    def __init__(self, description: Description, instances: int) -> None:
        self._description = description
        self._instances = instances
        self.rows: list[tuple[int, int, int, int]] = []
        self.results: list[Result] = []

    def block(self, items: Sequence[_Item], loops: tuple[int, ...]) -> Words:
        """Write ``items``. Returns what they take each time: (instances, loops..., columns)."""
        if len(loops) > _DEPTH:
            raise BatchError(f"more than {_DEPTH} repeats lie within one another")
        shape = (self._instances, *loops)
        parts = [np.zeros((*shape, 0), np.uint64)]
        for item in items:
            match item.code:
                case _Code.SET:
                    parts += self._set(item, shape)
                case _Code.STEP:
                    self.rows.append((_Code.STEP, 0, item.amount, 0))
                case _Code.REPEAT:
                    self.rows.append((_Code.REPEAT, 0, item.amount, 0))
                    start = len(self.rows)
                    inner = self.block(item.body, (*loops, item.amount))
                    parts.append(inner.reshape(*shape, inner.shape[-1] * item.amount))
                    self.rows.append((_Code.AGAIN, start, 0, 0))
                case _:
                    self._look(item)
        return np.concatenate(parts, axis=-1)

    def _look(self, item: _Item) -> None:
        port = self._description.port(item.port)
        last = port.first + port.words - 1
        if item.code is _Code.UNTIL:
            row = (_Code.UNTIL, port.first | last << 32, item.amount, int(port.settled))
            self.rows.append(row)
        else:
            for word in range(port.first, last + 1):
                self.rows.append((_Code.GET, word, 0, int(port.settled)))

    def _set(self, item: _Item, shape: tuple[int, ...]) -> Iterator[Words]:
        port = self._description.port(item.port)
        if not port.input:
            raise BatchError(f"port {port.name!r} is driven by the design; only inputs can be set")
        numbers = range(port.first, port.first + port.words)
        looks = [int(port.active and number == numbers[-1]) for number in numbers]
        if isinstance(item.values, int | np.integer):
            value = int(item.values)
            least = -(1 << port.width - 1) if port.signed else 0
            if not least <= value < 1 << port.width - port.signed:
                raise BatchError(f"port {port.name!r}: {value} does not fit {_kind(port)}")
            value &= (1 << port.width) - 1
            for k, (number, look) in enumerate(zip(numbers, looks, strict=True)):
                self.rows.append((_Code.SET, number, value >> 64 * k & _ONES, look))
            return
        self.rows += [
            (_Code.TAKE, number, 0, look) for number, look in zip(numbers, looks, strict=True)
        ]
        yield _fitting(port, item.values, shape)

    def results_of(
        self,
        items: Sequence[_Item],
        base: int,
        loops: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> int:
        """Note where results are from ``base`` on. Returns how many columns ``items`` give."""
        size = 0
        for item in items:
            if item.code is _Code.GET:
                port = self._description.port(item.port)
                place = (item.values, base + size, loops, strides)
                self.results.append(Result(*place, port.words, port.signed, port.width))
                size += port.words
            elif item.code is _Code.UNTIL:
                place = (item.values, base + size, loops, strides)
                self.results.append(Result(*place, 1, False, 64))
                size += 1
            elif item.code is _Code.REPEAT:
                found = len(self.results)
                inner = self.results_of(item.body, base + size, loops, strides)
                del self.results[found:]
                repeated = (*loops, item.amount), (*strides, inner)
                self.results_of(item.body, base + size, *repeated)
                size += inner * item.amount
        return size


def _kind(port: PortPlace) -> str:
    return f"{port.width} bits{', signed' if port.signed else ''}"


def _fitting(port: PortPlace, values: ArrayLike, shape: tuple[int, ...]) -> Words:
    """``values`` as words of 64 bits, of ``shape`` and an axis of words."""
    array = as_array(values, f"port {port.name!r}")
    wide = (port.words,) if port.words > 1 else ()
    for axes in range(len(shape), 0, -1):
        if array.shape == shape[:axes] + wide:
            break
    else:
        wanted = ", ".join(map(str, shape + wide))
        raise BatchError(
            f"port {port.name!r} takes an array of shape ({wanted}), not {array.shape}"
        )
    if not wide:
        array = array[..., None]
        least = -(1 << port.width - 1) if port.signed else 0
        most = (1 << port.width - port.signed) - 1
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        if low < least or high > most:
            value = low if low < least else high
            raise BatchError(f"port {port.name!r}: {value} does not fit {_kind(port)}")
    spread = array.reshape(array.shape[:axes] + (1,) * (len(shape) - axes) + array.shape[axes:])
    words = np.broadcast_to(spread, (*shape, port.words)).astype(np.uint64)
    top = np.uint64(_ONES >> -port.width % 64)
    if wide and not port.signed and ((array < 0).any() or (words[..., -1] > top).any()):
        raise BatchError(f"port {port.name!r}: words that do not fit {_kind(port)}")
    words[..., -1] &= top
    return words
