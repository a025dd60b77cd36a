"""Single changes of a Python source, for mutation tests, and samples of them.

Reads and writes no file.
"""

import hashlib
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kind of source construct that a change alters."""

    OPERATOR = "operator"
    CONSTANT = "constant"
    CONDITION = "condition"
    STATEMENT = "statement"
    ARGUMENT = "argument"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of one place: ``after`` replaces ``before``, the bytes from ``start`` to ``end``.

    ``file`` is relative to the package, ``where`` names the class and function around it. ``text``
    is the stripped line on which the change begins; ``column`` counts in ``text``, from 1.
    """

    file: str
    line: int
    column: int
    where: str
    text: str
    kind: Kind
    before: str
    after: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {textwrap.shorten(self.summary, 120, placeholder=' …')}"

    @property
    def summary(self) -> str:
        """The change in words, without its place."""
        if self.kind is Kind.STATEMENT:
            return f"without {self.before}"
        return f"{self.before} -> {self.after}"

    def lot(self, seed: int) -> str:
        """Return a pseudo-random sort key. It does not depend on the line number."""
        drawn = f"{seed} {self.file} {self.where} {self.text} {self.column} {self.summary}"
        return hashlib.sha256(drawn.encode()).hexdigest()


def apply(change: Change, source: str) -> str:
    """Return ``source`` with ``change`` applied; `finders` must have found it there."""
    raw = source.encode()
    return (raw[: change.start] + change.after.encode() + raw[change.end :]).decode()


def sample(found: Iterable[Change], count: int, seed: int) -> list[Change]:
    """Return up to ``count`` changes, at most one for each place.

    A larger ``count`` only adds changes, and edits elsewhere do not alter the choice at a place.
    """
    places: dict[tuple[str, int, int], list[Change]] = {}
    for change in found:
        places.setdefault((change.file, change.start, change.end), []).append(change)
    chosen = [min(each, key=lambda change: change.lot(seed)) for each in places.values()]
    return sorted(chosen, key=lambda change: change.lot(seed))[:count]
