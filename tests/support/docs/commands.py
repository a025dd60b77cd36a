"""Shell lines of the pages: parses them, and checks each without running it."""

import argparse
import contextlib
import importlib.util
import io
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bitlane.command_line.cli import whole_parser

from .pages import ROOT, Block

__all__ = ["SHELL", "Command", "commands", "complaint", "complaint_in_text"]

SHELL = ("", "console", "sh")
"""Languages of blocks of shell lines; ``console`` has prompts and the output of commands."""

_PLAIN = {".", "cd", "cp", "export", "git", "ls", "mkdir", "pre-commit"}
"""Programs of any shell or any user of the page; their arguments are not checked."""

_END = {">", ">>", "<", "|", "&&", ";", "&"}


@dataclass(frozen=True)
class Command:
    """A shell line: its words up to a redirection, and the output that the page shows for it."""

    place: str
    words: tuple[str, ...]
    output: str


def commands(block: Block) -> list[Command]:
    """Return the commands of a ``block`` in one of the languages of `SHELL`."""
    found: list[Command] = []
    text = block.text.replace("\\\n", " ")
    for number, line in enumerate(text.splitlines()):
        typed = line.removeprefix("$ ") if block.language == "console" else line
        if block.language == "console" and typed == line:
            last = found.pop()
            found.append(Command(last.place, last.words, f"{last.output}{line}\n"))
        elif words := shlex.split(typed, comments=True):
            place = f"{block.page.name}:{block.line + number}"
            found.append(Command(place, _first(words), ""))
    return found


def _first(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command in ``words``: without variables before it, up to the first operator."""
    rest = list(words)
    while rest and re.fullmatch(r"[A-Z_]+=.*", rest[0]):
        del rest[0]
    end = next((at for at, word in enumerate(rest) if word in _END), len(rest))
    return tuple(rest[:end])


def complaint(words: Sequence[str]) -> str:
    """Return the reason why the program would refuse ``words``, or "" if it accepts them."""
    program, *arguments = words
    if program == "bitlane":
        return _refused(arguments)
    if program == "make":
        unknown = {word for word in arguments if "=" not in word} - _targets()
        return f"make has no target {sorted(unknown)}" if unknown else ""
    if program == "pip":
        return _not_installable(arguments)
    if program == "python" and arguments[:1] == ["-m"]:
        return "" if importlib.util.find_spec(arguments[1]) else f"no module {arguments[1]}"
    if program == "python" and arguments[:1] and arguments[0].endswith(".py"):
        return "" if (ROOT / arguments[0]).exists() else f"no file {arguments[0]}"
    beside = Path(sys.executable).parent / program
    if program in _PLAIN or beside.exists() or shutil.which(program):
        return ""
    return f"no program {program}"


def complaint_in_text(words: Sequence[str]) -> str:
    """Return the complaint about a command in running text, where arguments may be left out."""
    program, *arguments = words
    if program == "bitlane" and arguments and not arguments[0].startswith("-"):
        parsers = _subparsers()
        if arguments[0] == "help":
            return ""
        if arguments[0] not in parsers:
            return f"bitlane has no command {arguments[0]}"
        options = {word.partition("=")[0] for word in arguments[1:] if word.startswith("-")}
        unknown = options - set(parsers[arguments[0]]._option_string_actions)
        return f"bitlane {arguments[0]} has no {sorted(unknown)}" if unknown else ""
    return complaint(words)


def _refused(arguments: Sequence[str]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            _parser().parse_args(arguments)
        except SystemExit as end:
            return said.getvalue() if end.code else ""
    return ""


def _not_installable(arguments: Sequence[str]) -> str:
    """Return a complaint about requested extras that neither project has, or ""."""
    known = {
        extra
        for folder in (ROOT, ROOT / "sim")
        for extra in tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))[
            "project"
        ]["optional-dependencies"]
    }
    asked = {
        extra
        for word in arguments
        for extras in re.findall(r"^(?:\.|\./sim|bitlane|cppsim)\[([\w,]+)\]", word)
        for extra in extras.split(",")
    }
    return f"no extra {sorted(asked - known)}" if asked - known else ""


@cache
def _parser() -> argparse.ArgumentParser:
    return whole_parser()


def _subparsers() -> dict[str, argparse.ArgumentParser]:
    [action] = (x for x in _parser()._actions if isinstance(x, argparse._SubParsersAction))
    return dict(action.choices)


@cache
def _targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, flags=re.M))
