"""Targets of litex-boards with the core in them: ``bitlane build litex:radiona_ulx3s``.

LiteX writes and builds them, in a process of its own. Targets whose tools come with pip end in a
bitstream; of others the Verilog is written and checked.
"""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from bitlane.errors import BitlaneError
from bitlane.installation import how_to_install
from bitlane_sim.builds import CACHE

__all__ = ["TargetReport", "build_target"]

_TOOLS = ("yosys", "nextpnr-ecp5", "ecppack")
"""Programs that LiteX calls, each of which YoWASP has as ``yowasp-NAME``."""

_COMPILER = "riscv64-unknown-elf-gcc"
"""Compiles the BIOS of a SoC with a processor. Without it the ROM stays empty."""

_ROM_BYTES = 0x2_0000
"""Room for the BIOS."""

_HIDDEN = Path("/tmp")
"""YoWASP's programs have a folder of their own in its place, and LiteX gives them whole paths."""

_LOG = "litex.log"
_RESULT = "bitlane.json"

_CLOCK = re.compile(r"Max frequency for clock\s+'([^']+)': ([\d.]+) MHz \((\w+) at ([\d.]+) MHz\)")
_CELLS = re.compile(r"(TRELLIS_COMB|TRELLIS_FF|DP16KD|MULT18X18D): +(\d+)/ *(\d+)")


@dataclass(frozen=True, slots=True)
class TargetReport:
    """A target that was built in ``folder``.

    ``bitstream`` is None where the vendor's tool has to make it, by ``command``.
    """

    name: str
    folder: Path
    bitstream: Path | None
    command: str
    clocks: dict[str, tuple[float, float]]
    """MHz that each clock reaches, and that it needs."""
    cells: dict[str, tuple[int, int]]

    @property
    def failed(self) -> list[str]:
        """The clocks that are too slow, for people."""
        return [
            f"{self.name}: clock {name} reaches {reached:.1f} of {needed:.1f} MHz"
            for name, (reached, needed) in self.clocks.items()
            if reached < needed
        ]

    def text(self) -> str:
        lines = [f"target     {self.name}", f"csr        {self.folder / 'csr.csv'}"]
        lines += [f"{name:10} {used} of {total}" for name, (used, total) in self.cells.items()]
        lines += [
            f"clock      {name}: {reached:.1f} MHz of {needed:.1f}"
            for name, (reached, needed) in self.clocks.items()
        ]
        if self.bitstream is None:
            lines.append(f"next       {self.command}")
        else:
            lines.append(f"bitstream  {self.bitstream}, {self.bitstream.stat().st_size} bytes")
        return "\n".join(lines)


def build_target(name: str, folder: Path, options: Sequence[str] = ()) -> TargetReport:
    """Build the target ``name`` of litex-boards with the core, in ``folder``.

    Options are ``NAME=VALUE`` for the target's class ``BaseSoC``.

    Raises ``BitlaneError`` without LiteX, for an unknown target, and for one that cannot be built.
    """
    if find_spec("litex_boards") is None:
        raise BitlaneError(f"build: litex-boards is not installed: {how_to_install('litex')}")
    targets = find_spec("litex_boards.targets")
    names = [x.name for x in iter_modules(targets.submodule_search_locations if targets else ())]
    if name not in names:
        close = [x for x in names if name and name in x] or get_close_matches(name, names, 1)
        hint = f"did you mean {close[0]}?" if close else "expected one like radiona_ulx3s"
        raise BitlaneError(f"build: litex-boards has no target {name!r}; {hint}")
    folder = folder.absolute()
    if folder.is_relative_to(_HIDDEN):
        raise BitlaneError(
            f"build: {folder}: the tools see no files in {_HIDDEN}; choose another folder with -o"
        )
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / _LOG
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [sys.executable, "-m", "bitlane_boards.litex.targets", name, str(folder), *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={
                **CACHE.tool_environment(),
                "PATH": f"{_wrappers(folder)}:{os.environ['PATH']}",
            },
            check=False,
        )
    text = log.read_text(encoding="utf-8", errors="replace")
    if done.returncode:
        raise BitlaneError(f"build: {name}: {_reason(text)} (all of it: {log})")
    result = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
    routed = text.rpartition("Info: Routing complete")[2]
    return TargetReport(
        name=name,
        folder=folder,
        bitstream=Path(result["bitstream"]) if result["bitstream"] else None,
        command=result["command"],
        clocks={x[0]: (float(x[1]), float(x[3])) for x in _CLOCK.findall(routed)},
        cells={x[0]: (int(x[1]), int(x[2])) for x in _CELLS.findall(text)},
    )


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [
        x for x in lines if x.startswith(("ERROR", "bitlane.errors.", "bitlane.BitlaneError"))
    ]
    return (errors or lines or ["failed without a message"])[-1]


