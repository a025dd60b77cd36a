"""A program: set, step, until, get and repeat, executed in one call.

`Model` executes it on one instance of a circuit, `Batch` on many, `ReferenceModel` in Amaranth's
simulator. All instances follow the same instructions, each with its own values, and each waits as
long as its own conditions take.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import BatchError
from .encoding import Encoded, Encoder, Item, Opcode
from .ports import PortPlace
from .values import as_array, counted

_REPEATS = 1 << 32


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
        return self._add(Item(Opcode.SET, port, values))

    def step(self, cycles: int = 1) -> "Program":
        """Let ``cycles`` pass."""
        return self._add(Item(Opcode.STEP, amount=counted(cycles, "cycles", 0)))

    def until(self, port: str, limit: int, name: str | None = None) -> "Program":
        """Let cycles pass up to the first edge before which ``port`` is not 0, ``limit`` at most.

        The result ``name``, by default the name of the port, is the number of cycles that passed,
        or 0 if the port was 0 at every edge.
        """
        amount = counted(limit, "limit", 1)
        return self._add(Item(Opcode.UNTIL, port, name or port, amount))

    def get(self, port: str, name: str | None = None) -> "Program":
        """Read a port; the name of the result is ``name``, by default that of the port."""
        return self._add(Item(Opcode.GET, port, name or port))

    @contextmanager
    def repeat(self, times: int) -> Iterator["Program"]:
        """Repeat the instructions that are added in the ``with`` block ``times`` times."""
        before, self._items = self._items, []
        try:
            yield self
        finally:
            body, self._items = tuple(self._items), before
        self._add(Item(Opcode.REPEAT, amount=counted(times, "times", 1, _REPEATS), body=body))

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
