"""Programs that tests run, with their output as text."""

import os
import subprocess
import sys
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
