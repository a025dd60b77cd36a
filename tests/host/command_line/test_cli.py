"""The command line: subcommands by entry point, exit codes, and errors of one line."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bitlane.__main__
from bitlane.command_line import cli
from bitlane.errors import BitlaneError, DeviceTimeout, DmlError, LinkError
from bitlane.version import __version__
from support.command_line import CommandLine
from support.host.model_files import not_model

Add = Callable[[cli.Subparsers], None]
Install = Callable[..., None]


@dataclass(frozen=True)
class Command:
    """A fake entry point: ``load`` returns ``add`` or raises ``error``."""

    name: str
    add: Add | None = None
    error: Exception | None = None

    def load(self) -> Add | None:
        if self.error is not None:
            raise self.error
        return self.add


def command(name: str, run: Callable[[argparse.Namespace], int], **defaults: Any) -> Command:
    def add(subparsers: cli.Subparsers) -> None:
        parser = subparsers.add_parser(name, help=f"what {name} does")
        parser.add_argument("number", type=int, nargs="?", default=0)
        parser.add_argument("--whole", type=int)
        parser.set_defaults(run=run, **defaults)

    return Command(name, add)


def raising(error: BaseException, extra: str | None = None) -> Command:
    def run(_: argparse.Namespace) -> int:
        raise error

    return command("job", run, extra=extra)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that replaces the installed subcommands."""
    return lambda *commands: monkeypatch.setattr(cli, "entry_points", lambda group: commands)


@pytest.mark.parametrize("code", [cli.DONE, cli.CHECK_FAILED, 42])
def test_exit_code_is_the_commands(install: Install, run: CommandLine, code: int) -> None:
    install(command("job", lambda arguments: arguments.number))
    assert run("job", str(code)) == (code, "", "")


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(run: CommandLine, option: str) -> None:
    assert run(option) == (0, f"bitlane {__version__}\n", "")


def test_help_lists_every_command_and_the_exit_codes(install: Install, run: CommandLine) -> None:
    install(command("one", lambda _: 0), command("two", lambda _: 0))
    code, text, _ = run("--help")
    assert code == 0
    assert "what one does" in text
    assert "what two does" in text
    assert "1 a check failed" in text


def test_the_help_lists_commands_by_group(install: Install, run: CommandLine) -> None:
    measure, use = {"group": cli.Group.MEASURE}, {"group": cli.Group.USE}
    install(
        command("one", lambda _: 0, **measure),
        command("two", lambda _: 0, **use),
        command("strange", lambda _: 0),
        command("three", lambda _: 0, **measure),
        Command("lacks", error=ModuleNotFoundError(name="nowhere")),
    )
    lines = run("--help").out.partition("commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.strip().partition("  ")[0] for line in lines] == [
        *("use:", "two", "measure and verify:", "one", "three"),
        *("others:", "lacks", "strange"),
    ]
    assert "(needs packages that are not installed)" in "".join(lines)


def test_without_arguments_the_help_and_2(install: Install, run: CommandLine) -> None:
    install(command("one", lambda _: 0))
    code, _, text = run()
    assert code == cli.UNUSABLE
    assert "what one does" in text


BAD = [
    ("nothing", "bitlane: argument COMMAND: invalid choice: 'nothing'"),
    ("--nothing job", "bitlane: unrecognized arguments: --nothing (see bitlane --help)"),
    ("job --no", "bitlane job: unrecognized arguments: --no (see bitlane job --help)"),
    ("job --who 3", "bitlane job: unrecognized arguments: --who (see bitlane job --help)"),
    ("job many", "bitlane job: argument number: invalid int value: 'many'"),
]


@pytest.mark.parametrize(("words", "expected"), BAD)
def test_bad_arguments(install: Install, run: CommandLine, words: str, expected: str) -> None:
    install(command("job", lambda _: 0))
    line = run.refuse(*words.split())
    assert line.startswith(expected)
    assert line.endswith("--help)")


PIP = "pip install 'bitlane[pictures]' brings it"
PIL = ModuleNotFoundError("No module named 'PIL'", name="PIL")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BitlaneError("x is 1; expected 2"), "x is 1; expected 2"),
        (LinkError("device 'x:' unknown"), "device 'x:' unknown"),
        (
            DmlError("ATensor", "Sizes", [0], "at least 1"),
            "E_INVALIDARG: ATensor.Sizes is [0]; expected at least 1",
        ),
        (DeviceTimeout("no answer\n  STATUS 1\n\n"), "no answer; STATUS 1"),
        (FileNotFoundError(2, "No such file", "m.json"), "m.json: No such file"),
        (OSError("disk gone"), "disk gone"),
        (MemoryError("no room for 1 GiB"), "no room for 1 GiB"),
        (MemoryError(), "MemoryError"),
        (PIL, f"job needs the Python package PIL, which is not installed: {PIP}"),
    ],
)
def test_errors_that_a_user_can_act_on(
    install: Install, run: CommandLine, error: Exception, expected: str
) -> None:
    install(raising(error, extra="pictures"))
    assert run.refuse("job") == f"bitlane: {expected}"


@pytest.mark.parametrize("words", [["--traceback", "job"], ["job", "3", "--traceback"]])
def test_traceback_on_request(install: Install, run: CommandLine, words: list[str]) -> None:
    install(raising(BitlaneError("x")))
    code, _, text = run(*words)
    assert code == cli.UNUSABLE
    assert text.startswith("Traceback")
    assert text.endswith("bitlane: x\n")


