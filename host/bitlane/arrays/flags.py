"""The flags of an array: facts about its memory, read only."""

from dataclasses import dataclass
from typing import Final

from ..errors import ArrayIndexError

_NAMES: Final = {
    "C": "c_contiguous",
    "CONTIGUOUS": "c_contiguous",
    "F": "f_contiguous",
    "FORTRAN": "f_contiguous",
    "W": "writeable",
}


@dataclass(frozen=True, slots=True)
class Flags:
    """Whether elements lie without gaps, and may be written; also as ``flags["C_CONTIGUOUS"]``."""

    c_contiguous: bool
    f_contiguous: bool
    writeable: bool

    @property
    def contiguous(self) -> bool:
        return self.c_contiguous

    @property
    def forc(self) -> bool:
        """Whether the elements lie without gaps in C's or Fortran's order."""
        return self.c_contiguous or self.f_contiguous

    @property
    def fnc(self) -> bool:
        """Whether the elements lie without gaps in Fortran's order alone."""
        return self.f_contiguous and not self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        """Return the flag that NumPy gives this name, or its first letter. ``ArrayIndexError``."""
        field = _NAMES.get(name, str(name).lower())
        if field not in ("c_contiguous", "f_contiguous", "writeable", "forc", "fnc"):
            raise ArrayIndexError(
                f"flags: {name!r}; expected C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, FORC or FNC"
            )
        flag: bool = getattr(self, field)
        return flag
