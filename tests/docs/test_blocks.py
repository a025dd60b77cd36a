"""Every code block of every page runs: Python and quick commands print the output on the page.

`tests/package` runs the commands of pip. A block of an unknown kind fails the test: add its kind
here, or add a test that checks it.
"""

import argparse
import contextlib
import doctest
import importlib.util
import io
import json
import re
import shlex
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from bitlane.command_line import DONE, main, whole_parser
from support.docs.pages import PAGES, ROOT, Block, blocks, code_words, name
from support.seeds import slow

SHELL = ("", "console", "sh")
"""Languages of blocks of shell lines; ``console`` has prompts and the output of commands."""

_PLAIN = {
    *(".", "cd", "cp", "export", "genhtml", "git", "ls", "mkdir"),
    *("openFPGALoader", "pip", "pre-commit", "sh"),
}
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


def complaint(words: Sequence[str], *, in_text: bool = False) -> str:
    """Return the reason why the program would refuse ``words``, or "" if it accepts them.

    A command ``in_text`` may leave out arguments.
    """
    program, *arguments = words
    if program == "bitlane":
        shown = in_text and not arguments[0].startswith("-")
        return _unknown(*arguments) if shown else _refused(arguments)
    if program == "make":
        unknown = {word for word in arguments if "=" not in word} - _targets()
        return f"make has no target {sorted(unknown)}" if unknown else ""
    if program == "python" and arguments[:1] == ["-m"]:
        return "" if importlib.util.find_spec(arguments[1]) else f"no module {arguments[1]}"
    if program == "python" and arguments[:1] and arguments[0].endswith(".py"):
        return "" if (ROOT / arguments[0]).exists() else f"no file {arguments[0]}"
    beside = Path(sys.executable).parent / program
    if program in _PLAIN or beside.exists() or shutil.which(program):
        return ""
    return f"no program {program}"


def _unknown(command: str, *arguments: str) -> str:
    """Return the complaint about a subcommand of bitlane, or an option, that does not exist."""
    [action] = (x for x in _parser()._actions if isinstance(x, argparse._SubParsersAction))
    if command not in {"help", *action.choices}:
        return f"bitlane has no command {command}"
    known = action.choices[command]._option_string_actions if command != "help" else {}
    options = {word.partition("=")[0] for word in arguments if word.startswith("-")}
    unknown = sorted(options - set(known))
    return f"bitlane {command} has no {unknown}" if unknown else ""


def _refused(arguments: Sequence[str]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            _parser().parse_args(arguments)
        except SystemExit as end:
            return said.getvalue() if end.code else ""
    return ""


@cache
def _parser() -> argparse.ArgumentParser:
    return whole_parser()


@cache
def _targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, flags=re.M))


QUICK = {"check", "export", "info", "lower", "run", "--version"}
"""Subcommands of ``bitlane`` that take less than two seconds on the pages' examples."""

MEASURED = {
    "icebreaker: 1BitSquared iCEBreaker, seed 1": "a board's build, which tests/verify does",
    "  clock                 93.75 MHz": "a board's build, which tests/verify does",
    "seed  achieves": "a board's build with several seeds, which tests/boards does",
    "design              testbench": "seconds, which differ from computer to computer",
}
"""Output blocks that are not compared: their first words, and the reason."""

ELSEWHERE = {
    ("cppsim/docs/from_amaranth.md", "text"): "cppsim/tests/test_pytest_plugin.py",
    ("cppsim/docs/measurements.md", "text"): "tests/docs/test_written.py",
    ("docs/litedram_report.md", "text"): "tests/boards/litex/test_litex_targets.py",
    ("docs/measurements/mutants.md", "text"): "tests/tools/test_mutants.py",
    ("docs/extending.md", "diff"): "tests/docs/test_ways.py",
    ("docs/first_hour_fpga.md", "c"): "tests/system/test_examples.py",
    ("docs/first_hour_fpga.md", "verilog"): "tests/system/test_examples.py",
    ("examples/soc/README.md", "text"): "tests/system/test_examples.py",
    ("examples/uio/README.md", "text"): "tests/system/test_examples.py",
}
"""Blocks that another test runs: page and language, and the file of that test."""

