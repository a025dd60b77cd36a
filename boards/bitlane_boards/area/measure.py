"""Places designs one after the other and judges them by their goals. Prints nothing."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median_low

from ..flow import YOSYS, Cells
from ..flow.tools import Progress, ToolError, require
from .chips import CHIPS
from .designs import Design
from .peers import PEERS, Peer
from .place import Placer, SeedResult

__all__ = ["AreaRow", "measure_area", "versions"]


@dataclass(slots=True)
class AreaRow:
    """The cells of a design and its placements by seed, or the reason for which it has none.

    ``parts``: cells of its parts by path, if ``blocks`` was set.
    """

    design: Design
    cells: Cells | None = None
    placements: list[SeedResult] = field(default_factory=list)
    parts: dict[str, Cells] = field(default_factory=dict)
    failure: str = ""

    @property
    def median(self) -> SeedResult | None:
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
            if (peer.kind, peer.family, peer.width) == (design.beside, design.family, design.width)
        ]

    def as_dict(self) -> dict[str, object]:
        design = self.design
        return {
            "design": design.name,
            "family": design.family,
            "chip": CHIPS[design.family].title,
            "width": design.width,
            "scope": design.scope,
            "cells": None if self.cells is None else asdict(self.cells),
            "mhz": self.mhz,
            "mhz_by_seed": {placement.seed: placement.mhz for placement in self.placements},
            "mhz_by_clock": {placement.seed: placement.clocks for placement in self.placements},
            "gigabytes_per_second": self.gigabytes,
            "most_lut4": design.most_lut4,
            "least_mhz": design.least_mhz,
            "met": self.met,
            "failure": self.failure,
            "parts": {path: asdict(cells) for path, cells in self.parts.items()},
            "path": [asdict(step) for step in self.median.path] if self.median else [],
            "peers": [
                {**asdict(peer), "gigabytes_per_second": peer.gigabytes} for peer in self.peers
            ],
        }


def versions(designs: Sequence[Design]) -> dict[str, str]:
    """Versions of the tools that ``designs`` need. Raises ``BitlaneError`` if one is missing."""
    chips = {design.family: CHIPS[design.family] for design in designs}.values()
    return require((YOSYS, *(chip.flow.nextpnr for chip in chips)))


def measure_area(
    designs: Sequence[Design], seeds: int, progress: Progress, *, blocks: bool = False
) -> Iterator[AreaRow]:
    """Place each of ``designs`` with seeds 1 to ``seeds``, and call ``progress`` before each step.

    With ``blocks``, the parts of each are counted too. A design that cannot be synthesised or
    placed gives a row with ``failure``. A tool that is not installed raises ``BitlaneError`` before
    anything is done.
    """
    versions(designs)
    for design in designs:
        with tempfile.TemporaryDirectory(prefix="bitlane-area-") as folder:
            row = AreaRow(design)
            placer = Placer(CHIPS[design.family], Path(folder), progress, design.clocks)
            try:
                _measure(row, placer, seeds, blocks=blocks)
            except ToolError as error:
                row.failure = error.reason
        yield row


def _measure(row: AreaRow, placer: Placer, seeds: int, *, blocks: bool) -> None:
    """Fill ``row``. If a tool fails, raises `ToolError` and leaves the earlier figures in it."""
    title = f"{row.design.name} on {row.design.family}"
    if blocks:
        placer.progress(f"{title}: synthesis of its parts")
        row.parts = placer.parts(row.design.build())
    placer.progress(f"{title}: synthesis")
    row.cells = placer.synthesise(row.design.build())
    for seed in range(1, seeds + 1):
        placer.progress(f"{title}: place and route, seed {seed} of {seeds}")
        row.placements.append(placer.route(seed))
