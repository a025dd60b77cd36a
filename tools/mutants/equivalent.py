"""Changes that a reader has shown to change nothing that can be seen: `equivalent.toml`."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mutants.changes import Change

FILE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, kw_only=True)
class Equivalent:
    """A change as in `Change`, ``change`` its ``summary``, and why nothing can be seen of it."""

    package: str
    file: str
    where: str
    text: str
    column: int
    change: str
    reason: str

    def matches(self, change: Change) -> bool:
        told = change.file, change.where, change.text, change.column, change.summary
        return (self.file, self.where, self.text, self.column, self.change) == told


def read(path: Path = FILE) -> list[Equivalent]:
    """All of a file. Raises ``TypeError`` where an entry lacks something or has too much."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    return [Equivalent(**entry) for entry in entries]


def of_package(name: str) -> list[Equivalent]:
    """Return those of the package ``name``."""
    return [each for each in read() if each.package == name]


def reason(change: Change, known: Iterable[Equivalent]) -> str:
    """Why ``change`` changes nothing; empty if nobody says so."""
    return next((each.reason for each in known if each.matches(change)), "")
