"""Suites of other projects: `suites.toml`, and clean copies of their files at one commit."""

import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).with_name("suites.toml")


class NoSuite(Exception):
    """A suite cannot be run: the message names it, and the cure."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """An entry of `suites.toml`, which describes the fields."""

    name: str
    repository: str
    commit: str
    folder: str
    path: list[str]
    tests: list[str]
    requires: list[str]
    clone: str = ""
    files: list[str] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    distribution: str = ""

    def export(self, clones: Path, target: Path) -> Path:
        """Write the files of ``folder`` at ``commit`` to ``target``; return the folder there.

        Whatever the clone has checked out or changed is left out. Raises ``NoSuite`` if git cannot
        read the files.
        """
        target.mkdir(parents=True)
        archive = target / "files.tar"
        command = [
            "git",
            "-C",
            str(clones / (self.clone or self.name)),
            "archive",
            "-o",
            str(archive),
            self.commit,
        ]
        written = subprocess.run(
            [*command, *(self.files or [self.folder])], capture_output=True, text=True, check=False
        )
        if written.returncode:
            raise NoSuite(
                f"{self.name}: {written.stderr.strip()}; "
                f"expected a clone of {self.repository} with {self.commit[:12]}"
            )
        subprocess.run(["tar", "-xf", str(archive), "-C", str(target)], check=True)
        folder = target / self.folder
        if self.distribution:
            installed = folder / f"{self.distribution}-0.dist-info"
            installed.mkdir()
            name = f"Metadata-Version: 2.1\nName: {self.distribution}\nVersion: 0\n"
            (installed / "METADATA").write_text(name)
        return folder


def read(path: Path = FILE) -> list[Suite]:
    """Return all suites of a file. Raises ``TypeError`` for an entry with wrong fields."""
    return [Suite(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["suite"]]


def chosen(suites: Sequence[Suite], names: Sequence[str]) -> Iterator[Suite]:
    """Yield the suites of ``names``, all without names. Raises ``NoSuite`` for an unknown one."""
    known = {suite.name: suite for suite in suites}
    for name in names or known:
        if name not in known:
            raise NoSuite(f"{name}: not a suite; expected one of {', '.join(known)}")
        yield known[name]
