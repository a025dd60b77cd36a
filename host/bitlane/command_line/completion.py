"""`bitlane completion SHELL`: a script by shtab with which a shell completes bitlane's words."""

import argparse
from collections.abc import Iterator

from .cli import DONE, Group, Subparsers, whole_parser

_FILES = ("DIR", "FILE", "MODEL")
"""Prefixes of metavars that stand for files."""


def add_completion(subparsers: Subparsers) -> None:
    """Add the subcommand `completion`."""
    parser = subparsers.add_parser(
        "completion",
        help="print what makes a shell complete bitlane's words",
        description="Print a script for the shell that completes commands, options, boards and"
        " files: for bash, write it to ~/.local/share/bash-completion/completions/bitlane.",
        epilog="exit codes: 0 printed, 2 bad input or a missing package",
    )
    parser.add_argument(
        "shell",
        metavar="SHELL",
        choices=("bash", "fish", "tcsh", "zsh"),
        help="bash, fish, tcsh or zsh",
    )
    parser.set_defaults(run=_run, group=Group.USE, extra="completion")


def _run(arguments: argparse.Namespace) -> int:
    import shtab

    parser = whole_parser()
    for action in _actions(parser):
        if str(action.metavar).partition(".")[0] in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    print(shtab.complete(parser, arguments.shell))
    return DONE


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of ``parser`` and of its subparsers."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
