"""The program `bitlane`, run in the process of the tests, also on a modelled device."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from bitlane.command_line import main
from bitlane.links import Link


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class CommandLine:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Ran:
        """Run the program; return its exit code, and the text on its two outputs."""
        self._capsys.readouterr()
        code: object
        try:
            code = main(list(words))
        except SystemExit as end:
            code = end.code
        assert isinstance(code, int)
        return Ran(code, *self._capsys.readouterr())

    def refuse(self, *words: str, code: int = 2) -> str:
        """Return the line on standard error; expect nothing on standard output."""
        ended = self(*words)
        assert (ended.code, ended.out) == (code, "")
        assert ended.err.endswith("\n")
        assert ended.err.count("\n") == 1, ended.err
        return ended.err.rstrip("\n")


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
