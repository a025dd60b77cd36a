"""The circuit of a simulated system, elaborated once for all processes, and cached.

Elaboration is a process of its own, which knows nothing but the source files as they are now: what
a long session has loaded may be older. Whoever finds the circuit in the cache needs no Amaranth.

    python -m bitlane_sim.device.elaboration FOLDER

takes the fields of a `Configuration` from FOLDER, and whether there is to be a recorder, and leaves
there what it makes of them.
"""

import hashlib
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from bitlane_rtl.configuration import Configuration
from cppsim.build import CacheWarning, remove, run_program, source_digest
from cppsim.circuits import Elaborated, PlainDesign
from cppsim.errors import SimulationError, warn_user

from ..builds import CACHE, OWNER

_KIND = "systems"
SOURCES = ("bitlane_rtl", "bitlane_sim", "cppsim", "amaranth")
"""All that can change a design, beside the configuration and Python itself."""

_PROGRAM = """
import sys
import amaranth.hdl, amaranth.lib.memory, amaranth.lib.wiring, amaranth.sim, numpy
sys.pycache_prefix = sys.argv.pop(1)
import runpy
runpy.run_module("bitlane_sim.device.elaboration", run_name="__main__")
"""
"""Python reuses compiled code if the source has the same size and second. The prefix is an empty
folder, so that sources that were just edited are compiled again."""

_FIELDS, _ABOUT, _DESIGN = "fields.pickle", "about.json", "design.pickle"


@dataclass(frozen=True, slots=True)
class _About:
    """An elaboration in the cache. ``sources``, ``design`` and ``pickled`` are digests.

    ``contents`` has the rows of each memory at power-on, without the zeros at the end.
    """

    sources: str
    design: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    pickled: str
    contents: Sequence[Sequence[int]]


class ElaboratedSystem(Elaborated):
    """The system that an elaboration has left in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._about = _read_about(folder)

    @property
    def input_widths(self) -> Mapping[str, int]:
        return self._about.inputs

    @property
    def output_widths(self) -> Mapping[str, int]:
        return self._about.outputs

    @property
    def digest(self) -> str:
        return self._about.design

    @property
    def contents(self) -> Sequence[Sequence[int]]:
        return self._about.contents

    @property
    def design(self) -> PlainDesign:
        """Raises ``SimulationError`` if the cache has been emptied or damaged meanwhile."""
        try:
            content = (self._folder / _DESIGN).read_bytes()
        except FileNotFoundError:
            raise SimulationError(f"{self._folder} is gone; open again") from None
        if _sum(content) != self._about.pickled:
            remove(self._folder)
            raise SimulationError(f"{self._folder} was damaged; open again, it is built anew")
        design: PlainDesign = pickle.loads(content)
        return design


def elaborated_system(configuration: Configuration, *, recorded: bool = False) -> ElaboratedSystem:
    """The system of ``configuration``, with a recorder or without, as its sources are now.

    Raises ``SimulationError``, with Python's own words as a note, if it cannot be elaborated.
    """
    values = {field.name: getattr(configuration, field.name) for field in fields(configuration)}
    request = pickle.dumps((values, recorded))
    sources = source_digest(*SOURCES)

    def fill(folder: Path) -> None:
        elaborate(request, folder)
        (folder / _FIELDS).unlink()
        if _read_about(folder).sources != sources:
            raise SimulationError(
                "the circuit's sources have changed while they were read; open again"
            )

    key = hashlib.sha256("\n".join((sources, sys.version, request.hex())).encode())
    folder = CACHE.cached(_KIND, key.hexdigest()[:32], fill)
    try:
        return ElaboratedSystem(folder)
    except (OSError, RuntimeError, TypeError, ValueError):
        # Checksums find nearly all damage, but an entry may lack them.
        warn_user(CacheWarning(f"{folder}: damaged; it is built anew"), OWNER)
        remove(folder)
    return ElaboratedSystem(CACHE.cached(_KIND, key.hexdigest()[:32], fill))


def _read_about(folder: Path) -> _About:
    """Raise an error of Python if `_main` did not write the file."""
    about = _About(**json.loads((folder / _ABOUT).read_text(encoding="utf-8")))
    for widths in (about.inputs, about.outputs):
        if not isinstance(widths, dict) or not all(type(x) is int for x in widths.values()):
            raise TypeError("widths of ports that are not numbers")
    listed = isinstance(about.contents, list) and all(isinstance(x, list) for x in about.contents)
    if not listed or not all(type(x) is int for rows in about.contents for x in rows):
        raise TypeError("contents of memories that are not lists of numbers")
    if not all(isinstance(x, str) for x in (about.sources, about.design, about.pickled)):
        raise TypeError("digests that are not text")
    return about


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def elaborate(request: bytes, folder: Path) -> None:
    """Elaborate in a new process, into ``folder``."""
    (folder / _FIELDS).write_bytes(request)
    with tempfile.TemporaryDirectory(prefix="bitlane-") as empty:
        paths = {"PYTHONPATH": os.pathsep.join(map(str, sys.path)), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-P", "-B", "-c", _PROGRAM, empty, str(folder)]
        done = run_program("elaboration", command, environment={**os.environ, **paths})
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        error = SimulationError(f"the circuit cannot be elaborated: {last}")
        error.add_note(done.stderr)
        raise error


def _main(folder: Path) -> None:
    from cppsim.circuits import Circuit

    from ..system.system import System

    values, recorded = pickle.loads((folder / _FIELDS).read_bytes())
    circuit = Circuit(System(Configuration(**values), recorded=recorded))
    content = pickle.dumps(circuit.design, protocol=5)
    (folder / _DESIGN).write_bytes(content)
    # The digest of the sources comes last: they are what was read if they have not changed since
    # before the beginning.
    inputs, outputs = circuit.input_widths, circuit.output_widths
    contents = list(map(_without_zeros, circuit.contents))
    sources = source_digest(*SOURCES)
    about = _About(sources, circuit.digest, inputs, outputs, _sum(content), contents)
    (folder / _ABOUT).write_text(json.dumps(asdict(about)), encoding="utf-8")


def _without_zeros(rows: Sequence[int]) -> Sequence[int]:
    """Return ``rows`` up to the last that is not 0."""
    return rows[: max((number for number, row in enumerate(rows, 1) if row), default=0)]


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
