"""`bitlane export`: write the AXI4 core as Verilog, with a page of its registers. Runs nothing.

Its words and help do without Amaranth, which is imported when something is exported.
"""

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from bitlane.command_line.cli import DONE, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.sizes import parse_size
from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Lane, Mode, Op
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import NAMED
from cppsim.netlist.tidy import trim

from ..evaluator import SimulationError
from .names import is_identifier
from .ports import conventional_ports
from .verilog import verilog

__all__ = ["ExportError", "add_export", "export"]

_Member = TypeVar("_Member")

_ALL = "all"
_OPS = {op.name.lower(): {op} for op in Op} | {"logic": LOGIC_OPS, "shift": SHIFT_OPS}
_LANES = {str(lane.bits): {lane} for lane in Lane}
_MODES = {mode.name.lower(): {mode} for mode in Mode}

_USUAL = "full"
"""The configuration that the options change, unless another is named."""


def _listed(known: Mapping[str, Iterable[object]]) -> Callable[[frozenset[object]], str]:
    def show(chosen: frozenset[object]) -> str:
        single = [name for name, members in known.items() if len(set(members)) == 1]
        return ",".join(name for name in single if set(known[name]) <= chosen)

    return show


_FIELDS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "--data-width": ("data_width", str),
    "--ports": ("read_ports", str),
    "--ops": ("ops", _listed(_OPS)),
    "--lanes": ("lanes", _listed(_LANES)),
    "--modes": ("modes", _listed(_MODES)),
    "--loops": ("loops", str),
    "--memory-base": ("memory_base", hex),
    "--memory-bytes": ("memory_bytes", str),
}
"""Options that take a value: the configuration's field, and how the value is written."""

_OTHER_NAME = """\
// The module was given a name of its own with --prefix.
/* verilator lint_off DECLFILENAME */
"""


_AROUND = "circuit."
"""What the names of all that is in a `Circuit` begin with."""


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
        "--configuration",
        choices=list(NAMED),
        default=_USUAL,
        metavar="NAME",
        help=f"what the options below change: {', '.join(NAMED)} (default %(default)s)",
    )

    def add(option: str, parse: Callable[[str], object], meaning: str, metavar: str = "N") -> None:
        field = _FIELDS[option][0]
        parser.add_argument(option, dest=field, type=parse, metavar=metavar, help=meaning)

    def add_list(option: str, known: Mapping[str, Iterable[object]], meaning: str) -> None:
        text = f"{meaning}, separated by commas: {', '.join([*known, _ALL])}"
        add(option, _list(known), text, "LIST")

    add("--data-width", whole_number, "bits in a beat: 32, 64, 128, 256 or 512")
    add("--ports", whole_number, "read managers: 2, or 1 that A and B share")
    add_list("--ops", _OPS, "operations")
    add_list("--lanes", _LANES, "lanes of shifts, counts, and strided or repeated runs")
    add_list("--modes", _MODES, "ways to walk a run; dense is always there")
    add("--loops", whole_number, "nested loops of a command, 1 to 6")
    add("--memory-base", _size, "first byte that commands may touch")
    add("--memory-bytes", _size, "bytes from there on, with KiB, MiB or GiB if you like")
    parser.add_argument(
        "--block-ram",
        action="store_const",
        const=True,
        help="FIFOs in block RAM (iCE40), not in LUT RAM",
    )
    parser.add_argument(
        "--id-width",
        type=whole_number,
        default=1,
        metavar="N",
        help="bits of the managers' identifiers, which are 0 (default %(default)s)",
    )
    parser.set_defaults(run=_run, extra="sim")


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
        configuration = replace(NAMED[arguments.configuration](), **_chosen(arguments))
        text, beside = export(
            configuration,
            name,
            id_width=arguments.id_width,
            file=output.name,
            base=arguments.configuration,
        )
    except ValueError as error:
        raise ExportError(_in_options(str(error))) from error
    except SimulationError as error:
        raise ExportError(str(error)) from error
    _write({output: text, output.with_suffix(".md"): beside})
    print(f"wrote {output} and {output.with_suffix('.md')}")
    return DONE


def _chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fields of the configuration that options give, with their values."""
    fields = [field for field, _ in _FIELDS.values()] + ["block_ram"]
    chosen = {field: getattr(arguments, field) for field in fields}
    if chosen["modes"] is not None:
        chosen["modes"] |= {Mode.DENSE}
    return {field: value for field, value in chosen.items() if value is not None}


def _in_options(complaint: str) -> str:
    """``complaint`` of a configuration, which begins with names of it, with the options' names."""
    names, colon, rest = complaint.partition(":")
    options = {field: option for option, (field, _) in _FIELDS.items()}
    said = [options.get(name, f"--{name.replace('_', '-')}") for name in names.split(", ")]
    return ", ".join(said) + colon + rest


def export(
    configuration: Configuration,
    name: str,
    *,
    id_width: int = 1,
    file: str = "",
    base: str = _USUAL,
) -> tuple[str, str]:
    """The module ``name`` as Verilog for ``file`` (default: NAME.v), and its page as Markdown.

    ``base``: the named configuration from which the command that both show starts. Raises
    ``ValueError`` for a bad ``id_width``.
    """
    from bitlane_rtl.core import Core

    from ..circuit import Circuit
    from .document import header, page

    core = Core(configuration)
    design = Circuit(core).design
    design.notices = []
    design.names = {x.removeprefix(_AROUND): bits for x, bits in design.names.items()}
    design.memories = [replace(x, name=x.name.removeprefix(_AROUND)) for x in design.memories]
    trim(design)
    flat: Any = core.signature.flatten(core)
    order = ["__".join(map(str, path)) for path, _, _ in flat]
    design.ports = conventional_ports(design, order, id_width)
    path = Path(file or f"{name}.v")
    command = _command(configuration, name, id_width, path, base)
    text = header(configuration, name, command, path.with_suffix(".md").name)
    text += "\n" + verilog(design, name)
    if path.stem != name:
        text = _OTHER_NAME + text
    return text, page(configuration, name, command, design.ports)


def _command(configuration: Configuration, name: str, id_width: int, path: Path, base: str) -> str:
    """The command that writes the module ``name`` to ``path`` again."""
    words = ["bitlane", "export"]
    if base != _USUAL:
        words += ["--configuration", base]
    usual = NAMED[base]()
    for option, (field, show) in _FIELDS.items():
        value = getattr(configuration, field)
        if value != getattr(usual, field):
            words += [option, show(value)]
    if configuration.block_ram:
        words.append("--block-ram")
    if id_width != 1:
        words += ["--id-width", str(id_width)]
    if name != path.stem:
        words += ["--prefix", name]
    return shlex.join([*words, "-o", path.name])


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
