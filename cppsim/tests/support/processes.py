"""Programs that tests run, with their output as text."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def run(
    *command: str | Path, cwd: Path | None = None, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run ``command``, with ``environment`` added to this process's; return how it ended.

    A Python imports from where this one does, unless ``environment`` has a ``PYTHONPATH``.
    """
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def run_python(
    *words: str | Path, cwd: Path | None = None, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run this Python with ``words``."""
    return run(sys.executable, *words, cwd=cwd, **environment)


def succeed(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """Run ``command``, expect that it succeeds, and return what it prints."""
    ran = run(*command, cwd=cwd, **environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Lets pytest load no installed plugin, which takes half of the time."""


def run_suite(
    folder: Path, files: Mapping[str, str], *options: str, others: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run pytest on ``files``, by their names, with the ``others`` of the installed plugins."""
    for name, text in files.items():
        (folder / name).write_text(text)
    environment = {name: "" for name in os.environ if name.startswith("PYTEST")}
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2] / "src")])
    words = ("-m", "pytest", "-p", "no:cacheprovider", *options)
    environment |= {} if others else ALONE
    return run_python(*words, cwd=folder, PYTHONPATH=path, **environment)


def compiler(*names: str) -> list[str]:
    """Return the words that start the first of ``names`` on the PATH, or else ziglang's compiler.

    ``names``: of C compilers, or of C++ compilers, such as ``g++``.
    """
    found = next(filter(None, map(shutil.which, names)), None)
    zig = [sys.executable, "-m", "ziglang", "c++" if "g++" in names else "cc"]
    return [found] if found else [*zig, "-fno-sanitize=undefined"]


C = compiler("gcc", "clang", "cc")
CPP = compiler("g++", "clang++", "c++")
