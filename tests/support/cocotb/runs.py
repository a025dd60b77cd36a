"""Build an exported core for a simulator, run a suite on it, and report passes and failures.

Nothing is skipped: a simulator that is missing raises, and so does a run without results.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from cocotb_tools.runner import get_runner

from bitlane_rtl.configurations import full
from bitlane_sim.builds import CACHE
from bitlane_sim.export import export
from support.cocotb.bench import CORE
from support.cocotb.simulators import Simulator

MEMORY_BYTES = 1 << 13

_TOP = "core"
_TIMESCALE = ("1ns", "1ps")

# cocotb's runner makes every signal public, which takes most of Verilator's speed: only ports are.
_PUBLIC = "".join(
    ["`verilator_config\n"]
    + [
        f'public_flat_rw -module "{_TOP}" -var "{name}"\n'
        for name in ("clk", "rst", "irq", "m_axi*", "s_axi*", "control_*", "wb*")
    ]
)
_KEPT = (_TOP, "sim.vvp")
"""The files that the simulators run: Verilator's program, Icarus' code."""

_ARGUMENTS = {"icarus": ["-Wall"], "verilator": ["--no-public-flat-rw"]}


@dataclass(frozen=True)
class Outcome:
    """Names of the tests that passed and that failed, and the simulator's output."""

    passed: Sequence[str]
    failed: Sequence[str]
    log: str

    def __str__(self) -> str:
        shown = [line for line in self.log.splitlines() if " INFO " not in line]
        return "\n".join([f"{len(self.passed)} passed, failed: {self.failed}", *shown[-60:]])


@functools.cache
def verilog_of(width: int, ports: int, **options: Any) -> str:
    """Return the Verilog of the core, as `bitlane export` writes it."""
    configuration = replace(full(width), read_ports=ports, memory_bytes=MEMORY_BYTES, **options)
    return export(configuration, _TOP)[0]


def run_suite(
    simulator: Simulator,
    folder: Path,
    *,
    width: int,
    ports: int,
    only: str | None = None,
    change: Callable[[str], str] = str,
    suite: str = "suite",
) -> Outcome:
    """Run the suite on the core of ``width`` and ``ports``; ``change`` may change its Verilog.

    The run writes into ``folder``. ``only`` is a regular expression for names of tests, and
    ``suite`` the module beside this one that has the tests.
    """
    text = change(verilog_of(width, ports))
    core = {"data_width": width, "read_ports": ports, "memory_bytes": MEMORY_BYTES}
    return run_verilog(simulator, folder, text, suite, {CORE: json.dumps(core)}, only=only)


def run_verilog(
    simulator: Simulator,
    folder: Path,
    text: str,
    suite: str,
    variables: Mapping[str, str],
    *,
    only: str | None = None,
    options: Sequence[str] = (),
) -> Outcome:
    """Run ``suite`` on the module ``core`` of ``text``, with environment ``variables``.

    ``options``: more arguments with which the simulator builds the module.
    """
    with mock.patch.dict(os.environ, simulator.environment):
        # Under pytest the runner ends the process when a test fails; here some have to.
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        built = _built(simulator, text, options)
        log = folder / "log"
        results = get_runner(simulator.name).test(
            test_module=f"support.cocotb.{suite}",
            hdl_toplevel=_TOP,
            hdl_toplevel_lang="verilog",
            build_dir=_copy(built, folder),
            results_xml=str(folder / "results.xml"),
            extra_env=variables,
            test_filter=only,
            timescale=_TIMESCALE,
            log_file=log,
        )
    return _outcome(results, log.read_text(errors="replace"))


def _built(simulator: Simulator, text: str, options: Sequence[str]) -> Path:
    """Return the folder that ``simulator`` runs from, built once per text and version."""
    arguments = [*_ARGUMENTS[simulator.name], *options]
    content = "\n".join([simulator.version, str(simulator.variables), *arguments, _PUBLIC, text])

    def build(folder: Path) -> None:
        (folder / f"{_TOP}.v").write_text(text)
        sources = [folder / f"{_TOP}.v"]
        if simulator.name == "verilator":
            (folder / "public.vlt").write_text(_PUBLIC)
            sources.insert(0, folder / "public.vlt")
        get_runner(simulator.name).build(
            sources=sources,
            hdl_toplevel=_TOP,
            build_dir=folder,
            build_args=arguments,
            timescale=_TIMESCALE,
            always=True,
            log_file=folder / "log",
        )
        for path in folder.iterdir():
            if path.name not in _KEPT:
                path.unlink()

    key = hashlib.sha256(content.encode()).hexdigest()[:32]
    return CACHE.cached(f"cocotb-{simulator.name}", key, build)


def _copy(built: Path, folder: Path) -> Path:
    """Copy the build into ``folder``, because another run may use the original; return the copy."""
    target = folder / "built"
    target.mkdir()
    for name in _KEPT:
        if (built / name).exists():
            shutil.copy(built / name, target)
    return target


def _outcome(results: Path, log: str) -> Outcome:
    cases = list(ElementTree.parse(results).iter("testcase"))
    assert cases, f"{results} holds no tests:\n{log[-2000:]}"
    quiet = {"properties", "system-out", "system-err"}
    failed = [x.get("name", "") for x in cases if {y.tag for y in x} - quiet]
    passed = [x.get("name", "") for x in cases if x.get("name") not in failed]
    return Outcome(passed, failed, log)


def with_output(text: str, name: str, value: str, logic: str = "") -> str:
    """Return ``text`` with ``value`` at the output ``name`` of the top module, and with ``logic``.

    ``offered`` in both is the signal that instances connect to the output.
    """
    head, body = text.split("\n);\n", 1)
    (width,) = re.findall(rf"^  output wire (\[\d+:0\] )?{name},?$", head, re.MULTILINE)
    top, end, rest = body.partition("endmodule")
    top, count = re.subn(rf"\b{name}\b", "offered", top)
    assert count, f"no connection of {name}"
    added = f"  wire {width}offered;\n{logic}  assign {name} = {value};\n"
    return f"{head}\n);\n{added}{top}{end}{rest}"
