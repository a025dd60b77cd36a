"""The command `bitlane`: finds its subcommands in the installed packages and runs one.

It must name no package above `bitlane`: subcommands come from the entry points `bitlane.commands`.
"""

import argparse
import os
import signal
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from io import TextIOWrapper
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

from ..errors import BitlaneError
from ..installation import how_to_install
from ..text import printable
from ..version import __version__

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The argument of the entry points `bitlane.commands`.

Each entry point adds a parser with the defaults ``run``, its function, ``group``, its `Group`, and
``extra``, the extra of bitlane that brings the packages that it needs, if any. Adding must take no
time and import none of these packages.
"""


class Group(Enum):
    """Headings of `bitlane --help`, in order. OTHERS has the commands without a group."""

    USE = "use"
    BOARDS = "boards"
    MEASURE = "measure and verify"
    OTHERS = "others"


DONE = 0
CHECK_FAILED = 1
UNUSABLE = 2
"""Exit code for bad input, or a device that cannot execute the request."""
INTERRUPTED = 130
"""Ended by Ctrl-C, as shells count it: 128 + SIGINT."""

_TRACEBACK = "--traceback"


def whole_number(text: str) -> int:
    """Convert the text of an argument to an integer. Raises ``ArgumentTypeError``."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number") from None


class _Parser(argparse.ArgumentParser):
    """A parser with error messages of one line, which raises if its output cannot be written."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        # argparse ignores an output that cannot be written to.
        print(message, end="", file=file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Whole(argparse.HelpFormatter):
    """Breaks lines between words alone, so that no path or option is cut at a hyphen."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        words = " ".join(text.split())
        return textwrap.wrap(words, width, break_on_hyphens=False, break_long_words=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = self._split_lines(text, width - len(indent))
        return "\n".join(indent + line for line in lines)


class _Grouped(_Whole):
    """Lists subcommands under the headings of their groups."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        members: dict[Group, list[argparse.Action]] = {group: [] for group in Group}
        for command in self._iter_indented_subactions(action):
            group = action.choices[command.dest].get_default("group") or Group.OTHERS
            members[group].append(command)
        lines = []
        for group, commands in members.items():
            if commands:
                lines.append(f"{'':{self._current_indent}}{group.value}:\n")
                self._indent()
                lines += [self._format_action(command) for command in commands]
                self._dedent()
        return "".join(lines)


def _new_parser() -> argparse.ArgumentParser:
    return _Parser(
        prog="bitlane",
        description="Bit operators of DirectML on an FPGA, or on a simulation of its circuit.",
        epilog="exit codes: 0 done, 1 a check failed, 2 bad input or no usable device;"
        " `bitlane help COMMAND` is `bitlane COMMAND --help`",
        formatter_class=_Grouped,
        allow_abbrev=False,
    )


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of all installed commands."""
    commands = _commands()
    return _parser(commands, commands.keys())


def _commands() -> dict[str, EntryPoint]:
    return {command.name: command for command in entry_points(group="bitlane.commands")}


def _parser(commands: Mapping[str, EntryPoint], load: Collection[str]) -> argparse.ArgumentParser:
    """Return the command's parser. Only the subcommands in ``load`` get arguments and help."""
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
        parser_class=cast(
            type[argparse.ArgumentParser],
            partial(_Parser, allow_abbrev=False, formatter_class=_Whole),
        ),
    )
    for name in sorted(commands):
        if name not in load:
            subparsers.add_parser(name)
            continue
        try:
            add: Callable[[Subparsers], object] = commands[name].load()
        except ModuleNotFoundError as error:
            if len(load) == 1:
                raise _lacking(name, error, None) from error
            subparsers.add_parser(name, help="(needs packages that are not installed)")
        else:
            add(subparsers)
    for each in subparsers.choices.values():
        each.set_defaults(parser=each)
    return parser


