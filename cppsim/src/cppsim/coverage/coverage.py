"""Counts of points, by test, from simulations of one process and of others."""

import json
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ..native.compiled import DesignInstance
from ..netlist.covered import Measured
from .points import CoveragePoint, DesignPoints
from .report import lcov, missing, table

_open: "list[Coverage]" = []
"""The coverages whose ``with`` blocks are open."""


def current_coverage() -> "Coverage | None":
    """Return the coverage whose ``with`` block is the innermost, None outside of all."""
    return _open[-1] if _open else None


class Coverage:
    """Coverage of the simulators that are made in a ``with`` block.

    At each edge of a clock, the values before the edge decide which statements and branches are
    counted, and the values of two edges decide which bits have changed. The page *Coverage* defines
    each count.

    Parameters
    ----------
    toggles : bool
        Count the changes of each bit of each signal as well.

    Attributes
    ----------
    test : str
        The name of the test to which further counts belong; ``""`` at first.
    """

    def __init__(self, *, toggles: bool = False) -> None:
        self.measured = Measured.ALL if toggles else Measured.BRANCHES
        self._test = ""
        self._points: dict[str, list[CoveragePoint]] = {}
        self._counts: dict[tuple[str, str], list[int]] = {}
        """By test and design."""
        self._models: WeakSet[DesignInstance] = WeakSet()

    def __enter__(self) -> "Coverage":
        _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open.remove(self)

    @property
    def test(self) -> str:
        return self._test

    @test.setter
    def test(self, name: str) -> None:
        self._take()
        self._test = name

    def measure(self, design: Any, model: DesignInstance) -> None:
        """Count what ``model``, which is compiled of a prepared design, does from now on."""
        counters = model.counters()
        if counters is None:
            return
        points = DesignPoints(design, toggles=self.measured is Measured.ALL)
        key = sha256(repr(points.points).encode()).hexdigest()
        self._points.setdefault(key, points.points)

        def take() -> None:
            self._add(self._test, key, list(points.counts(*counters.take())))

        model.take_counts = take
        self._models.add(model)

    def counts(self, test: str | None = None) -> Mapping[CoveragePoint, int]:
        """Return the count of each point in all tests, or in ``test``."""
        self._take()
        found: dict[CoveragePoint, int] = {}
        for (name, key), counts in self._counts.items():
            if test in (None, name):
                for point, count in zip(self._points[key], counts, strict=True):
                    found[point] = found.get(point, 0) + count
        return found

    def tests(self) -> Sequence[str]:
        """Return the names of the tests with counts, in the order in which they ran."""
        self._take()
        return list(dict.fromkeys(name for name, _ in self._counts))

    def table(self, test: str | None = None) -> str:
        """Return a table with a line for each module: points that were hit, of how many.

        Of all tests, or of ``test``.
        """
        return table(self.counts(test))

    def missing(self, test: str | None = None) -> str:
        """Return a line for each point that was never hit, in all tests or in ``test``."""
        return missing(self.counts(test))

    def write_lcov(self, file: str | Path) -> None:
        """Write the counts of each test as a tracefile of LCOV, for ``genhtml --branch-coverage``.

        Statements are lines. Branches, and the two changes of each bit, are branches. Those of
        several instances of a module are added up. Raises ``OSError``.
        """
        text = "".join(lcov(test, self.counts(test)) for test in self.tests())
        Path(file).write_text(text, encoding="utf-8")

    def data(self) -> bytes:
        """Return all counts as bytes, for `add_data` in another process."""
        self._take()
        content = [self._points, [[*key, counts] for key, counts in self._counts.items()]]
        return zlib.compress(json.dumps(content).encode())

    def add_data(self, data: bytes) -> None:
        """Add the counts that another coverage has returned as ``data``."""
        points, counts = json.loads(zlib.decompress(data))
        for key, found in points.items():
            self._points.setdefault(key, [CoveragePoint(*point) for point in found])
        for test, key, found in counts:
            self._add(test, key, found)

    def _take(self) -> None:
        """Take the counts of simulators that are still in use."""
        for model in list(self._models):
            if model.take_counts is not None:
                model.take_counts()

    def _add(self, test: str, key: str, counts: list[int]) -> None:
        if not any(counts) and any(key == other for _, other in self._counts):
            return  # a simulator that has not run since its counts were taken
        before = self._counts.get((test, key))
        if before is not None:
            counts = [x + y for x, y in zip(before, counts, strict=True)]
        self._counts[test, key] = counts
