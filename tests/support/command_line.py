"""``bitlane`` as a user types it, run in this process."""

from typing import NamedTuple

import pytest

from bitlane.command_line.cli import UNUSABLE, main


class Ran(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


class CommandLine:
    """Runs ``bitlane`` with the words that it is called with."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Ran:
        try:
            code = main(words)
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Ran(code, *self._capsys.readouterr())

    def refuse(self, *words: str) -> str:
        """Expect that the command is refused in one line on standard error; return this line."""
        ran = self(*words)
        assert (ran.returncode, ran.stdout) == (UNUSABLE, ""), ran
        assert ran.stderr.count("\n") == 1, ran.stderr
        return ran.stderr
