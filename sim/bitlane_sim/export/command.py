"""`bitlane export`: write the AXI4 core as Verilog, with a page of its registers. Runs nothing."""

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from amaranth.back import rtlil  # type: ignore[attr-defined]  # stubs lag

from bitlane.cli import DONE, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.sizes import parse_size
from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Lane, Mode, Op
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.core import Core

from ..evaluator import SimulationError
from ..netlist.plain import plain
from ..netlist.yosys import flat_netlist
from .document import header, page
from .names import is_identifier
from .ports import conventional_ports
from .verilog import verilog

__all__ = ["ExportError", "add_export", "export"]

_Member = TypeVar("_Member")

_ALL = "all"
_OPS = {op.name.lower(): {op} for op in Op} | {"logic": LOGIC_OPS, "shift": SHIFT_OPS}
_LANES = {str(lane.bits): {lane} for lane in Lane}
_MODES = {mode.name.lower(): {mode} for mode in Mode}

_DEFAULTS = Configuration()

_OTHER_NAME = """\
// The module was given a name of its own with --prefix.
/* verilator lint_off DECLFILENAME */
"""


class ExportError(BitlaneError):
    """The core could not be exported. Nothing has been written."""


def add_export(subparsers: Subparsers) -> None:
    """Add the subcommand `export`."""
    parser = subparsers.add_parser(
        "export",
        help="write the AXI4 core as Verilog for other systems",
        description="Write the AXI4 core as one module of plain Verilog-2005, and its ports,"
        " registers and command record as Markdown beside it. The same options give the same"
        " bytes.",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        metavar="FILE.v",
        help="where the module goes; the page goes to FILE.md",
    )
    parser.add_argument(
        "--prefix", metavar="NAME", help="name of the module (default: FILE without its ending)"
    )
    parser.add_argument(
        "--data-width",
        type=whole_number,
        default=_DEFAULTS.data_width,
        metavar="N",
        help="bits in a beat: 32, 64, 128, 256 or 512 (default %(default)s)",
    )
    parser.add_argument(
        "--ports",
        type=whole_number,
        default=_DEFAULTS.read_ports,
        metavar="N",
        help="read managers: 2, or 1 that A and B share (default %(default)s)",
    )
    _add_list(parser, "--ops", _OPS, "operations")
    _add_list(parser, "--lanes", _LANES, "lanes of shifts, counts, and strided or repeated runs")
    _add_list(parser, "--modes", _MODES, "ways to walk a run; dense is always there")
    parser.add_argument(
        "--loops",
        type=whole_number,
        default=_DEFAULTS.loops,
        metavar="N",
        help="nested loops of a command, 1 to 6 (default %(default)s)",
    )
    parser.add_argument(
        "--memory-base",
        type=_size,
        default=_DEFAULTS.memory_base,
        metavar="N",
        help="first byte that commands may touch (default %(default)s)",
    )
    parser.add_argument(
        "--memory-bytes",
        type=_size,
        default=_DEFAULTS.memory_bytes,
        metavar="N",
        help="bytes from there on, with KiB, MiB or GiB if you like (default 1GiB)",
    )
    parser.add_argument(
        "--block-ram", action="store_true", help="FIFOs in block RAM (iCE40), not in LUT RAM"
    )
    parser.add_argument(
        "--id-width",
        type=whole_number,
        default=1,
        metavar="N",
        help="bits of the managers' identifiers, which are 0 (default %(default)s)",
    )
    parser.set_defaults(run=_run)


def _add_list(
    parser: argparse.ArgumentParser,
    option: str,
    known: Mapping[str, Iterable[object]],
    meaning: str,
) -> None:
    parser.add_argument(
        option,
        type=_list(known),
        default=_list(known)(_ALL),
        metavar="LIST",
        help=f"{meaning}, separated by commas: {', '.join(known)} (default {_ALL})",
    )


def _list(known: Mapping[str, Iterable[_Member]]) -> Callable[[str], frozenset[_Member]]:
    def parse(text: str) -> frozenset[_Member]:
        found: set[_Member] = set()
        for word in text.split(","):
            name = word.strip().lower().replace("-", "_")
            if name != _ALL and name not in known:
                choices = ", ".join([*known, _ALL])
                raise argparse.ArgumentTypeError(f"no {word.strip()!r}; choose from {choices}")
            for group in known.values() if name == _ALL else [known[name]]:
                found |= set(group)
        return frozenset(found)

    return parse


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of bytes; expected one like 4096, 0x1000, 64KiB, 1GiB"
        ) from None


