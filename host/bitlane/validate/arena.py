"""A region of the device's memory full of noise, and operations on it beside the NumPy model.

All bytes of the region are compared, so that a byte written beside a tensor is found too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from .. import reference
from ..driver import Command
from ..lowering import Options, Streams, View, lower, span
from .session import Session, expect_equal

_GUARD = 16
"""Least number of unused bytes between two tensors."""


@dataclass(frozen=True, slots=True)
class PlacedTensor:
    """A tensor in the arena: ``offset`` of element 0, ``strides`` in bytes."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def of(self, memory: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
        """Return its elements in a copy of the arena."""
        return np.ndarray(self.shape, f"<u{self.itemsize}", memory, self.offset, self.strides)

    def ends(self) -> tuple[int, int]:
        """Return the offsets of the lowest and of the highest byte."""
        reach = span(self.shape, self.strides, self.itemsize, self.offset)
        return reach.start, reach.stop - 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor to be placed: strides in bytes, element 0 ``skip`` bytes after an ``align``."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    align: int = 1
    skip: int = 0


@dataclass(frozen=True, slots=True)
class _Operation:
    op: Op
    a: PlacedTensor
    b: PlacedTensor | None
    y: PlacedTensor
    options: Options
    name: str


class Arena:
    """Collects operations, which ``run`` executes and compares."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.done = 0
        """Number of operations with the right result."""
        self._renew()

    def _renew(self) -> None:
        self._base = self._session.random_region()
        self.memory = self._session.random.integers(0, 256, self._session.region_bytes, np.uint8)
        """Content of the region before the first operation; inputs may be set in it."""
        self._end = 0
        self._operations: list[_Operation] = []

    def reserve(self, tensors: Sequence[Tensor]) -> list[PlacedTensor] | None:
        """Return ``try_reserve``, if necessary after a ``run``. Raises as ``run`` does."""
        placed = self.try_reserve(tensors)
        if placed is None and self._operations:
            self.run()
            placed = self.try_reserve(tensors)
        return placed

    def try_reserve(self, tensors: Sequence[Tensor]) -> list[PlacedTensor] | None:
        """Place all ``tensors`` after each other; return None if they do not fit."""
        end = self._end
        placed = []
        for tensor in tensors:
            local = PlacedTensor(0, tensor.shape, tensor.strides, tensor.itemsize)
            low, high = local.ends()
            start = end + _GUARD - low
            # Aligned in the device's memory: the base is a multiple of all that matters.
            start += -start % tensor.align + tensor.skip
            placed.append(PlacedTensor(start, tensor.shape, tensor.strides, tensor.itemsize))
            end = start + high + 1
        if end + _GUARD > self.memory.size:
            return None
        self._end = end
        return placed

    def add(
        self,
        op: Op,
        a: PlacedTensor,
        b: PlacedTensor | None,
        y: PlacedTensor,
        name: str,
        options: Options = Options.NONE,
    ) -> None:
        """Add the operation that computes ``y``; ``name`` describes it in messages."""
        self._operations.append(_Operation(op, a, b, y, options, name))

    def run(self, *, together: bool = False) -> None:
        """Execute and compare all operations. Raises ``CheckFailed``, and the errors of the driver.

        ``together``: with one fence, at the start, so that no command waits for another.
        """
        driver = self._session.driver
        # The unused rest of the region is not sent: lines are slow.
        want = self.memory[: self._end + _GUARD].copy()
        driver.write(self._base, want)
        if together:
            commands = chain.from_iterable(map(self._commands, self._operations))
            driver.run(replace(each, fence=not number) for number, each in enumerate(commands))
        for operation in self._operations:
            if not together:
                driver.run(self._commands(operation))
            target = operation.y.of(want)
            target[...] = reference.compute(
                operation.op,
                operation.a.of(want),
                None if operation.b is None else operation.b.of(want),
                count_dtype=target.dtype,
                **operation.options.flags,
            ).view(target.dtype)
        got = driver.read(self._base, want.size)
        expect_equal(got, want, self._base, self._where)
        self.done += len(self._operations)
        self._renew()

    def _commands(self, operation: _Operation) -> Iterator[Command]:
        b = None if operation.b is None else self._view(operation.b)
        streams = Streams(self._view(operation.a), b, self._view(operation.y))
        shape, has = operation.y.shape, self._session.geometry
        return lower(operation.op, shape, streams, has.abilities, has.memory, operation.options)

    def _view(self, place: PlacedTensor) -> View:
        return View(self._base + place.offset, place.strides, place.itemsize)

    def _where(self, first: int) -> str:
        where = "in the memory"
        if self._operations:
            where = f"beside the output of {self._operations[0].name}"
        for operation in self._operations:
            low, high = operation.y.ends()
            if low - _GUARD <= first <= high + _GUARD:
                inside = low <= first <= high
                where = f"{'in' if inside else 'beside'} the output of {operation.name}"
                if inside:
                    break
        return where
