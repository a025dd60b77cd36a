"""A piece of the device's memory full of noise, and operations on it beside the NumPy model.

All bytes of the piece are compared in the end, so that one written beside a tensor is found too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from .. import reference
from ..driver.commands import Command
from ..lowering.lower import lower
from ..lowering.routes import Shift
from ..lowering.strided import Streams, View, span
from .session import Session, expect_equal

_GUARD = 16
"""Bytes that are left alone between two tensors, at least."""


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in the arena: ``offset`` of element 0, ``strides`` in bytes."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def of(self, memory: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
        """Its elements in a copy of the arena."""
        return np.ndarray(self.shape, f"<u{self.itemsize}", memory, self.offset, self.strides)

    def first_and_last(self) -> tuple[int, int]:
        """Return the lowest and the highest byte."""
        reach = span(self.shape, self.strides, self.itemsize, self.offset)
        return reach.start, reach.stop - 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """What to make room for: strides in bytes, ``align`` of element 0, ``skip`` bytes further."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    align: int = 1
    skip: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    op: Op
    a: Place
    b: Place | None
    y: Place
    saturate: bool
    arithmetic: bool
    name: str


class Arena:
    """Jobs are added, then ``run`` executes and compares them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.done = 0
        """Jobs that have been right."""
        self._renew()

    def _renew(self) -> None:
        self._base = self._session.place_region()
        self.memory = self._session.random.integers(0, 256, self._session.region_bytes, np.uint8)
        """What the device's memory holds before the first job; inputs may be set in it."""
        self._end = 0
        self._jobs: list[_Job] = []

    def make_room(self, tensors: Sequence[Tensor]) -> list[Place] | None:
        """``place``, if need be after all jobs have been run. Raises as ``run`` does."""
        places = self.place(tensors)
        if places is None and self._jobs:
            self.run()
            places = self.place(tensors)
        return places

    def place(self, tensors: Sequence[Tensor]) -> list[Place] | None:
        """Room for all of ``tensors``, one behind the other; None if it is not there."""
        end = self._end
        places = []
        for tensor in tensors:
            local = Place(0, tensor.shape, tensor.strides, tensor.itemsize)
            low, high = local.first_and_last()
            start = end + _GUARD - low
            # Aligned in the device's memory: the base is a multiple of all that matters.
            start += -start % tensor.align + tensor.skip
            places.append(Place(start, tensor.shape, tensor.strides, tensor.itemsize))
            end = start + high + 1
        if end + _GUARD > self.memory.size:
            return None
        self._end = end
        return places

    def add(
        self,
        op: Op,
        a: Place,
        b: Place | None,
        y: Place,
        name: str,
        *,
        saturate: bool = False,
        arithmetic: bool = False,
    ) -> None:
        """Have ``y`` computed; ``name`` tells people which job it is."""
        self._jobs.append(_Job(op, a, b, y, saturate, arithmetic, name))

    def run(self, *, together: bool = False) -> None:
        """Execute all jobs, and forget them. Raises ``CheckFailed``, and what the driver raises.

        ``together``: as one, in which no command waits for another but the first.
        """
        driver = self._session.driver
        # The rest of the arena stays at home: lines are slow.
        want = self.memory[: self._end + _GUARD].copy()
        driver.write(self._base, want)
        if together:
            commands = (command for job in self._jobs for command in self._commands(job))
            driver.run(replace(each, fence=not number) for number, each in enumerate(commands))
        for job in self._jobs:
            if not together:
                driver.run(self._commands(job))
            target = job.y.of(want)
            target[...] = reference.compute(
                job.op,
                job.a.of(want),
                None if job.b is None else job.b.of(want),
                saturate=job.saturate,
                arithmetic=job.arithmetic,
                count_dtype=target.dtype,
            ).view(target.dtype)
        got = driver.read(self._base, want.size)
        expect_equal(got, want, self._base, self._where)
        self.done += len(self._jobs)
        self._renew()

    def _commands(self, job: _Job) -> Iterator[Command]:
        b = None if job.b is None else self._view(job.b)
        streams = Streams(self._view(job.a), b, self._view(job.y))
        shift = Shift.of(saturate=job.saturate, arithmetic=job.arithmetic)
        return lower(job.op, job.y.shape, streams, self._session.geometry, shift)

    def _view(self, place: Place) -> View:
        return View(self._base + place.offset, place.strides, place.itemsize)

    def _where(self, first: int) -> str:
        where = f"beside the output of {self._jobs[0].name}" if self._jobs else "in the memory"
        for job in self._jobs:
            low, high = job.y.first_and_last()
            if low - _GUARD <= first <= high + _GUARD:
                inside = low <= first <= high
                where = f"{'in' if inside else 'beside'} the output of {job.name}"
                if inside:
                    break
        return where
