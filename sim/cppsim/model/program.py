"""A program: set, step, until, get and repeat, executed in one call.

`Model` executes it on one instance of a circuit, `Batch` on many, `ReferenceModel` in Amaranth's
simulator. All instances follow the same instructions, each with its own values, and each waits as
long as its own conditions take. Compiled code takes instructions, input columns and result columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import BatchError
from ..netlist.numbers import from_words, to_words
from .ports import PortPlace, Words, as_array, counted, expect_fit, extended, fitting, found

_DEPTH = 8

REPEATS = 1 << 32
"""Most times that an instruction is executed by the repeats around it."""


class Opcode(IntEnum):
    """The instructions, as in batch.h and ported.h."""

    SET = 0
    TAKE = 1
    GET = 2
    STEP = 3
    UNTIL = 4
    REPEAT = 5
    AGAIN = 6


@dataclass(frozen=True, slots=True)
class Item:
    """An instruction. ``amount`` is of cycles, or of repetitions of ``body``."""

    code: Opcode
    port: str = ""
    values: Any = None
    amount: int = 0
    body: "tuple[Item, ...]" = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The columns of a named result: a base, and a stride for each loop."""

    name: str
    base: int
    loops: tuple[int, ...]
    strides: tuple[int, ...]
    words: int
    signed: bool
    width: int

    def taken(self, columns: Words) -> NDArray[Any]:
        """Return values as (instances, loops...), or (instances, loops..., words) of wide ports.

        Words of signed values are those of two's complement: above their bits is their sign.
        """
        places = np.array(self.base)
        for count, stride in zip(self.loops, self.strides, strict=True):
            places = places[..., None] + np.arange(count) * stride
        places = places[..., None] + np.arange(self.words)
        values = columns[:, places]
        if self.signed:
            values[..., -1] = extended(values[..., -1], self.width, signed=True)
        if self.words > 1:
            return values
        return values[..., 0].view(np.int64) if self.signed else values[..., 0]

    def alone(self, columns: Words) -> Any:
        """Return values of the only instance: an int, or within loops `taken` without its axis."""
        values = self.taken(columns)[0]
        if self.loops:
            return values
        if self.words == 1:
            return int(values)
        number = from_words(values)
        return number - (number >> 64 * self.words - 1 << 64 * self.words if self.signed else 0)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A program for a number of instances: instructions, input columns and results.

    ``instructions`` has rows as in batch.h; ``input`` is of shape (instances, columns).
    """

    instructions: Words
    input: Words
    results: tuple[Result, ...]
    columns: int

    def about(self) -> dict[str, Any]:
        """Return all but the arrays, for JSON."""
        return {"columns": self.columns, "results": [asdict(x) for x in self.results]}

    @staticmethod
    def from_parts(about: Mapping[str, Any], instructions: Words, taken: Words) -> "Encoded":
        """Return the program of the result of `about` and the arrays."""
        results = tuple(
            Result(**{**x, "loops": tuple(x["loops"]), "strides": tuple(x["strides"])})
            for x in about["results"]
        )
        return Encoded(instructions, taken, results, about["columns"])


class Encoder:
    """Encodes the items of a program for a circuit with ``ports``, and for ``instances`` of it."""

    def __init__(self, ports: Mapping[str, PortPlace], instances: int) -> None:
        self._ports = ports
        self._instances = instances
        self.rows: list[tuple[int, int, int, int]] = []
        self.results: list[Result] = []

    def block(self, items: Sequence[Item], loops: tuple[int, ...]) -> Words:
        """Write ``items``. Return the values that they set: (instances, loops..., columns)."""
        if len(loops) > _DEPTH:
            raise BatchError(f"more than {_DEPTH} repeats lie within one another")
        if prod(loops) > REPEATS:
            raise BatchError(f"repeats within one another: {prod(loops)} is more than {REPEATS}")
        shape = (self._instances, *loops)
        parts = [np.zeros((*shape, 0), np.uint64)]
        for item in items:
            match item.code:
                case Opcode.SET:
                    parts += self._set(item, shape)
                case Opcode.STEP:
                    self.rows.append((Opcode.STEP, 0, item.amount, 0))
                case Opcode.REPEAT:
                    self.rows.append((Opcode.REPEAT, 0, item.amount, 0))
                    start = len(self.rows)
                    inner = self.block(item.body, (*loops, item.amount))
                    parts.append(inner.reshape(*shape, inner.shape[-1] * item.amount))
                    self.rows.append((Opcode.AGAIN, start, 0, 0))
                case _:
                    self._look(item)
        return np.concatenate(parts, axis=-1)

    def _look(self, item: Item) -> None:
        port = found(self._ports, item.port, "port")
        last = port.first + port.words - 1
        if item.code is Opcode.UNTIL:
            row = (Opcode.UNTIL, port.first | last << 32, item.amount, int(port.settled))
            self.rows.append(row)
        else:
            for word in range(port.first, last + 1):
                self.rows.append((Opcode.GET, word, 0, int(port.settled)))

    def _set(self, item: Item, shape: tuple[int, ...]) -> Iterator[Words]:
        port = found(self._ports, item.port, "port")
        if not port.input:
            raise BatchError(f"port {port.name!r} is driven by the design; only inputs can be set")
        numbers = range(port.first, port.first + port.words)
        looks = [int(port.active and number == numbers[-1]) for number in numbers]
        if isinstance(item.values, int | np.integer):
            value = int(item.values)
            expect_fit(port, value, value)
            value &= (1 << port.width) - 1
            words = to_words(value, port.words)
            for number, word, look in zip(numbers, words, looks, strict=True):
                self.rows.append((Opcode.SET, number, word, look))
            return
        self.rows += [
            (Opcode.TAKE, number, 0, look) for number, look in zip(numbers, looks, strict=True)
        ]
        yield fitting(port, item.values, shape)

    def results_of(
        self,
        items: Sequence[Item],
        base: int,
        loops: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> int:
        """Note the columns of results from ``base`` on. Return how many columns ``items`` have."""
        size = 0
        for item in items:
            if item.code is Opcode.GET:
                port = found(self._ports, item.port, "port")
                place = (item.values, base + size, loops, strides)
                self.results.append(Result(*place, port.words, port.signed, port.width))
                size += port.words
            elif item.code is Opcode.UNTIL:
                place = (item.values, base + size, loops, strides)
                self.results.append(Result(*place, 1, False, 64))
                size += 1
            elif item.code is Opcode.REPEAT:
                known = len(self.results)
                inner = self.results_of(item.body, base + size, loops, strides)
                del self.results[known:]
                repeated = (*loops, item.amount), (*strides, inner)
                self.results_of(item.body, base + size, *repeated)
                size += inner * item.amount
        return size


class Program:
    """Instructions in order; each method adds one.

    >>> program = Program()
    >>> program.set("w_data", [1, 2, 3]).set("w_en", 1).step()
    >>> with program.repeat(4):
    ...     program.step(10).get("level")
    """

    def __init__(self) -> None:
        self._items: list[Item] = []

    def set(self, port: str, values: ArrayLike) -> "Program":
        """Set an input: one number for all, or an array of integers with an axis of instances.

        Within ``repeat`` the array may have an axis for each loop behind it. Ports of more than 64
        bits have a last axis of words, the least significant first, in two's complement if they are
        signed; or they take whole numbers, of shape (instances,) alone.
        """
        return self._add(Item(Opcode.SET, _text(port, "port"), values))

    def step(self, cycles: int = 1) -> "Program":
        """Let ``cycles`` pass."""
        return self._add(Item(Opcode.STEP, amount=counted(cycles, "cycles", 0)))

    def until(self, port: str, limit: int, name: str | None = None) -> "Program":
        """Let cycles pass up to the first edge before which ``port`` is not 0, ``limit`` at most.

        The result ``name``, by default the name of the port, is the number of cycles that passed,
        or 0 if the port was 0 at every edge.
        """
        amount = counted(limit, "limit", 1)
        return self._add(Item(Opcode.UNTIL, *_port_and_name(port, name), amount))

    def get(self, port: str, name: str | None = None) -> "Program":
        """Read a port; the name of the result is ``name``, by default that of the port."""
        return self._add(Item(Opcode.GET, *_port_and_name(port, name)))

    @contextmanager
    def repeat(self, times: int) -> Iterator["Program"]:
        """Repeat the instructions that are added in the ``with`` block ``times`` times."""
        before, self._items = self._items, []
        try:
            yield self
        finally:
            body, self._items = tuple(self._items), before
        self._add(Item(Opcode.REPEAT, amount=counted(times, "times", 1, REPEATS), body=body))

    def replaced(self, port: str, values: ArrayLike) -> "Program":
        """Return the program with other values wherever it sets ``port``.

        If it does so once, ``values`` are as `set` takes them; else a number is for every time, and
        an array has a second axis of one place for each time, in order. Raises ``BatchError`` if
        that does not fit.
        """
        times = sum(1 for x in _all(self._items) if x.code is Opcode.SET and x.port == port)
        if not times:
            names = dict.fromkeys(x.port for x in _all(self._items) if x.code is Opcode.SET)
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

    def _add(self, item: Item) -> "Program":
        self._items.append(item)
        return self

    @property
    def items(self) -> tuple[Item, ...]:
        """The instructions, in order."""
        return tuple(self._items)

    def encoded(self, ports: Mapping[str, PortPlace], instances: int) -> Encoded:
        """Return the program for ``instances`` of a circuit with ``ports``.

        Raises ``BatchError`` for a port that does not exist and for values that do not fit it.
        """
        encoder = Encoder(ports, instances)
        columns = encoder.block(self._items, ())
        total = encoder.results_of(self._items, 0, (), ())
        known: set[str] = set()
        for result in encoder.results:
            if result.name in known:
                raise BatchError(f"two results are called {result.name!r}; give one of them a name")
            known.add(result.name)
        instructions = np.array(encoder.rows, dtype=np.uint64).reshape(-1, 4)
        return Encoded(instructions, columns, tuple(encoder.results), total)


def expect_program(program: Program, caller: str) -> None:
    """Raise ``BatchError`` unless ``program`` is a `Program`."""
    if not isinstance(program, Program):
        raise BatchError(f"{caller} takes a Program, not {program!r}")


def _text(name: str, what: str) -> str:
    if not isinstance(name, str):
        raise BatchError(f"{what}: {name!r}; expected a string")
    return name


def _port_and_name(port: str, name: str | None) -> tuple[str, str]:
    return _text(port, "port"), _text(port if name is None else name, "name of a result")


def _all(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from _all(item.body)


def _replaced(items: Sequence[Item], port: str, each: Iterator[Any]) -> list[Item]:
    found = []
    for item in items:
        if item.code is Opcode.SET and item.port == port:
            found.append(replace(item, values=next(each)))
        else:
            found.append(replace(item, body=tuple(_replaced(item.body, port, each))))
    return found