def _wrappers(folder: Path) -> Path:
    """Write scripts with the names that LiteX calls, which run YoWASP's programs."""
    place = folder / "tools"
    place.mkdir(exist_ok=True)
    for tool in _TOOLS:
        program = shutil.which(f"yowasp-{tool}") or Path(sys.executable).with_name(f"yowasp-{tool}")
        script = place / tool
        script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return place


# --- in the process of its own --------------------------------------------------------------------


def _make(name: str, folder: Path, options: Sequence[str]) -> None:
    """Make the SoC, write it, and run its tools if pip has them."""
    from litex.soc.integration.builder import Builder

    logging.disable(logging.INFO)  # LiteX reports every region.
    soc = _with_core(name, options)
    software = soc.cpu_type not in (None, "None") and shutil.which(_COMPILER) is not None
    builder = Builder(
        soc,
        output_dir=str(folder),
        csr_csv=str(folder / "csr.csv"),
        compile_software=software,
        compile_gateware=_by_pip(soc.platform),
    )
    builder.build()
    verilog = Path(builder.gateware_dir) / f"{soc.get_build_name()}.v"
    bitstream = verilog.with_suffix(".bit")
    if not _by_pip(soc.platform):
        _lint(verilog, (verilog.parent / source for source, *_ in soc.platform.sources))
        bitstream = Path()
    result = {
        "bitstream": str(bitstream) if bitstream.is_file() else "",
        "command": f"cd {builder.gateware_dir} && sh build_{soc.get_build_name()}.sh",
    }
    (folder / _RESULT).write_text(json.dumps(result), encoding="utf-8")


def _with_core(name: str, options: Sequence[str]) -> Any:
    """Return the SoC of the target ``name`` with the core."""
    from .soc import add_bitlane

    target = import_module(f"litex_boards.targets.{name}").BaseSoC
    words: dict[str, Any] = {
        "cpu_type": None,
        "with_uart": False,
        "with_uartbone": True,
        "l2_size": 0,
    }
    words |= _values(options, _names(target))
    if words["cpu_type"] is not None:
        words |= {"with_uart": True, "uart_name": "crossover", "integrated_rom_size": _ROM_BYTES}
    soc = target(**words)
    add_bitlane(soc)
    return soc


def _names(target: type) -> set[str]:
    """Return the options of ``target``: its own, and those that it passes on to LiteX.

    LiteX's own classes take an unknown option without an error.
    """
    from litex.soc.integration.soc_core import SoCCore

    own = signature(target).parameters
    names = {x for x, parameter in own.items() if parameter.kind is not Parameter.VAR_KEYWORD}
    if len(names) < len(own):
        names |= {*signature(SoCCore).parameters, "l2_size"} - {"platform", "clk_freq", "kwargs"}
    return names


def _values(options: Sequence[str], names: Collection[str]) -> dict[str, Any]:
    """Return the values in ``options``, each ``NAME=VALUE``. Raises ``BitlaneError``."""
    values: dict[str, Any] = {}
    for text in options:
        name, equals, value = text.partition("=")
        if name not in names:
            close = get_close_matches(name, names, 1)
            hint = f"did you mean {close[0]}?" if close else f"choose {', '.join(sorted(names))}"
            raise BitlaneError(f"the target has no option {name!r}; {hint}")
        if not equals or not value:
            raise BitlaneError(f"option {text!r} has no value; expected {name}=VALUE")
        if name in values:
            raise BitlaneError(f"option {name!r} is given twice; expected it once")
        values[name] = _value(value)
    return values


def _value(text: str) -> Any:
    """Return a number, a truth value, None or a list of JSON or Python, or the text itself."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


_CONSTANTS = {"True": True, "False": False, "None": None}


def _by_pip(platform: Any) -> bool:
    return type(platform.toolchain).__name__ == "LatticeTrellisToolchain"


def _lint(top: Path, sources: Iterable[Path]) -> None:
    """Let Yosys read all modules and check what drives what. The vendor's cells stay unknown."""
    files = dict.fromkeys([top, *(x for x in sources if x.suffix == ".v")])
    script = f"read_verilog {' '.join(map(str, files))}; hierarchy -top {top.stem}; proc; check"
    done = subprocess.run(["yosys", "-q", "-p", script], check=False)
    if done.returncode:
        raise BitlaneError(f"Yosys refuses {top}")


if __name__ == "__main__":
    _make(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
