"""The command `bitlane`: finds its subcommands in the installed packages and runs one.

It must name no package above `bitlane`: subcommands come from the entry points `bitlane.commands`.
"""

import argparse
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from threading import current_thread, main_thread
from types import FrameType
from typing import NoReturn, TypeAlias, cast

from ..errors import BitlaneError
from ..version import __version__

__all__ = ["CHECK_FAILED", "DONE", "INTERRUPTED", "UNUSABLE", "Subparsers", "main", "whole_number"]

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What the entry points `bitlane.commands` are called with."""

DONE = 0
CHECK_FAILED = 1
UNUSABLE = 2
"""Bad input, or a device that cannot do what was asked."""
INTERRUPTED = 130
"""Ended by Ctrl-C, as shells count it: 128 + SIGINT."""

_TRACEBACK = "--traceback"


def whole_number(text: str) -> int:
    """The ``type`` of an argument that is a whole number; says so of any other text."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number") from None


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints take one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _new_parser() -> argparse.ArgumentParser:
    return _Parser(
        prog="bitlane",
        description="Bit operators of DirectML on an FPGA, or on a simulation of its circuit.",
        epilog="exit codes: 0 done, 1 a check failed, 2 bad input or no usable device;"
        " `bitlane help COMMAND` is `bitlane COMMAND --help`",
        allow_abbrev=False,
    )


def _parser(commands: Mapping[str, EntryPoint], load: Collection[str]) -> argparse.ArgumentParser:
    """The command's parser. Only the subcommands in ``load`` get arguments and help."""
    parser = _new_parser()
    parser.add_argument("-V", "--version", action="version", version=f"bitlane {__version__}")
    parser.add_argument(
        _TRACEBACK,
        action="store_true",
        help="on an error, show where it was raised; may stand anywhere",
    )
    subparsers = parser.add_subparsers(
        title="commands",
        metavar="COMMAND",
        required=True,
        parser_class=cast(type[argparse.ArgumentParser], partial(_Parser, allow_abbrev=False)),
    )
    for name in sorted(commands):
        if name not in load:
            subparsers.add_parser(name)
            continue
        try:
            add: Callable[[Subparsers], object] = commands[name].load()
        except ModuleNotFoundError as error:
            if len(load) == 1:
                raise _lacking(name, error) from error
            subparsers.add_parser(name, help="(needs packages that are not installed)")
        else:
            add(subparsers)
    return parser


def _lacking(name: str, error: ModuleNotFoundError) -> BitlaneError:
    """The error for a package that only an extra brings. Raises ``error`` if it is ours."""
    package = (error.name or "").partition(".")[0]
    if package.startswith("bitlane"):
        raise error
    return BitlaneError(
        f"{name} needs the Python package {package}, which is not installed:"
        " pip install 'bitlane[demo,boards]' brings all that the commands need"
    )


def _one_line(error: BaseException) -> str:
    """What a user reads of ``error``: the file first where there is one, never a line break."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and not isinstance(error, BitlaneError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _expect_output() -> None:
    if sys.stdout is None:
        raise BitlaneError("standard output is closed; expected somewhere to write to")


@contextmanager
def _terminable() -> Iterator[None]:
    """Let a termination signal end the block as Ctrl-C does: tools stop and files are cleared."""
    if current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: the process's own) and return its exit code.

    Errors that a user can act on become one line on standard error; only a defect of bitlane
    itself shows a traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    shows_traceback = _TRACEBACK in words
    words = [word for word in words if word != _TRACEBACK]
    if words[:1] == ["help"]:
        words = [*(word for word in words if word != "help"), "--help"]
    try:
        _expect_output()
        with _terminable():
            code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has left, as in `bitlane info | head -1`: nothing to report.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (BitlaneError, OSError, KeyboardInterrupt) as error:
        if shows_traceback:
            traceback.print_exc()
        if isinstance(error, KeyboardInterrupt):
            # Amaranth complains of the parts of a circuit that is half made.
            warnings.simplefilter("ignore")
            print("bitlane: stopped", file=sys.stderr)
            return INTERRUPTED
        print(f"bitlane: {_one_line(error)}", file=sys.stderr)
        return UNUSABLE
    return code


def _run(words: list[str]) -> int:
    commands = {command.name: command for command in entry_points(group="bitlane.commands")}
    first = next((word for word in words if word in ("-h", "--help") or word[:1] != "-"), "")
    if not words or first in ("-h", "--help"):
        parser = _parser(commands, commands.keys())
    else:
        # The others stay unloaded: `info` need not wait for what `bench` imports.
        parser = _parser(commands, [first])
    if not words:
        parser.print_help(sys.stderr)
        return UNUSABLE
    namespace = parser.parse_args(words)
    try:
        code: int = namespace.run(namespace)
    except ModuleNotFoundError as error:
        raise _lacking(first, error) from error
    return code
