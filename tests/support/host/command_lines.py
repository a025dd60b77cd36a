"""Command lines on modelled devices: what opens them, and refusals as rows of a table."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from bitlane.links.link import Link
from support.command_line import CommandLine


def opens(patch: pytest.MonkeyPatch, link: Callable[[str], Link]) -> list[str]:
    """Let ``link`` open the devices of all URLs; return the URLs, later ones too."""
    urls: list[str] = []

    def opened(url: str) -> Link:
        urls.append(url)
        return link(url)

    schemes = [
        SimpleNamespace(name=name, load=lambda: opened) for name in ("sim", "model", "serial")
    ]
    patch.setattr("importlib.metadata.entry_points", lambda group: schemes)
    return urls


def contents() -> dict[str, int]:
    """Return the files below the current folder, and when each was changed."""
    return {str(path): path.stat().st_mtime_ns for path in Path().rglob("*")}


def refusals(rows: Sequence[tuple[str, str]]) -> Callable[..., None]:
    """Return a test of each row: a command line as a shell reads it, and words of its one line.

    It changes no file of the current folder, and opens no device that it does not name.
    """

    @pytest.mark.parametrize(("words", "line"), rows)
    def test(
        run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, line: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("BITLANE_DEVICE", "never:")
        before = contents()
        found = run.refuse(*shlex.split(words))
        assert line in found, found
        assert contents() == before

    return test