def test_what_stands_behind_two_dashes_is_no_option(install: Install, run: CommandLine) -> None:
    def add(subparsers: cli.Subparsers) -> None:
        parser = subparsers.add_parser("job")
        parser.add_argument("names", nargs="+")
        parser.set_defaults(run=raising)

    def raising(arguments: argparse.Namespace) -> int:
        raise BitlaneError(", ".join(arguments.names))

    install(Command("job", add))
    assert run.refuse("job", "--", "--traceback", "x") == "bitlane: --traceback, x"


USAGE = r"\Ausage: bitlane job \[-h\] \[--whole WHOLE\] \[number\]"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        *(("help", "what job does"), ("help help", "what job does")),
        *((words, USAGE) for words in ("help job", "help job 3", "job --help")),
    ],
)
def test_help(install: Install, run: CommandLine, words: str, expected: str) -> None:
    install(command("job", lambda _: 0))
    code, text, _ = run(*words.split())
    assert code == 0
    assert re.search(expected, text)


def test_a_closed_output(
    install: Install, run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(command("job", lambda _: 0))
    monkeypatch.setattr(sys, "stdout", None)
    expected = "bitlane: standard output is closed; expected somewhere to write to"
    assert run.refuse("job") == expected


def test_an_interrupt(
    install: Install, run: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    install(raising(KeyboardInterrupt()))
    assert run.refuse("job", code=cli.INTERRUPTED) == "bitlane: stopped"
    # What is half made may complain now.
    warnings.warn("created but never used", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == ""


def test_an_interrupt_outside_the_command_line_ends_the_program_in_the_same_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    assert bitlane.__main__.main() == cli.INTERRUPTED
    assert capsys.readouterr() == ("", "bitlane: stopped\n")


def test_a_termination_signal_unwinds_like_an_interrupt(install: Install, run: CommandLine) -> None:
    cleared = []

    def job(_: argparse.Namespace) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        finally:
            cleared.append(True)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    install(command("job", job))
    assert run.refuse("job", code=cli.INTERRUPTED) == "bitlane: stopped"
    assert cleared == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_that_cannot_be_loaded_names_the_package(
    install: Install, run: CommandLine
) -> None:
    lacking = ModuleNotFoundError("No module named 'amaranth.sim'", name="amaranth.sim")
    install(Command("job", error=lacking), command("other", lambda _: 0))
    assert run("other").code == cli.DONE
    expected = "bitlane: job needs the Python package amaranth, which is not installed"
    assert run.refuse("job", "--any", "thing") == expected


LOST = ModuleNotFoundError("No module named 'bitlane.lost'", name="bitlane.lost")


@pytest.mark.parametrize(
    "job", [raising(ZeroDivisionError("a bug")), Command("job", error=LOST)], ids=["bug", "lost"]
)
def test_a_defect_keeps_its_traceback(install: Install, job: Command) -> None:
    install(job)
    with pytest.raises((ZeroDivisionError, ModuleNotFoundError)):
        cli.main(["job"])


def program(*words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run the program in a separate process, and return the completed process."""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    options["env"] = os.environ | path | options.get("env", {})
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [sys.executable, "-m", "bitlane", *words],
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
        **options,
    )


def test_an_output_of_another_encoding_shows_escapes(tmp_path: Path) -> None:
    (tmp_path / "ü\x1b.json").write_text(json.dumps(not_model()))
    ran = program("check", "ü\x1b.json", env={"PYTHONIOENCODING": "ascii"}, cwd=tmp_path)
    assert ran.stdout.startswith(r"\xfc\x1b.json: 2 resources"), ran.stderr


def test_a_reader_that_leaves_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    ran = program("info", stdout=write)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("word", "unbuffered"), [("-V", ""), ("--help", "1"), ("info", ""), ("info", "1")]
)
def test_an_output_that_takes_nothing_is_told(word: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        ran = program(word, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
    assert ran.returncode == cli.UNUSABLE
    assert re.fullmatch(r"bitlane: (standard output: )?No space left on device\n", ran.stderr)


@pytest.mark.parametrize(
    "module", ["argparse", "bitlane.command_line.cli", "numpy", "bitlane.driver.driver"]
)
def test_an_interrupt_at_the_very_start_is_told_like_any_other(module: str, tmp_path: Path) -> None:
    """Send Ctrl-C when ``module`` is about to be imported."""
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import os, signal, sys

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Impatient())
""",
        encoding="utf-8",
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    ran = program("info", env={"PYTHONPATH": path})
    assert (ran.returncode, ran.stdout, ran.stderr) == (cli.INTERRUPTED, "", "bitlane: stopped\n")


def test_warnings_take_one_line_too(install: Install) -> None:
    shown = []

    def run(_: argparse.Namespace) -> int:
        shown.append(warnings.formatwarning("no cache", UserWarning, "cache.py", 1))
        return cli.DONE

    install(command("job", run))
    before = warnings.formatwarning
    assert cli.main(["job"]) == cli.DONE
    assert shown == ["bitlane: no cache\n"]
    assert warnings.formatwarning is before


@pytest.mark.parametrize("columns", [40, 64, 80, 100])
def test_no_word_of_a_help_text_is_cut(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is copied from a help text is whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    (commands,) = [x for x in cli.whole_parser()._actions if isinstance(x.choices, dict)]
    assert commands.choices
    for name, parser in dict(commands.choices).items():
        words = set(parser.format_help().split())
        texts = [parser.description, parser.epilog, *(x.help for x in parser._actions)]
        for text in texts:
            whole = {word for word in (text or "").split() if "%" not in word}
            assert whole <= words, name
