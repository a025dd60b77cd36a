"""63 copies of a netlist, each with one flipped row of a LUT, evaluated beside it. No tests here.

`flip_copies.cc` evaluates the copies as the other 63 bits of each level.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitlane_boards.pins import LUT, SIGNATURES, GateModel, Netlist
from bitlane_boards.pins.model import NUMBER, POINTER, Native, load

__all__ = ["COPIES", "FlippedCopies", "FlippedRow"]

COPIES = 63
"""Most flipped copies of a netlist that run beside it."""

_SOURCE = Path(__file__).with_name("flip_copies.cc")
_FLIP = np.dtype([("lut", np.uint32), ("row", np.uint32), ("whole", LUT)])


@dataclass(frozen=True, slots=True)
class FlippedRow:
    """A flip of bit ``row`` in the table of the LUT that drives signal ``output``.

    ``inputs`` and ``table`` include the inputs without an effect. Flips of one LUT have the same
    ``inputs`` and ``table``.
    """

    inputs: tuple[int, ...]
    output: int
    table: int
    row: int

    def place(self, netlist: Netlist) -> int:
        """Return the number of the LUT in ``netlist``."""
        return int(np.flatnonzero(netlist.luts["output"] == self.output)[0])

    def lut(self) -> NDArray[np.void]:
        """Return the whole LUT without the flip."""
        entry = np.zeros((), LUT)
        entry["inputs"][: len(self.inputs)] = self.inputs
        entry["output"], entry["table"] = self.output, self.table
        return entry

    def put_into(self, netlist: Netlist) -> Netlist:
        """Return ``netlist`` with the flip, which may close a loop of LUTs."""
        luts, lut = netlist.luts.copy(), self.lut()
        lut["table"] ^= 1 << self.row
        luts[self.place(netlist)] = lut
        return replace(netlist, luts=luts)


class FlippedCopies(GateModel):
    """A netlist, and for each of ``flips`` a copy that has this row flipped and the same inputs."""

    def __init__(self, netlist: Netlist, description: str, flips: Sequence[FlippedRow]) -> None:
        if len(flips) > COPIES:
            raise ValueError(f"flips: {len(flips)}; expected up to {COPIES}")
        self._diverged: frozenset[int] | None = None
        self._flips = np.zeros(len(flips), _FLIP)
        for entry, flip in zip(self._flips, flips, strict=True):
            entry["lut"], entry["whole"] = flip.place(netlist), flip.lut()
            entry["row"] = flip.row
        super().__init__(netlist, description)

    def _created(self, gone: str, netlist: ctypes.Structure) -> Native:
        number = ctypes.c_uint32
        more = {
            "gates_create_flipped": (POINTER, [POINTER, POINTER, number]),
            "gates_watch": (None, [POINTER, number]),
            "gates_apart": (NUMBER, [POINTER]),
            "gates_watch_rows": (None, [POINTER]),
            "gates_chosen": (POINTER, [POINTER]),
        }
        library, flips = load(_SOURCE, {**SIGNATURES, **more}), self._flips
        of = ctypes.byref(netlist), flips.ctypes.data, flips.size
        return Native(library, "gates", gone, *of, create="create_flipped")

    @property
    def diverged(self) -> frozenset[int]:
        """Numbers of the flips that showed, also after ``close``.

        A flip shows when the pin that the simulation samples, or after ``watch_pins`` any output,
        has another level than without the flip, or when a loop of LUTs does not settle.
        """
        if self._diverged is not None:
            return self._diverged
        copies: int = self._gates("apart")
        return frozenset(number for number in range(COPIES) if copies >> number + 1 & 1)

    def watch_rows(self) -> None:
        """Record in every cycle from now on the row that each LUT of the netlist looks up."""
        self._gates("watch_rows")

    @property
    def chosen(self) -> NDArray[np.uint16]:
        """The rows that each LUT looked up since ``watch_rows``, as a bit mask."""
        rows = np.empty(self.netlist.luts.size, np.uint16)
        ctypes.memmove(rows.ctypes.data, self._gates("chosen"), rows.nbytes)
        return rows

    def watch_pins(self) -> None:
        """Compare every output from now on."""
        for signals in self.netlist.outputs.values():
            for signal in signals:
                self._gates("watch", signal)

    def close(self) -> None:
        self._diverged = self.diverged
        super().close()
