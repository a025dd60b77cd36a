"""Results of running a model: timings, comparisons and commands, as text and as data for JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median, median_low
from time import perf_counter
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from ..driver import Driver
from ..text import printable
from .resources import plain, print_flat, print_verbose


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians over all iterations; ``cycles`` is None for a circuit without counters.

    ``predicted``: no circuit has executed the commands, see `Link.predicted`.
    """

    iterations: int
    milliseconds: float
    cycles: int | None
    predicted: bool = False

    def __str__(self) -> str:
        text = f"{self.iterations} iterations, {self.milliseconds:.4f} ms median (CPU)"
        if self.cycles is None:
            return text
        return f"{text}, {self.cycles} cycles{' predicted' if self.predicted else ''}"


@dataclass(frozen=True, slots=True)
class BusyCycles:
    """A function that reads BUSY_CYCLES, modulo 2**32. ``predicted``: as of `Timing`."""

    read: Callable[[], int]
    predicted: bool = False

    def __call__(self) -> int:
        return self.read()


def busy_cycles(driver: Driver) -> BusyCycles | None:
    """Return a function that reads BUSY_CYCLES; None for a circuit without counters."""
    if not driver.geometry.counters:
        return None
    return BusyCycles(lambda: driver.read_register("BUSY_CYCLES"), driver.link.predicted)


def measure(
    execute: Callable[[], object], read_cycles: BusyCycles | None, iterations: int = 1
) -> Timing:
    """Call ``execute`` a number of times, and return the medians."""
    times, counts = [], []
    for _ in range(iterations):
        before = read_cycles() if read_cycles else 0
        start = perf_counter()
        execute()
        times.append((perf_counter() - start) * 1000)
        if read_cycles:
            counts.append((read_cycles() - before) % 2**32)
    predicted = read_cycles is not None and read_cycles.predicted
    return Timing(iterations, median(times), median_low(counts) if counts else None, predicted)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Number of bytes of a result, and of those that differ; ``first`` describes the first."""

    size: int
    different: int = 0
    first: str = ""

    def __str__(self) -> str:
        if not self.different:
            return f"{self.size} bytes equal"
        return f"{self.different} of {self.size} bytes differ, first byte {self.first}"


def compare(
    got: npt.NDArray[np.generic],
    want: npt.NDArray[np.generic],
    describe: Callable[[int], str] = str,
) -> Comparison:
    """Compare all bytes of two arrays of one size.

    ``describe`` returns the text for the number of a byte.
    """
    left, right = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (got, want))
    different = np.flatnonzero(left != right)
    if not different.size:
        return Comparison(left.size)
    first = int(different[0])
    text = f"{describe(first)}: 0x{left[first]:02X}, expected 0x{right[first]:02X}"
    return Comparison(left.size, int(different.size), text)


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """A dispatch, and the timing of the job that it was executed in."""

    kind: ClassVar[str] = "dispatches"
    name: str
    timing: Timing
    dispatches_in_job: int = 1

    @property
    def data(self) -> dict[str, object]:
        """The result for JSON."""
        timing, count = self.timing, self.dispatches_in_job
        data: dict[str, object] = {"name": self.name, "iterations": timing.iterations}
        data["milliseconds"] = timing.milliseconds
        if timing.cycles is not None:
            data["cycles"] = timing.cycles
        if timing.predicted:
            data["predicted"] = True
        if count > 1:
            data["dispatches_in_job"] = count
        return data

    def __str__(self) -> str:
        count = self.dispatches_in_job
        job = f" for a job of {count} dispatches" if count > 1 else ""
        return f"Dispatch '{printable(self.name)}': {self.timing}{job}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The comparison of a dispatch's output buffer with that of the golden model."""

    kind: ClassVar[str] = "checks"
    name: str
    comparison: Comparison

    @property
    def data(self) -> dict[str, object]:
        """The result for JSON."""
        size, different = self.comparison.size, self.comparison.different
        return {"name": self.name, "bytes": size, "different": different}

    def __str__(self) -> str:
        return f"Check '{printable(self.name)}': {self.comparison}"


@dataclass(frozen=True, slots=True, eq=False)
class PrintedResource:
    """The elements of a resource; ``verbose`` prints one a line with its encoding."""

    kind: ClassVar[str] = "resources"
    name: str
    data_type: str
    values: npt.NDArray[np.generic]
    verbose: bool

    @property
    def data(self) -> dict[str, object]:
        """The result for JSON."""
        return {"name": self.name, "type": self.data_type, "values": plain(self.values)}

    def __str__(self) -> str:
        shown = f"\n{print_verbose(self.values)}" if self.verbose else f" {print_flat(self.values)}"
        return f"Resource '{printable(self.name)}':{shown}"


@dataclass(frozen=True, slots=True)
class WrittenResource:
    """A resource that was written to the file ``path``."""

    kind: ClassVar[str] = "files"
    name: str
    path: Path

    @property
    def data(self) -> dict[str, object]:
        """The result for JSON."""
        return {"name": self.name, "path": str(self.path)}

    def __str__(self) -> str:
        return f"Resource '{printable(self.name)}' written to '{printable(str(self.path))}'"


Result: TypeAlias = DispatchResult | CheckResult | PrintedResource | WrittenResource
"""The result of a command; a dispatch that is checked has two."""
