"""The outcome of flips, computed from the results of a batch. Needs NumPy alone."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import BitlaneError

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Flips:
    """Bits of LUTs: ``luts`` and ``rows`` number the LUT and the row of its table.

    ``locations``, of shape (flips, 3), are x, y and number of the logic cells. ``reached`` is true
    if the board without a flip looked the row up in its longest simulation, of ``longest`` cycles.
    """

    luts: Numbers
    rows: Numbers
    locations: Numbers
    reached: NDArray[np.bool_]
    longest: int

    def __len__(self) -> int:
        return len(self.luts)

    def those(self, chosen: Sequence[int]) -> "Flips":
        """Return the flips numbered ``chosen``."""
        x = list(chosen)
        return Flips(self.luts[x], self.rows[x], self.locations[x], self.reached[x], self.longest)

    def save(self, path: Path, parts: Sequence[str]) -> None:
        """Write the flips and the names of the stimulus's ``parts`` to ``path``."""
        np.savez_compressed(path, parts=np.array(parts), **vars(self))


def load_flips(folder: Path) -> tuple[Flips, "FlipOutcome"]:
    """Return the flips saved in ``folder`` and their outcome. Raises ``BitlaneError``."""
    try:
        with np.load(folder / "flips.npz") as data:
            luts, rows, locations, reached, longest = (data[x] for x in Flips.__annotations__)
            flips = Flips(luts, rows, locations, reached, int(longest))
            parts = [str(name) for name in data["parts"]]
        with np.load(folder / "results.npz") as data:
            results = {name: data[name] for name in data.files if " " in name}
        return flips, FlipOutcome.of(flips, parts, results)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BitlaneError(f"{folder}: {error}; expected a folder of flips that was run") from error


@dataclass(frozen=True)
class FlipOutcome:
    """The parts of the stimulus in which each flip was first seen and first looked up.

    ``line`` and ``leds`` give the part in which the flip first shows at the line or an LED,
    ``looked_up`` the part in which its row is first looked up; `len(parts)` means never.
    """

    parts: tuple[str, ...]
    line: Numbers
    leds: Numbers
    looked_up: Numbers

    @classmethod
    def of(
        cls, flips: Flips, parts: Sequence[str], results: Mapping[str, NDArray[Any]]
    ) -> "FlipOutcome":
        """Compare each instance with the last one, which has no flip, at the end of each part.

        Raises ``BitlaneError`` if a flip was seen before its row was looked up.
        """
        first = {}
        for port in ("line", "leds", "addressed"):
            shown = np.stack([results[f"{port} {number}"] for number in range(len(parts))])
            differs = shown[:, :-1] != shown[:, -1:]
            # A CRC differs from its first difference on, except by chance.
            differs = np.logical_or.accumulate(differs, axis=0)
            first[port] = len(parts) - differs.sum(axis=0)
        outcome = cls(tuple(parts), first["line"], first["leds"], first["addressed"])
        impossible = np.flatnonzero(outcome.seen < outcome.looked_up)
        if len(impossible):
            x, y, number = flips.locations[impossible[0]].tolist()
            raise BitlaneError(
                f"row {flips.rows[impossible[0]]} of LUT {number} in tile {x},{y} was seen and"
                " never looked up; the results are of another campaign, or the simulation is wrong"
            )
        return outcome

    @property
    def seen(self) -> Numbers:
        """The part in which each flip was first seen, at the line or an LED."""
        return np.minimum(self.line, self.leds)

    def rows(self, flips: Flips) -> list[dict[str, int | str]]:
        """Return a table that counts ``flips`` by kind, and those seen after each part.

        ``in`` names the row that contains a row.
        """
        never = len(self.parts)
        looked_up, seen = self.looked_up < never, self.seen < never
        table = [
            ("bits that inputs can choose", "", np.ones(len(flips), bool)),
            ("seen at a pin", "bits that inputs can choose", seen),
            ("seen on the line", "seen at a pin", self.line < never),
        ]
        for number, name in enumerate(self.parts):
            table.append((f"seen after {name}", "seen at a pin", self.seen <= number))
        unseen = "looked up, not seen", "never looked up"
        table += [
            (unseen[0], "bits that inputs can choose", looked_up & ~seen),
            (unseen[1], "bits that inputs can choose", ~looked_up),
        ]
        never_reached = f"nor by the sound board in {flips.longest:,} cycles"
        table.append((never_reached, unseen[1], ~looked_up & ~flips.reached))
        return [{"what": kind, "in": of, "flips": int(each.sum())} for kind, of, each in table]
