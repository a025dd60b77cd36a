"""The program `bitlane`, run in the process of the tests."""

from typing import NamedTuple

import pytest

from bitlane.command_line.cli import main


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
