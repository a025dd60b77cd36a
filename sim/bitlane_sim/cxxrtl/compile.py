"""Turn a circuit into a shared library: Amaranth, Yosys, C++ compiler, cached by content.

The C++ is written here, from Yosys' netlist. Where a netlist has what that writer does not know,
and for waveforms, Yosys' own backend CXXRTL writes it; such models are slower.
"""

import hashlib
import json
import re
import shutil
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from bitlane.terminal import is_terminal
from cppsim.design import NotPlain

from ..cache import CACHE
from ..elaborated import CLOCK, Elaborated
from ..evaluator import SimulationError, StoragePort
from ..netlist.plain import plain
from ..netlist.yosys import flat_netlist
from ..sources import source_digest
from ..toolchain import cxxrtl_headers, find_compiler, run_yosys, yosys_version
from .program import program
from .source import cxxrtl_glue, mangle, program_glue

__all__ = ["FeedbackWarning", "Library", "build"]

_PACKAGE = "bitlane_sim"
_KIND = "cxxrtl"
_LIBRARY = "model.so"
_ABOUT = "about.json"

_WRITERS = ("cppsim", "bitlane_sim.cxxrtl", "bitlane_sim.netlist", "bitlane_sim.toolchain")
_LOADED = source_digest(*_WRITERS)
"""What runs here. The files may be newer, and the compiler reads the headers as they are."""

_FLAGS = (
    "-std=c++17",
    "-O2",
    # Stores of neighbouring words joined into vectors cost more than they save.
    "-fno-tree-vectorize",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-DNDEBUG",
    "-DCXXRTL_NDEBUG",
    "-w",
)


class FeedbackWarning(UserWarning):
    """Combinational feedback between slices of one wire: every cycle takes several passes.

    ``wires`` names them. A circuit that gives rise to it is correct, and many times slower to
    simulate than it could be.
    """

    def __init__(self, wires: Sequence[str]) -> None:
        self.wires = tuple(wires)
        shown = ", ".join(self.wires[:4]) + (", …" if len(self.wires) > 4 else "")
        super().__init__(f"combinational feedback slows the simulation down: {shown}")


@dataclass(frozen=True, slots=True)
class Library:
    """A compiled circuit.

    ``seconds`` is what Yosys and the compiler took when it was built; ``fresh`` says that this was
    just now. ``writer`` names who else wrote the C++, and why; it is empty where this package did.
    ``feedback`` names the wires of ``FeedbackWarning``.
    """

    path: Path
    compiler: str
    seconds: float
    fresh: bool
    writer: str
    feedback: tuple[str, ...]


def build(
    circuit: Elaborated,
    storage: Sequence[StoragePort] = (),
    *,
    waveform: bool = False,
    cells: str = "",
) -> Library:
    """Compile ``circuit``, or find it in the cache. ``waveform`` keeps what a VCD file needs.

    ``cells`` is RTLIL text with a module for each kind of Instance in the circuit.

    Warns with ``FeedbackWarning``. Raises ``SimulationError`` if a tool is missing or fails, or if
    the circuit has other clock edges than the rising ones of ``sync``.
    """
    compiler = find_compiler()
    flags = (*_FLAGS, *(("-DDRIVER_WAVEFORM",) if waveform else ()))
    key = _key(
        circuit.digest,
        cells,
        str(circuit.widths),
        str(storage),
        _LOADED,
        source_digest(*_WRITERS),
        *compiler.command,
        compiler.version,
        *flags,
        yosys_version(),
    )

    fresh = False

    def fill(folder: Path) -> None:
        nonlocal fresh
        fresh = True
        if is_terminal():
            print("bitlane: compiling the circuit, once for this computer", file=sys.stderr)
        started = time.monotonic()
        work = folder / "work"
        work.mkdir()
        writer, slow = _write(work, circuit, storage, circuit.netlist + cells, waveform)
        includes = [f"-I{path}" for path in (work, *_headers())]
        compiler.run([*flags, *includes, "-o", str(folder / _LIBRARY), str(work / "library.cc")])
        seconds = round(time.monotonic() - started, 3)
        about = {"seconds": seconds, "writer": writer, "feedback": slow}
        (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
        # Twenty times the size of the library.
        shutil.rmtree(work)

    folder = CACHE.cached(_KIND, key, fill)
    about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    about["feedback"] = tuple(about["feedback"])
    library = Library(folder / _LIBRARY, compiler.name, fresh=fresh, **about)
    if library.feedback:
        warnings.warn(FeedbackWarning(library.feedback), stacklevel=3)
    return library


def _headers() -> tuple[Path, ...]:
    """The folders of headers that the library includes."""
    packages = Path(str(files(_PACKAGE))) / "cxxrtl", Path(str(files("cppsim"))) / "cpp"
    return cxxrtl_headers(), *packages


def _key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:32]


def _write(
    folder: Path, circuit: Elaborated, storage: Sequence[StoragePort], netlist: str, waveform: bool
) -> tuple[str, list[str]]:
    """Write ``library.cc`` and what it includes.

    Returns who wrote it, as in ``Library``, and the wires that make the model slow.
    """
    reason = "waveforms"
    if not waveform:
        try:
            (folder / "library.cc").write_text(
                _program(circuit, storage, netlist), encoding="utf-8"
            )
        except NotPlain as error:
            reason = str(error)
        else:
            return "", []
    (folder / "design.il").write_text(netlist, encoding="utf-8")
    # Waveforms show the circuit as it was written.
    passes, backend = ("clean", "") if waveform else ("opt; clean -purge", "-g0")
    log = run_yosys(
        f"read_rtlil design.il; proc; flatten; {passes}; write_cxxrtl {backend} model.cc\n", folder
    )
    clocked = _check_edges((folder / "model.cc").read_text(encoding="utf-8"))
    (folder / "library.cc").write_text(
        cxxrtl_glue(circuit.widths, CLOCK, storage, clocked=clocked), encoding="utf-8"
    )
    return f"Yosys ({reason})", [] if waveform else _slow_wires(log)


def _program(circuit: Elaborated, storage: Sequence[StoragePort], netlist: str) -> str:
    """The source of a library without CXXRTL. Raises ``NotPlain`` if that cannot be."""
    design = plain(flat_netlist(netlist))
    messages = [check.message for check in design.checks]
    text, variables = program(design, storage)
    return program_glue(text, variables, circuit.widths, circuit.output_widths, storage, messages)


def _check_edges(model: str) -> bool:
    """Whether the model has rising edges of the clock. Raises if it has any other edges."""
    edges = set(re.findall(r"bool ((?:pos|neg)edge_\w+)\(\) const", model))
    others = edges - {f"posedge_{mangle(CLOCK)}"}
    if others:
        raise SimulationError(f"only rising edges of the domain sync are simulated; found {others}")
    return bool(edges)


def _slow_wires(log: str) -> list[str]:
    """Wires that Yosys names as feedback, or as buffered without being registers."""
    wires: list[str] = []
    listing = False
    for line in log.splitlines():
        if line.startswith("Module `") and line.endswith("wires:"):
            listing = True
        elif listing and line.startswith("  "):
            wires.append(line.strip())
        else:
            listing = False
    return wires
