"""The circuit of a simulated system, elaborated once for all processes: its ports are kept.

Elaboration is a process of its own, which knows nothing but the source files as they are now: what
a long session has loaded may be older. Whoever finds the circuit in the cache needs no Amaranth.

    python -m bitlane_sim.elaboration FOLDER

takes the fields of a `Configuration` from FOLDER, and leaves there what it makes of them.
"""

import hashlib
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from bitlane_rtl.configuration import Configuration
from cppsim.toolchain import run_program

from .cache import CACHE
from .elaborated import Elaborated, digest_of
from .evaluator import SimulationError
from .sources import source_digest

__all__ = ["ElaboratedSystem", "elaborated_system"]

_KIND = "systems"
_SOURCES = ("bitlane_rtl", "bitlane_sim", "cppsim", "amaranth")
"""All that can change a netlist, beside the configuration and Python itself."""

_FIELDS, _ABOUT, _NETLIST = "fields.pickle", "about.json", "netlist.il"


@dataclass(frozen=True, slots=True)
class _About:
    """What is kept of an elaboration. ``sources`` and ``netlist`` are digests."""

    sources: str
    netlist: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


class ElaboratedSystem(Elaborated):
    """What is known of the system with ``fields``, those of a configuration.

    ``netlist`` is elaborated anew if only the rest is known. It raises ``SimulationError`` if the
    sources have changed since.
    """

    def __init__(self, fields: bytes, about: _About, netlist: str | None) -> None:
        self._fields = fields
        self._about = about
        self._netlist = netlist

    @property
    def input_widths(self) -> Mapping[str, int]:
        return self._about.inputs

    @property
    def output_widths(self) -> Mapping[str, int]:
        return self._about.outputs

    @property
    def digest(self) -> str:
        return self._about.netlist

    @property
    def netlist(self) -> str:
        if self._netlist is None:
            about, self._netlist = _elaborate(self._fields)
            _expect(about == self._about)
        return self._netlist


def elaborated_system(configuration: Configuration) -> ElaboratedSystem:
    """The system of ``configuration``, as its sources are now.

    Raises ``SimulationError``, with Python's own words as a note, if it cannot be elaborated.
    """
    values = {field.name: getattr(configuration, field.name) for field in fields(configuration)}
    request = pickle.dumps(values)
    sources = source_digest(*_SOURCES)
    netlist: str | None = None

    def fill(folder: Path) -> None:
        nonlocal netlist
        about, netlist = _elaborate(request)
        _expect(about.sources == sources)
        (folder / _ABOUT).write_text(json.dumps(asdict(about)), encoding="utf-8")

    key = hashlib.sha256("\n".join((sources, sys.version, request.hex())).encode())
    folder = CACHE.cached(_KIND, key.hexdigest()[:32], fill)
    return ElaboratedSystem(request, _read_about(folder), netlist)


def _expect(unchanged: bool) -> None:
    if not unchanged:
        raise SimulationError("the circuit's sources have changed while they were read; open again")


def _read_about(folder: Path) -> _About:
    return _About(**json.loads((folder / _ABOUT).read_text(encoding="utf-8")))


def _elaborate(request: bytes) -> tuple[_About, str]:
    """Elaborate in a new process: the netlist, and what there is to know about it."""
    with tempfile.TemporaryDirectory(prefix="bitlane-") as name:
        folder = Path(name)
        (folder / _FIELDS).write_bytes(request)
        # Python takes what it has compiled for the source's if size and second agree. With the
        # prefix it finds nothing compiled.
        options = ["-P", "-B", "-X", f"pycache_prefix={folder}", "-m", "bitlane_sim.elaboration"]
        paths = {"PYTHONPATH": os.pathsep.join(map(str, sys.path)), "PYTHONHASHSEED": "0"}
        command = [sys.executable, *options, name]
        done = run_program("elaboration", command, environment={**os.environ, **paths})
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            error = SimulationError(f"the circuit cannot be elaborated: {last}")
            error.add_note(done.stderr)
            raise error
        return _read_about(folder), (folder / _NETLIST).read_text(encoding="utf-8")


def _main(folder: Path) -> None:
    from .circuit import Circuit
    from .system import System

    configuration = Configuration(**pickle.loads((folder / _FIELDS).read_bytes()))
    circuit = Circuit(System(configuration))
    (folder / _NETLIST).write_text(circuit.netlist, encoding="utf-8")
    # The digest of the sources comes last: they are what was read if they have not changed since
    # before the beginning.
    inputs, outputs = circuit.input_widths, circuit.output_widths
    about = _About(source_digest(*_SOURCES), digest_of(circuit.netlist), inputs, outputs)
    (folder / _ABOUT).write_text(json.dumps(asdict(about)), encoding="utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
