"""Files for an integrator beside the module and its page: C, SystemRDL, a core file of FuseSoC.

Text only.

The driver's own files are the same for every core, and lie in `driver/` as they are exported.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import PurePath

from bitlane.version import __version__
from bitlane_rtl.abi import REGISTERS
from bitlane_rtl.configuration import Configuration

from .c_headers import core_header, registers_header
from .system_rdl import system_rdl

_CONTRACT = "bitlane_registers.h"
_DRIVER = ("bitlane.h", "bitlane.c")

DRIVER_NAMES = frozenset({"bitlane", "bitlane_registers", "readme"})
"""Names of other files, in lower case, which a core that is exported into a folder cannot have."""


def integrator_files(
    configuration: Configuration, name: str, command: str, bus: str = "AXI4"
) -> dict[str, str]:
    """Return the files for the module ``name`` on ``bus``, which ``command`` writes, by name."""
    header = f"{name}.h"
    driver = files("bitlane_sim.export") / "driver"
    built = reset_values(configuration)
    result = {
        header: core_header(configuration, name, command, built),
        _CONTRACT: registers_header(),
        **{file: (driver / file).read_text(encoding="utf-8") for file in _DRIVER},
        f"{name}.rdl": system_rdl(configuration, name, command, built),
    }
    sources = [header, _CONTRACT, *_DRIVER]
    return result | {f"{name}.core": fusesoc_core(name, command, bus, sources)}


def reset_values(configuration: Configuration) -> Mapping[str, int]:
    """Return the reset values of all registers that can be read, in the contract's order."""
    # All of Amaranth, which help and complaints do without.
    from bitlane_rtl.capabilities import capabilities, geometry, search

    built = {
        "CAPABILITIES": capabilities(configuration),
        "GEOMETRY": geometry(configuration),
        "MEMORY_BASE": configuration.memory_base,
        "MEMORY_LAST": configuration.memory_last,
        "SEARCH": search(configuration),
    }
    return {x.name: built[x.name] if x.reset is None else x.reset for x in REGISTERS}


def fusesoc_core(name: str, command: str, bus: str, sources: Sequence[str]) -> str:
    """The core file of the module ``name`` on ``bus``, which is in the file of that name.

    ``sources`` are the C files of its driver, for those who want the file set `driver`.
    """
    lines = [
        "CAPI=2:",
        f"# Written by: {command}",
        "# SPDX-License-Identifier: MIT",
        "",
        f"name: bitlane::{name}:{__version__}",
        f"description: DirectML's bit operators on tensors in memory, behind {bus}",
        "",
        "filesets:",
        "  rtl:",
        f"    files: [{name}.v]",
        "    file_type: verilogSource",
        "  driver:",
        "    files:",
        *(f"      - {file}: {{{_kind(file)}}}" for file in sources),
        "",
        "targets:",
        "  default: &default",
        "    filesets: [rtl]",
        f"    toplevel: {name}",
        "  lint:",
        "    <<: *default",
        "    description: let Verilator read the module",
        "    flow: lint",
        "    flow_options:",
        "      tool: verilator",
        "      verilator_options: [-Wall]",
    ]
    return "\n".join(lines) + "\n"


def _kind(file: str) -> str:
    include = ", is_include_file: true" if PurePath(file).suffix == ".h" else ""
    return f"file_type: cSource{include}"
