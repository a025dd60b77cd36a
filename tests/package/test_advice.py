"""Each command of pip that a message or a page prints is executed, and then its purpose is tried.

`advice` returns the file and the packages of each command. Each environment is empty at first. pip
installs bitlane and cppsim from wheels of this folder, and all other packages from the index. The
test stops a program as soon as it has printed the expected text.
"""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from package.cases import CLONE, MESSAGES, SHOWN, Message, Shown
from support.docs.pages import PAGES, ROOT, blocks, code_words, name

pytestmark = pytest.mark.any_rtl

SCRIPTS = ("Makefile", ".pre-commit-config.yaml", "requirements/renew.sh")
"""Files beside the packages and pages that print a command, or show one."""

_COMMAND = re.compile(r"\bpip install ((?:[^`;,)\"\n#&]|,(?=\w))+)")
_FUNCTIONS = ("how_to_install", "how_to_install_elsewhere")


def advice() -> set[tuple[str, str]]:
    """Return each file of the project and what a command there installs, as ``bitlane[onnx]``.

    If the argument of `how_to_install` is a variable, the set contains the variable's name.
    """
    found = {(name(page), words) for page in _pages() for words in _shown(page)}
    for folder in ("host", "cppsim/src", "sim", "boards", "examples", "tests/support/docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "installation.py":
                found |= {(name(path), words) for words in _printed(path)}
    for file in SCRIPTS:
        text = (ROOT / file).read_text(encoding="utf-8")
        found |= {(file, _plain(words)) for words in _COMMAND.findall(text)}
    return found


def _pages() -> list[Path]:
    """Return the pages but those on changes, whose commands were right once."""
    return [page for page in PAGES if page.name != "CHANGELOG.md"]


def _shown(page: Path) -> Iterator[str]:
    for text in (*code_words(page), *(block.text for block in blocks(page))):
        yield from map(_plain, _COMMAND.findall(text))


def _printed(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documentation:
                yield from map(_plain, _COMMAND.findall(node.value))
        elif isinstance(node, ast.Call):
            yield from _of_extras(node)


def _of_extras(call: ast.Call) -> Iterator[str]:
    """Yield what a call of `how_to_install`, or of ``set_defaults(extra=...)``, makes known."""
    if isinstance(call.func, ast.Name) and call.func.id in _FUNCTIONS:
        (argument,) = call.args
        yield (
            f"bitlane[{argument.value}]"
            if isinstance(argument, ast.Constant)
            else str(ast.unparse(argument))
        )
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Constant):
            yield f"bitlane[{keyword.value.value}]"


def _plain(words: str) -> str:
    return words.strip().replace("'", "")


INSTALL = (sys.executable, "-m", "pip", "--python")

ADVICE = re.compile(r"pip install (.+?)(?: brings it|[`,;]|$)", re.MULTILINE)

DEADLINE = 120.0
"""Seconds of a command: the first one compiles a circuit."""

NEVER = "(?!)"
"""The pattern of a program that is waited for."""

ARRAYS = """
import bitlane
device = bitlane.open("numpy")
a = device.asarray([1, 2, 3])
print((a ^ 255).get().tolist(), bitlane.open("numpy").bit_count([7]).tolist())
print(bitlane.open("sim").bit_not([1]).tolist())
"""


def test_every_command_is_known() -> None:
    known = {(each.file, each.advice) for each in (*MESSAGES, *SHOWN)}
    assert advice() == known


class Shelf:
    """Environments by the commands that made them; each is a copy of the one before its last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        self.environments: dict[tuple[str, ...], Path] = {}
        for project in (ROOT, ROOT / "cppsim"):
            build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
            build += ["--outdir", str(self.wheels), str(project)]
            subprocess.run(build, check=True, capture_output=True, timeout=DEADLINE)
        self.empty = folder / "empty"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.empty], check=True)

    def environment(self, *commands: str) -> Path:
        """Return the environment after ``commands``, arguments of pip, made once."""
        if not commands:
            return self.empty
        if commands not in self.environments:
            before = self.environment(*commands[:-1])
            made = self.folder / f"environment{len(self.environments)}"
            # Links: pip replaces files, and changes none.
            shutil.copytree(before, made, symlinks=True, copy_function=os.link)
            self.pip(made, commands[-1])
            self.environments[commands] = made
        return self.environments[commands]

    def pip(self, environment: Path, arguments: str) -> None:
        """Run pip with ``arguments`` in the top of the repository; expect that it succeeds."""
        done = subprocess.run(
            [*INSTALL, str(environment / "bin" / "python"), *shlex.split(arguments)],
            cwd=ROOT,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, f"pip {arguments}\n{done.stdout}{done.stderr}"

    def variables(self, *, compiler: bool = True) -> dict[str, str]:
        """Return the variables of pip and of all programs."""
        own = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        links = f"{self.wheels.as_uri()} {own.get('PIP_FIND_LINKS', '')}"
        caches = {name: str(self.folder / name) for name in ("BITLANE_CACHE", "CPPSIM_CACHE")}
        path = {} if compiler else {"PATH": str(self.wheels)}
        return {**own, **caches, **path, "PIP_FIND_LINKS": links, "PIP_NO_COMPILE": "1"}

    def output(
        self, environment: Path, command: str, then: str, folder: Path, *, compiler: bool = True
    ) -> str:
        """Run ``command`` until a line of its output matches ``then``; return the output."""
        program, *words = shlex.split(command.replace("ROOT", str(ROOT)))
        own = environment / "bin" / program
        start = [own] if program == "python" or own.exists() else [program]
        if program == "bitlane":  # the script names the interpreter of the environment's origin
            start = [environment / "bin" / "python", "-m", "bitlane"]
        process = subprocess.Popen(
            [*start, *words],
            cwd=folder,
            env=self.variables(compiler=compiler),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        late = Timer(DEADLINE, process.kill)
        late.start()
        lines = []
        assert process.stdout is not None
        with process:
            for line in process.stdout:
                lines.append(line)
                if re.search(then, line):
                    process.terminate()
                    break
            lines += process.stdout
        late.cancel()
        return "".join(lines)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    folder = tmp_path_factory.mktemp("shelf")
    yield Shelf(folder)
    # Environments of 3 GB in all.
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.rotates(1)
@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: f"{each.file}-{each.command}")
def test_a_message_ends_once_its_command_is_executed(
    message: Message, shelf: Shelf, tmp_path: Path
) -> None:
    before = message.before
    told = shelf.output(
        shelf.environment(*before), message.command, NEVER, tmp_path, compiler=message.compiler
    )
    assert "cannot be loaded: No module" not in told.replace("pyserial cannot", "")
    assert ADVICE.search(told), told
    command = ADVICE.findall(told)[-1]  # a traceback shows the source of the message before it
    assert command.replace("'", "") == message.installs, told
    after = shelf.environment(*before, f"install {command}")
    told = shelf.output(after, message.command, message.then, tmp_path, compiler=message.compiler)
    assert re.search(message.then, told, re.MULTILINE), told
    assert not ADVICE.search(told), told


@pytest.mark.slow
@pytest.mark.rotates(1)
@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: f"{each.file}-{each.advice}")
def test_a_page_installs_what_it_uses(shown: Shown, shelf: Shelf, tmp_path: Path) -> None:
    words = " ".join(map(shlex.quote, shown.advice.split()))
    environment = shelf.environment(*shown.before, f"install {words}")
    told = shelf.output(environment, shown.command, shown.then, tmp_path, compiler=shown.compiler)
    assert re.search(shown.then, told, re.MULTILINE), told
    if shown.before == CLONE:  # a copy would not follow the clone
        files = "import bitlane, cppsim; print(bitlane.__file__, cppsim.__file__)"
        own = f"{ROOT}/host/bitlane/__init__.py {ROOT}/cppsim/src/cppsim/__init__.py"
        assert shelf.output(environment, f"python -c '{files}'", "^/", tmp_path) == f"{own}\n"


@pytest.mark.slow
@pytest.mark.rotates(1)
@pytest.mark.parametrize("option", ["", "-e "], ids=["copy", "editable"])
def test_a_clone_alone_computes_and_advises_what_works(
    option: str, shelf: Shelf, tmp_path: Path
) -> None:
    commands = (f"install {option}'{ROOT}'",)
    environment = shelf.environment(*commands)
    told = shelf.output(environment, f"python -c {shlex.quote(ARRAYS)}", NEVER, tmp_path)
    assert "[254, 253, 252] [3]\n" in told
    found = ADVICE.search(told)
    assert found, told
    assert found[1] == f"{option}{shlex.quote(f'{ROOT}/cppsim')} 'bitlane[sim]'"
    followed = shelf.environment(*commands, f"install {found[1]}")
    told = shelf.output(followed, f"python -c {shlex.quote(ARRAYS)}", NEVER, tmp_path)
    assert told.endswith("[254, 253, 252] [3]\n[-2]\n"), told
    told = shelf.output(environment, "bitlane info udp://127.0.0.1:9", NEVER, tmp_path)
    assert re.fullmatch(r"bitlane: .*nothing listens at this address.*\n", told), told
