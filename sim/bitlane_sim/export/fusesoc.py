"""A core as FuseSoC takes it: a core file of format CAPI2. Text only."""

from collections.abc import Sequence
from pathlib import PurePath

from bitlane.version import __version__

__all__ = ["fusesoc_core"]


def fusesoc_core(name: str, command: str, module: str, sources: Sequence[str]) -> str:
    """The core file of the module ``name``, which is in the file ``module``.

    ``sources`` are the C files of its driver, for those who want the file set `driver`.
    """
    lines = [
        "CAPI=2:",
        f"# Written by: {command}",
        "# SPDX-License-Identifier: MIT",
        "",
        f"name: bitlane::{name}:{__version__}",
        "description: DirectML's bit operators on tensors in memory, behind AXI4",
        "",
        "filesets:",
        "  rtl:",
        f"    files: [{module}]",
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
