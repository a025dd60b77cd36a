"""Find and run the C++ compiler that turns a design into a shared library, with its flags."""

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import NoCompilerError, SimulationError

DEADLINE_SECONDS = 600.0
"""Time limit of a program that usually takes seconds."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: its command, and the answer to ``--version``."""

    command: tuple[str, ...]
    version: str

    @property
    def name(self) -> str:
        """The command without its folder."""
        return " ".join((Path(self.command[0]).name, *self.command[1:]))

    @property
    def is_gcc(self) -> bool:
        """Whether it is GCC by its own answer: the name may be that of another compiler."""
        return "Free Software Foundation" in self.version

    @property
    def is_zig(self) -> bool:
        """Whether it is zig, whose library of C++ comes as source. Its own answer is Clang's."""
        return "zig" in self.name

    def run(self, arguments: Sequence[str], scratch: Path | None = None) -> None:
        """Compile. Raises ``SimulationError`` with the compiler's first error.

        The compiler has its temporary files in ``scratch``: it leaves them if it is killed.
        """
        environment = None if scratch is None else {**os.environ, "TMPDIR": str(scratch)}
        done = run_program(self.name, [*self.command, *arguments], environment=environment)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            reason = (lines or done.stderr.splitlines() or ["no message"])[0].strip()
            raise SimulationError(f"{self.name} {_ending(done.returncode)}: {reason}")


def run_program(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end.

    Raises ``SimulationError`` if it takes longer than ten minutes, or cannot be started.
    """
    try:
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=DEADLINE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise SimulationError(f"{name} still runs after {DEADLINE_SECONDS:g} s") from None
    except OSError as error:
        raise SimulationError(f"{name} cannot be started: {error.strerror}") from None


def _ending(status: int) -> str:
    """Describe how a program failed; a negative ``status`` is that of a signal."""
    if status >= 0:
        return f"failed with status {status}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was killed by {names.get(-status, f'signal {-status}')}"


def _candidates(chosen: str | None) -> Iterator[tuple[str, ...]]:
    if chosen:
        with suppress(ValueError):  # a quotation mark without another
            command = tuple(shlex.split(chosen))
            yield from [command] if command else []
        return
    yield from (("g++",), ("clang++",), ("c++",))
    # The search takes 0.2 ms, and each simulator asks for the compiler.
    if importlib.util.find_spec("ziglang") is not None:
        yield sys.executable, "-m", "ziglang", "c++"


def find_compiler(owner: str = "cppsim") -> Compiler:
    """Return the compiler that ``CPPSIM_CXX`` names, else the first of g++, clang++, c++, ziglang.

    The variable holds a command, with arguments if any. ``owner`` is the Python package in whose
    name it begins.

    Raises ``NoCompilerError`` if none runs, which says what to install.
    """
    variable = f"{owner.upper()}_CXX"
    chosen = os.environ.get(variable)
    for command in _candidates(chosen):
        path = _path(command[0])
        if path is None:
            continue
        command = (path, *command[1:])
        version = _version(command)
        if version is not None:
            return Compiler(command, version)
    if chosen:
        raise NoCompilerError(f"{variable}: {chosen!r} is not a C++ compiler that runs")
    raise NoCompilerError(
        "no C++ compiler found: install g++ or clang++, or run pip install ziglang"
    )


_paths: dict[tuple[str, str | None], str] = {}
"""The programs found so far, by name and ``PATH``: a search takes longer than all of a key."""


def _path(name: str) -> str | None:
    """Return the path of a program, None if there is none."""
    key = name, os.environ.get("PATH")
    known = _paths.get(key)
    if known is not None and os.access(known, os.X_OK):
        return known
    found = shutil.which(name)
    if found is not None and Path(found).is_absolute():
        _paths[key] = found
    return found


@cache
def _version(command: tuple[str, ...]) -> str | None:
    """Return the answer to ``--version``, asked once in a process, or None if none comes."""
    try:
        answer = subprocess.run(
            [*command, "--version"], capture_output=True, encoding="utf-8", errors="replace"
        )
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


# --- flags ------------------------------------------------------------------------------------
# Nothing else gives a compiler a flag that only some compilers take.

LIBRARY = ("-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-w")
"""Flags of every library, which GCC, Clang and ziglang take."""

_BRANCH_COST = 200
"""GCC's budget to avoid a branch, in quarters of an instruction."""


def selecting(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that make ``condition ? this : that`` a selection instead of a branch.

    Both sides are values that exist already, and conditions in a circuit follow its data: a
    processor predicts them badly. The full system at 64 bits does 1.18 times as many cycles a
    second, with stalls 1.10 times. Where that is worth a branch, the writer says ``if``.
    """
    if not compiler.is_gcc:
        return ()
    kinds = ("predictable", "unpredictable")
    return tuple(f"--param=max-rtl-if-conversion-{kind}-cost={_BRANCH_COST}" for kind in kinds)


def bare(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that link no library but the compiler's own, behind the sources.

    A simulation calls a few functions of C, which Python has loaded. To look into the libraries of
    C++ takes 18 of 58 ms for a FIFO, and to load the linker's plugin 1. Other systems resolve such
    names only if told to.
    """
    return (
        ("-nostdlib", "-lgcc", "-fno-use-linker-plugin")
        if compiler.is_gcc and sys.platform == "linux"
        else ()
    )


def hasty(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that leave out what takes GCC longest in a large function at ``-Og``.

    The source computes nothing twice. Looking for it takes 4 of 12 s for 5,000 registers; without
    it the circuit does 0.97 times as many cycles a second.
    """
    return ("-fno-tree-fre",) if compiler.is_gcc else ()


def straight(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that leave out optimizations of GCC that do not pay for a written circuit.

    Stores of neighbouring words joined into vectors cost more than they save. The source computes
    nothing twice, and looking for it takes a sixth of the time. Clang's vectors do pay: without
    them ziglang's circuit does 0.9 times as many cycles a second.
    """
    if not compiler.is_gcc:
        return ()
    return ("-fno-tree-vectorize", "-fno-tree-pre", "-fno-gcse")
