"""Measured figures: on the terminal, and in files with date, machine and versions."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from bitlane.terminal import show
from bitlane.version import __version__

_Row = TypeVar("_Row")


def printed(rows: Iterable[_Row], line: Callable[[_Row], str]) -> list[_Row]:
    """Print the ``line`` of each row as soon as it is measured; return the rows."""
    found = []
    for row in rows:
        show("")
        print(line(row), flush=True)
        found.append(row)
    return found


def record(
    kind: str,
    rows: object,
    packages: tuple[str, ...] = (),
    tools: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return ``rows`` with ``kind``, machine, date, and the versions of bitlane, Python and
    ``packages``, and ``tools``. Amaranth may be missing."""
    versions = {"bitlane": __version__, "Python": platform.python_version()}
    with suppress(importlib.metadata.PackageNotFoundError):
        versions["amaranth"] = importlib.metadata.version("amaranth")
    versions |= {name: importlib.metadata.version(name) for name in packages}
    versions |= tools or {}
    return {
        "kind": kind,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": versions,
        "rows": rows,
    }


def _processor() -> str:
    """Return the processor's name if the system reports it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def replace(file: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` write a new file, and put it in the place of ``file`` once it is whole."""
    unfinished = file.with_name(f".{file.name}.new{file.suffix}")
    try:
        write(unfinished)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def write_json(file: Path, figures: object) -> None:
    """Write ``figures`` to ``file``, whole or not at all."""
    text = json.dumps(figures, indent=2) + "\n"
    replace(file, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))
