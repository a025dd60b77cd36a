"""An exported batch: a folder with source, ports, program and data, and the modules that run it.

FOLDER/source.h      C++ for both backends
FOLDER/batch.json    the description, and the columns of the results
FOLDER/data.npz      instructions, their operands, and the memories at power-on
FOLDER/cppsim/       the modules; they need NumPy, and CuPy for a GPU
FOLDER/results.npz   results, and each memory as memory:NAME
FOLDER/expected.npz  optional: expected results of the first instances
"""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BatchError
from ..model import Encoded, Program
from .description import Description, Source
from .runner import BatchSource, Runner

_MODULES = ("__init__", "__main__", "cuda", "description", "folder", "runner", "threads")
_RUNNER = (
    *("__init__.py", "errors.py"),
    *(f"compiling/{x}.py" for x in ("__init__", "cache", "entries", "library", "toolchain")),
    *(f"model/{name}.py" for name in ("__init__", "ports", "program")),
    *(f"netlist/{name}.py" for name in ("__init__", "design")),
    *(f"batch/{name}.py" for name in _MODULES),
    *(f"batch/{name}" for name in ("cuda.cu", "threads.cc")),
)
"""The files of this package that a folder includes."""


@dataclass(frozen=True, slots=True)
class StoredDesign:
    """A written design as plain data: one source for both backends, and memories at power-on."""

    both: Source
    rows: bytes

    def source(self, backend: str | None = None) -> Source:
        """Return the source for both backends."""
        return self.both


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """The content of a folder; ``rows`` are those of `write_folder`."""

    instances: int
    source: Source
    rows: NDArray[np.uint8]
    program: Encoded

    @property
    def design(self) -> StoredDesign:
        """The design, with the memories of the first instance."""
        return StoredDesign(self.source, self.rows[0].tobytes())


def write_folder(
    folder: Path, written: BatchSource, instances: int, rows: NDArray[np.uint8], program: Program
) -> None:
    """Write ``folder``, which runs ``program`` from power-on. Raises ``BatchError``.

    ``rows`` are the bytes of all memories at power-on, as (instances, bytes), or as (1, bytes) if
    they are the same in all instances.
    """
    source = written.source()
    encoded = program.encoded(source.description.ports, instances)
    about = {
        "instances": instances,
        "description": source.description.as_dict(),
        "program": encoded.about(),
    }
    if len(rows) and (rows == rows[0]).all():
        rows = rows[:1]
    arrays: dict[str, NDArray[Any]] = {
        "instructions": encoded.instructions,
        "input": encoded.input,
        "rows": rows,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _RUNNER:
            (folder / "cppsim" / name).parent.mkdir(parents=True, exist_ok=True)
            module = (files("cppsim") / name).read_bytes()
            (folder / "cppsim" / name).write_bytes(module)
        (folder / "cppsim" / "cpp").mkdir(exist_ok=True)
        (folder / "source.h").write_text(source.text, encoding="utf-8")
        (folder / "batch.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        _save(folder / "data.npz", arrays)
    except OSError as error:
        raise BatchError(f"{folder} cannot be written: {error.strerror}") from error


def read_folder(folder: Path) -> StoredBatch:
    """Return the content of ``folder``; nothing is compiled. Raises ``BatchError``."""
    try:
        about = json.loads((folder / "batch.json").read_text(encoding="utf-8"))
        text = (folder / "source.h").read_text(encoding="utf-8")
        with np.load(folder / "data.npz") as data:
            arrays = {name: data[name] for name in ("instructions", "input", "rows")}
        description = Description.from_dict(about["description"])
        program = Encoded.from_parts(about["program"], arrays["instructions"], arrays["input"])
        instances = int(about["instances"])
        if program.input.shape[-1] != instances or len(arrays["rows"]) not in (1, instances):
            raise ValueError(f"it has not the data of {instances} instances")
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise BatchError(f"{folder} is not a complete batch: {error}; export it again") from error
    return StoredBatch(instances, Source(text, description), arrays["rows"], program)


def open_folder(folder: Path, backend: str) -> tuple[Runner, Encoded]:
    """Return the instances of ``folder`` at power-on, and the program. Raises ``BatchError``."""
    stored = read_folder(folder)
    runner = Runner(stored.design, stored.instances, backend)
    if len(stored.rows) > 1:
        runner.put_all_rows(stored.rows)
    return runner, stored.program


def read_expected(folder: Path) -> dict[str, NDArray[Any]]:
    """Return the results in ``expected.npz``, by name; none if the file does not exist.

    Raises ``BatchError`` if the file cannot be read.
    """
    path = folder / "expected.npz"
    if not path.exists():
        return {}
    try:
        with np.load(path) as data:
            return {name: data[name] for name in data.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise BatchError(f"{path} is not a complete file: {error}; export it again") from error


def save_results(
    folder: Path, results: Mapping[str, NDArray[Any]], memories: Mapping[str, NDArray[Any]]
) -> Path:
    """Write results and memories to ``results.npz``; return its path. Raises ``BatchError``."""
    path = folder / "results.npz"
    try:
        _save(path, {**results, **memories})
    except OSError as error:
        raise BatchError(f"{path} cannot be written: {error.strerror}") from error
    return path


def _save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    waiting = path.with_name(f"{path.stem}.part.npz")
    np.savez_compressed(waiting, **dict(arrays))  # type: ignore[arg-type]
    waiting.replace(path)
