"""Turn a circuit into a shared library: Amaranth, Yosys, C++ compiler, cached by content."""

import hashlib
import json
import re
import shutil
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from amaranth.back import rtlil  # type: ignore[attr-defined]  # stubs lag

from ..circuit import CLOCK, Circuit
from ..evaluator import SimulationError, StoragePort
from .cache import cached
from .source import glue, mangle
from .split import split_wires
from .toolchain import Compiler, cxxrtl_headers, find_compiler, run_yosys, yosys_version
from .tune import state_of, tune_model, wide_headers

__all__ = ["FeedbackWarning", "Library", "build"]

_PACKAGE = "bitlane_sim.cxxrtl"
_KIND = "cxxrtl"
_LIBRARY = "model.so"
_ABOUT = "about.json"

# What is built depends on how it is built.
_OWN_SOURCES = ("compile.py", "split.py", "tune.py", "source.py", "driver.h")

_FLAGS = (
    "-std=c++17",
    "-O2",
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

    ``wires`` names them. A circuit that gives rise to it is correct, and several times slower to
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
    just now. ``feedback`` names the wires of ``FeedbackWarning``.
    """

    path: Path
    compiler: str
    seconds: float
    fresh: bool
    feedback: tuple[str, ...]


def build(
    circuit: Circuit,
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
    netlist = rtlil.convert(circuit, emit_src=False) + cells
    flags = (*_FLAGS, *(("-DDRIVER_WAVEFORM",) if waveform else ()))
    # What the glue depends on beyond this is the netlist's.
    plain = glue(circuit.widths, CLOCK, storage)
    key = _key(
        netlist,
        *_recipe(waveform),
        plain,
        *(files(_PACKAGE).joinpath(name).read_text() for name in _OWN_SOURCES),
        *compiler.command,
        compiler.version,
        *flags,
        yosys_version(),
    )

    fresh = False

    def fill(folder: Path) -> None:
        nonlocal fresh
        fresh = True
        _fill(folder, circuit, storage, netlist, waveform, compiler, flags)

    folder = cached(_KIND, key, fill)
    about = json.loads((folder / _ABOUT).read_text())
    library = Library(
        path=folder / _LIBRARY,
        compiler=compiler.name,
        seconds=about["seconds"],
        fresh=fresh,
        feedback=tuple(about["feedback"]),
    )
    if library.feedback:
        warnings.warn(FeedbackWarning(library.feedback), stacklevel=3)
    return library


def _recipe(waveform: bool) -> tuple[str, str]:
    """Yosys's passes, and its backend."""
    if waveform:
        return "proc; flatten; clean", "write_cxxrtl"
    # Neither `opt -fine` nor `opt -full`: they drive parts of one wire from different cells or join
    # unrelated signals in one, which makes combinational feedback where the circuit has none.
    return "proc; flatten; opt; clean -purge", "write_cxxrtl -g0"


def _key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:32]


def _fill(
    folder: Path,
    circuit: Circuit,
    storage: Sequence[StoragePort],
    netlist: str,
    waveform: bool,
    compiler: Compiler,
    flags: Sequence[str],
) -> None:
    started = time.monotonic()
    passes, backend = _recipe(waveform)
    work = folder / "work"
    work.mkdir()
    (work / "design.il").write_text(netlist)
    run_yosys(f"read_rtlil design.il; {passes}; write_rtlil flat.il\n", work)
    slow = _generate(work, backend, split=not waveform)
    model = (work / "model.cc").read_text()
    clocked = _check_edges(model)
    state = None
    if not waveform and "bool converged = true;" in model:
        state = state_of(model)
        (work / "model.cc").write_text(tune_model(model))
        (work / "cxxrtl" / "capi").mkdir(parents=True)
        for name, text in wide_headers(cxxrtl_headers()).items():
            (work / name).write_text(text)
    source = glue(circuit.widths, CLOCK, storage, state=state, clocked=clocked)
    (work / "library.cc").write_text(source)
    here = Path(str(files(_PACKAGE)))
    compiler.run(
        [
            *flags,
            f"-I{work}",
            f"-I{cxxrtl_headers()}",
            f"-I{here}",
            "-o",
            str(folder / _LIBRARY),
            str(work / "library.cc"),
        ]
    )
    about = {
        "feedback": [] if waveform else slow,
        "seconds": round(time.monotonic() - started, 3),
    }
    (folder / _ABOUT).write_text(json.dumps(about))
    # Twenty times the size of the library.
    shutil.rmtree(work)


def _check_edges(model: str) -> bool:
    """Whether the model has rising edges of the clock. Raises if it has any other edges."""
    edges = set(re.findall(r"bool ((?:pos|neg)edge_\w+)\(\) const", model))
    others = edges - {f"posedge_{mangle(CLOCK)}"}
    if others:
        raise SimulationError(f"only rising edges of the domain sync are simulated; found {others}")
    return bool(edges)


def _generate(folder: Path, backend: str, *, split: bool) -> list[str]:
    """Write ``model.cc`` from ``flat.il``; returns the wires that slow it down.

    What can be split so that it does not is split, unless ``split`` is off.
    """
    before: list[str] = []
    while True:
        log = run_yosys(f"read_rtlil flat.il; {backend} model.cc\n", folder)
        slow = _slow_wires(log)
        if not slow or not split or slow == before:
            return slow
        flat = (folder / "flat.il").read_text()
        names = {name if name.startswith("$") else f"\\{name}" for name in slow}
        (folder / "flat.il").write_text(split_wires(flat, names))
        before = slow


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
