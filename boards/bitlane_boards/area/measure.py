"""Places designs one after the other and judges them by their goals. Prints nothing."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median_low

from .designs import Design
from .families import FAMILIES, Cells
from .peers import PEERS, Peer
from .place import Placement, ToolError, find_tools, route, synthesise

__all__ = ["AreaRow", "measure_area"]


@dataclass(frozen=True, slots=True)
class AreaRow:
    """What became of a design: its cells and placements by seed, or why it has none."""

    design: Design
    cells: Cells | None
    placements: tuple[Placement, ...]
    failure: str = ""

    @property
    def median(self) -> Placement | None:
        """The placement of median clock, the lower of two."""
        if self.failure or not self.placements:
            return None
        middle = median_low(placement.mhz for placement in self.placements)
        return next(each for each in self.placements if each.mhz == middle)

    @property
    def mhz(self) -> float | None:
        return None if self.median is None else self.median.mhz

    @property
    def gigabytes(self) -> float | None:
        """Gigabytes a second of a port that carries a beat in every cycle."""
        return None if self.mhz is None else self.design.width * self.mhz / 8000

    @property
    def met(self) -> bool | None:
        """Whether it was placed and meets its goals; None if it was placed and has none."""
        if self.failure or self.cells is None or self.mhz is None:
            return False
        design = self.design
        if not design.has_goal:
            return None
        small = design.most_lut4 is None or self.cells.lut4 <= design.most_lut4
        return small and (design.least_mhz is None or self.mhz >= design.least_mhz)

    @property
    def peers(self) -> list[Peer]:
        """Comparable peers' recorded figures."""
        design = self.design
        return [
            peer
            for peer in PEERS
            if design.beside and (peer.family, peer.width) == (design.family, design.width)
        ]

    def as_dict(self) -> dict[str, object]:
        design = self.design
        return {
            "design": design.name,
            "family": design.family,
            "chip": FAMILIES[design.family].chip,
            "width": design.width,
            "scope": design.scope,
            "cells": None if self.cells is None else asdict(self.cells),
            "mhz": self.mhz,
            "mhz_by_seed": {placement.seed: placement.mhz for placement in self.placements},
            "gigabytes_per_second": self.gigabytes,
            "most_lut4": design.most_lut4,
            "least_mhz": design.least_mhz,
            "met": self.met,
            "failure": self.failure,
            "path": [asdict(step) for step in self.median.path] if self.median else [],
            "peers": [
                {**asdict(peer), "gigabytes_per_second": peer.gigabytes} for peer in self.peers
            ],
        }


def measure_area(
    designs: Sequence[Design], seeds: int, progress: Callable[[str], None]
) -> Iterator[AreaRow]:
    """Place each of ``designs`` with seeds 1 to ``seeds``; ``progress`` is told what comes next.

    A design that cannot be synthesised or placed gives a row with ``failure``. A tool that is not
    installed raises `MissingTool` before anything is done.
    """
    for family in {design.family for design in designs}:
        find_tools(FAMILIES[family])
    for design in designs:
        yield _measure(design, seeds, progress)


def _measure(design: Design, seeds: int, progress: Callable[[str], None]) -> AreaRow:
    family = FAMILIES[design.family]
    title = f"{design.name} on {design.family}"
    cells = None
    placements: list[Placement] = []
    with tempfile.TemporaryDirectory(prefix="bitlane-area-") as name:
        folder = Path(name)
        try:
            progress(f"{title}: synthesis")
            cells = synthesise(design.build(), family, folder)
            for seed in range(1, seeds + 1):
                progress(f"{title}: place and route, seed {seed} of {seeds}")
                placements.append(route(family, folder, seed))
        except ToolError as error:
            return AreaRow(design, cells, tuple(placements), str(error))
    return AreaRow(design, cells, tuple(placements))
