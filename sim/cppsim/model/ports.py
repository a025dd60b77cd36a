"""The ports of a circuit and the places of their words, as plain data without Amaranth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from ..errors import BatchError
from ..netlist.numbers import word_count

_Place = TypeVar("_Place")


@dataclass(frozen=True, slots=True)
class PortPlace:
    """A signal that can be read, and set if it is an ``input``.

    Its words of 64 bits have the numbers from ``first`` on. A ``settled`` signal follows from the
    state by logic. A change of an ``active`` one may cause an edge.
    """

    name: str
    width: int
    signed: bool
    first: int
    input: bool = False
    settled: bool = False
    active: bool = False

    @property
    def words(self) -> int:
        return word_count(self.width)


def found(places: Mapping[str, _Place], name: str, kind: str) -> _Place:
    """Return the place of ``name``. Raises ``BatchError`` for an unknown one, a ``kind``."""
    if name not in places:
        names = ", ".join(sorted(places)) or "none"
        raise BatchError(f"no {kind} {name!r}; there are: {names}")
    return places[name]