DRAWN = {
    "  NumPy arrays     searches": "a drawing",
    "design → netlist": "a drawing",
    "a call\n": "a drawing",
    "JUMP_k = step_k": "a formula, which tests/host/driver checks",
    " 0  loop nest -> steps": "a table, which tests/docs/test_pages.py compares",
    "byte             01234567": "a drawing, which tests/docs/test_pages.py compares",
    "words            .....abc": "a drawing, which tests/docs/test_pages.py compares",
}
"""Blocks of text that are not output: their first words, and the reason."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder with the examples of a clone, and return it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BITLANE_DEVICE", raising=False)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def of_page(page: Path, *languages: str) -> list[Block]:
    return [block for block in blocks(page) if block.language in languages]


def having(*languages: str) -> list[Path]:
    return [page for page in PAGES if of_page(page, *languages)]


@pytest.mark.parametrize(
    "page",
    # Only the environment of the full tier has all programs that these pages name.
    [
        slow(page) if page.name in ("first_hour_fpga.md", "litex.md") else page
        for page in having(*SHELL)
    ],
    ids=name,
)
def test_the_commands_of_a_page_are_taken(page: Path) -> None:
    typed = [command for block in of_page(page, *SHELL) for command in commands(block)]
    assert typed
    wrong = {each.place: complaint(each.words) for each in typed}
    assert {place: why for place, why in wrong.items() if why} == {}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_commands_in_the_text_of_a_page_exist(page: Path) -> None:
    named = [word for word in code_words(page) if re.match(r"(bitlane|make) [a-z-]", word)]
    typed = {word: shlex.split(re.split(r" [>|] ", word)[0]) for word in named}
    wrong = {word: complaint(words, in_text=True) for word, words in typed.items()}
    assert {word: why for word, why in wrong.items() if why} == {}


@pytest.mark.parametrize(
    "page",
    [page if name(page) == "README.md" else slow(page) for page in having("python", "console")],
    ids=name,
)
def test_the_python_and_the_commands_of_a_page_give_what_it_says(
    page: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks run in order and in one folder: a command reads the files that Python wrote."""
    runner = doctest.DocTestRunner()
    names: dict[str, object] = {}
    for block in of_page(page, "python", "console"):
        if block.language == "python":
            assert block.text.startswith(">>> "), f"{block.place}: shows no prompt, so is not run"
            names = run_python(block, runner, names)
            assert runner.failures == 0, capsys.readouterr().out
        else:
            for command in commands(block):
                run_command(command, capsys)


def run_python(
    block: Block, runner: doctest.DocTestRunner, names: dict[str, object]
) -> dict[str, object]:
    """Run ``block`` with ``names`` defined; return the names that are defined after it."""
    parser = doctest.DocTestParser()
    test = parser.get_doctest(block.text, names, block.place, name(block.page), block.line - 1)
    runner.run(test, clear_globs=False)
    return test.globs


def run_command(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare the output of a quick command; require a listed reason to skip any other output."""
    if command.words[0] == "bitlane" and command.words[1] in QUICK:
        capsys.readouterr()
        assert main(command.words[1:]) == DONE, command.place
        assert same(command.output, capsys.readouterr().out), command.place
    elif command.output:
        assert begins(command.output, MEASURED), command.place


def same(said: str, printed: str) -> bool:
    """Return whether ``printed`` equals the page, apart from times; ``...`` matches anything."""
    said, printed = (re.sub(r"[0-9.]+ ms", "N ms", each) for each in (said, printed))
    if not doctest.OutputChecker().check_output(said, printed, doctest.ELLIPSIS):
        print(printed)
        return False
    return True


def run_elsewhere(block: Block) -> bool:
    return (name(block.page), block.language) in ELSEWHERE


def begins(text: str, known: dict[str, str]) -> bool:
    return any(text.startswith(start) for start in known)


def demo() -> str:
    assert main(["demo"]) == DONE
    return ""


def predicted() -> str:
    words = ["run", str(ROOT / "examples" / "hamming.json")]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main([*words, "--device", "numpy?board=colorlight-i9"]) == DONE
    return said.getvalue().splitlines(keepends=True)[-1]


PRINTED: dict[str, Callable[[], str]] = {
    "Opening sim": demo,
    "Predicted, not measured": predicted,
}
"""Output blocks that a function reproduces: their first words, and the function."""


@pytest.mark.slow
@pytest.mark.parametrize("page", having("text"), ids=name)
def test_the_output_on_a_page(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in of_page(page, "text"):
        if begins(block.text, MEASURED | DRAWN) or run_elsewhere(block):
            continue
        makers = [make for start, make in PRINTED.items() if block.text.startswith(start)]
        assert len(makers) == 1, f"{block.place}: nothing says what prints this"
        printed = makers[0]() + capsys.readouterr().out
        assert same(timeless(block.text), timeless(printed)), block.place


def timeless(text: str) -> str:
    """Return ``text`` without the seconds at the ends of the lines of the demo's table."""
    return re.sub(r"(  +\d\.\d{3}) +\d+\.\d$", r"\1", text, flags=re.M)


CHECKED = {"python", *SHELL, "text"}
DATA: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads}


def test_every_kind_of_block_is_checked(record_property: Callable[[str, object], None]) -> None:
    all_blocks = [block for page in PAGES for block in blocks(page)]
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).exists()] == []
    known = CHECKED | DATA.keys()
    rest = [b for b in all_blocks if b.language not in known and not run_elsewhere(b)]
    assert {block.place: block.language for block in rest} == {}
    for block in all_blocks:
        if block.language in DATA:
            assert DATA[block.language](block.text), block.place
    kinds = Counter(
        "commands" if block.language in SHELL else block.language for block in all_blocks
    )
    run = len(all_blocks) - sum(begins(block.text, MEASURED | DRAWN) for block in all_blocks)
    each = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    where = f"{len({block.page for block in all_blocks})} pages"
    record_property("report", f"docs: {run} of {len(all_blocks)} code blocks on {where}: {each}")
    assert run > 15
