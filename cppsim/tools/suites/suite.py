"""Suites of other projects: `suites.toml`, and clean copies of their files at one commit."""

import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).with_name("suites.toml")

GITHUB = "https://github.com/"
"""The beginning of the URL of a ``repository``."""


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
    group: str = "all"

    def clone_from(self, base: str, clones: Path) -> None:
        """Clone ``base`` and ``repository`` at ``commit`` into ``clones``, unless it is there.

        Raises ``NoSuite`` if git fails.
        """
        clone = self._clone(clones)
        if clone.exists():
            return
        self._git(clones, "init", "-q", clone.name)
        try:
            self._git(clone, "fetch", "-q", "--depth=1", base + self.repository, self.commit)
        except NoSuite:
            shutil.rmtree(clone)
            raise

    def export(self, clones: Path, target: Path) -> Path:
        """Write the files of ``folder`` at ``commit`` to ``target``; return the folder there.

        Whatever a clone has checked out or changed is left out. A folder that git does not know is
        copied as it is. Raises ``NoSuite`` if git cannot read the files.
        """
        target.mkdir(parents=True)
        clone = self._clone(clones)
        if clone.is_dir() and not any((clone / name).exists() for name in (".git", "HEAD")):
            shutil.copytree(clone, target, symlinks=True, dirs_exist_ok=True)
        else:
            archive = target / "files.tar"
            files = self.files or [self.folder]
            self._git(clone, "archive", "-o", str(archive), self.commit, *files)
            subprocess.run(["tar", "-xf", str(archive), "-C", str(target)], check=True)
            archive.unlink()
        folder = target / self.folder
        if self.distribution:
            installed = folder / f"{self.distribution}-0.dist-info"
            installed.mkdir()
            name = f"Metadata-Version: 2.1\nName: {self.distribution}\nVersion: 0\n"
            (installed / "METADATA").write_text(name)
        return folder

    def _clone(self, clones: Path) -> Path:
        return clones / (self.clone or self.name)

    def _git(self, folder: Path, *words: str) -> None:
        command = ["git", "-C", str(folder), *words]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise NoSuite(
                f"{self.name}: {ran.stderr.strip()}; "
                f"expected a clone of {self.repository} with {self.commit[:12]}"
            )


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