def _lacking(name: str, error: ModuleNotFoundError, extra: str | None) -> BitlaneError:
    """Return the error for a package of ``extra``. Raises ``error`` if the package is bitlane's."""
    package = (error.name or "").partition(".")[0]
    if package.startswith("bitlane"):
        raise error
    what = f"{name} needs the Python package {package}, which is not installed"
    return BitlaneError(f"{what}: {how_to_install(extra)} brings it" if extra else what)


def _one_line(error: BaseException) -> str:
    """Return the message of ``error`` on one line, with the file first where there is one."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and not isinstance(error, BitlaneError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return printable("; ".join(line.strip() for line in text.splitlines() if line.strip()))


def report_error(error: BaseException) -> None:
    """Print the line of an error on standard error."""
    print(f"bitlane: {_one_line(error)}", file=sys.stderr)


def _expect_output() -> None:
    if sys.stdout is None:
        raise BitlaneError("standard output is closed; expected somewhere to write to")


@contextmanager
def _flushed() -> Iterator[None]:
    """Flush standard output when the block ends, also by an error. Raises ``BitlaneError``."""
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            # Python would report the unwritten rest when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                raise
            raise BitlaneError(f"standard output: {error.strerror}") from error


@contextmanager
def _escaped() -> Iterator[None]:
    """Show characters that the encoding of standard output lacks as escapes."""
    output = sys.stdout
    if not isinstance(output, TextIOWrapper):
        yield
        return
    before = output.errors
    output.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        output.reconfigure(errors=before)


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings like errors, without the source line that issued them."""

    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"bitlane: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does: tools stop and temporary files are removed."""
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


def _without_traceback(words: Sequence[str]) -> tuple[list[str], bool]:
    """``words`` without ``--traceback``, and whether it was there; ``--`` ends the options."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word != _TRACEBACK]
    return [*options, *words[end:]], len(options) < end


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: the process's own) and return its exit code.

    Errors that a user can act on become one line on standard error; only a defect of bitlane
    itself shows a traceback.
    """
    words, shows_traceback = _without_traceback(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*(word for word in words if word != "help"), "--help"]
    try:
        _expect_output()
        with _terminable(), _escaped(), _flushed(), _short_warnings():
            code = _run(words)
    except BrokenPipeError:
        # The reader has closed our output, as in `bitlane info | head -1`: nothing to report.
        return DONE
    except (BitlaneError, OSError, MemoryError, KeyboardInterrupt) as error:
        if shows_traceback:
            traceback.print_exc()
        if isinstance(error, KeyboardInterrupt):
            # Amaranth warns about the parts of an unfinished circuit.
            warnings.simplefilter("ignore")
            print("bitlane: stopped", file=sys.stderr)
            return INTERRUPTED
        report_error(error)
        return UNUSABLE
    return code


def _surplus(namespace: argparse.Namespace, rest: Sequence[str]) -> str:
    """Return the message for the words that no option or argument takes."""
    if hasattr(namespace, "model") and not any(word.startswith("-") for word in rest):
        return f"{len(rest)} files after {namespace.model}; expected one MODEL at a time"
    return f"unrecognized arguments: {' '.join(rest)}"


def _run(words: list[str]) -> int:
    commands = _commands()
    first = next((word for word in words if word in ("-h", "--help") or word[:1] != "-"), "")
    if not words or first in ("-h", "--help"):
        parser = _parser(commands, commands.keys())
    else:
        # The others stay unloaded: `info` does not wait for the imports of `bench`.
        parser = _parser(commands, [first])
    if not words:
        parser.print_help(sys.stderr)
        return UNUSABLE
    namespace, rest = parser.parse_known_args(words)
    if rest:
        before = words.index(rest[0]) < words.index(first)
        (parser if before else namespace.parser).error(_surplus(namespace, rest))
    try:
        code: int = namespace.run(namespace)
    except ModuleNotFoundError as error:
        raise _lacking(first, error, getattr(namespace, "extra", None)) from error
    return code