def _run(arguments: argparse.Namespace) -> int:
    output: Path = arguments.output
    if output.suffix != ".v":
        raise ExportError(f"--output: {output} has no ending .v")
    name = output.stem if arguments.prefix is None else arguments.prefix
    if not is_identifier(name):
        option = "--output" if arguments.prefix is None else "--prefix"
        raise ExportError(
            f"{option}: a module cannot be called {name!r}: expected letters, digits and _, and no"
            " keyword of Verilog; choose another --prefix"
        )
    if not output.parent.is_dir():
        raise ExportError(f"--output: {output.parent} is no folder; make it first")
    for path in (output, output.with_suffix(".md")):
        if path.is_dir():
            raise ExportError(f"--output: {path} is a folder; expected a file")
    try:
        configuration = Configuration(
            data_width=arguments.data_width,
            read_ports=arguments.ports,
            ops=arguments.ops,
            lanes=arguments.lanes,
            modes=arguments.modes | {Mode.DENSE},
            loops=arguments.loops,
            memory_base=arguments.memory_base,
            memory_bytes=arguments.memory_bytes,
            block_ram=arguments.block_ram,
        )
        text, beside = export(configuration, name, id_width=arguments.id_width, file=output.name)
    except ValueError as error:
        raise ExportError(_in_options(str(error))) from error
    except SimulationError as error:
        raise ExportError(str(error)) from error
    _write({output: text, output.with_suffix(".md"): beside})
    print(f"wrote {output} and {output.with_suffix('.md')}")
    return DONE


def _in_options(complaint: str) -> str:
    """``complaint`` of a configuration, which begins with names of it, with the options' names."""
    names, colon, rest = complaint.partition(":")
    options = [f"--{name.removeprefix('read_').replace('_', '-')}" for name in names.split(", ")]
    return ", ".join(options) + colon + rest


def export(
    configuration: Configuration, name: str, *, id_width: int = 1, file: str = ""
) -> tuple[str, str]:
    """The module ``name`` as Verilog for ``file`` (default: NAME.v), and its page as Markdown.

    Raises ``ValueError`` for a bad ``id_width`` and ``SimulationError`` if Yosys is missing.
    """
    core = Core(configuration)
    design = plain(flat_netlist(rtlil.convert(core, name="top", emit_src=False)), checks=False)
    flat: Any = core.signature.flatten(core)
    order = ["__".join(map(str, path)) for path, _, _ in flat]
    design.ports = conventional_ports(design, order, id_width)
    path = Path(file or f"{name}.v")
    command = _command(configuration, name, id_width, path)
    text = header(configuration, name, command, path.with_suffix(".md").name)
    text += "\n" + verilog(design, name)
    if path.stem != name:
        text = _OTHER_NAME + text
    return text, page(configuration, name, command, design.ports)


def _command(configuration: Configuration, name: str, id_width: int, path: Path) -> str:
    """The command that writes the module ``name`` to ``path`` again."""
    words = ["bitlane", "export"]
    for option, value, default in (
        ("--data-width", configuration.data_width, _DEFAULTS.data_width),
        ("--ports", configuration.read_ports, _DEFAULTS.read_ports),
        ("--ops", _listed(_OPS, configuration.ops), _listed(_OPS, _DEFAULTS.ops)),
        ("--lanes", _listed(_LANES, configuration.lanes), _listed(_LANES, _DEFAULTS.lanes)),
        ("--modes", _listed(_MODES, configuration.modes), _listed(_MODES, _DEFAULTS.modes)),
        ("--loops", configuration.loops, _DEFAULTS.loops),
        ("--memory-base", f"{configuration.memory_base:#x}", f"{_DEFAULTS.memory_base:#x}"),
        ("--memory-bytes", configuration.memory_bytes, _DEFAULTS.memory_bytes),
        ("--id-width", id_width, 1),
    ):
        if value != default:
            words += [option, str(value)]
    if configuration.block_ram:
        words.append("--block-ram")
    if name != path.stem:
        words += ["--prefix", name]
    return shlex.join([*words, "-o", path.name])


def _listed(known: Mapping[str, Iterable[object]], chosen: frozenset[object]) -> str:
    single = [name for name, members in known.items() if len(set(members)) == 1]
    return ",".join(name for name in single if set(known[name]) <= chosen)


def _write(files: Mapping[Path, str]) -> None:
    """Write all of ``files``, or none."""
    unfinished = {path: path.with_name(f"{path.name}.{os.getpid()}.new") for path in files}
    try:
        for path, text in files.items():
            unfinished[path].write_text(text, encoding="utf-8", newline="\n")
        for path in files:
            unfinished[path].replace(path)
    except OSError as error:
        place = next(iter(files))
        raise ExportError(f"--output: {place} cannot be written: {error.strerror}") from error
    finally:
        for path in unfinished.values():
            path.unlink(missing_ok=True)
