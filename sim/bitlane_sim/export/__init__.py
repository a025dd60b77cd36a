"""`bitlane export`: write a core as Verilog, alone or with all that an integrator needs.

Runs nothing. Its words and help do without Amaranth, which is imported when something is exported.
"""

import argparse
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from bitlane.command_line import DONE, Group, Subparsers, whole_number
from bitlane.files import parse_size
from bitlane_rtl.abi import BIT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Mode
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.configurations import NAMED

from ..search_option import SEARCH_FORM, parse_search, search_text
from .destination import Destination, ExportError, Style, destination
from .folder import integrator_files, reset_values
from .start import start_files
from .stream_core import add_stream_options, expect_no_stream, export_stream, stream_files
from .wishbone import USUAL_IN_FLIGHT, add_bus_options, beats_in_flight, export_wishbone

__all__ = [
    "Destination",
    "add_export",
    "export",
    "export_stream",
    "export_wishbone",
    "integrator_files",
    "reset_values",
]

_Member = TypeVar("_Member")

_ALL = "all"
_OPS = {op.name.lower(): {op} for op in sorted(BIT_OPS)} | {"logic": LOGIC_OPS, "shift": SHIFT_OPS}
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
    "--search": ("search", search_text),
    "--memory-base": ("memory_base", hex),
    "--memory-bytes": ("memory_bytes", str),
}
"""Options that take a value: the configuration's field, and how the value is written."""


def add_export(subparsers: Subparsers) -> None:
    """Add the subcommand `export`."""
    parser = subparsers.add_parser(
        "export",
        help="write the core as Verilog for other systems, on AXI4 or Wishbone",
        description="Write the core on AXI4 or Wishbone, or with --stream the bit unit alone, as"
        " plain Verilog-2005, and its ports, registers and command record as Markdown beside it;"
        " into a folder with a driver in C, C headers, SystemRDL and a core file of FuseSoC, too."
        " The same options give the same bytes.",
    )
    _add_destination(parser)
    _add_configuration(parser)
    add_bus_options(parser)
    add_stream_options(parser)
    parser.set_defaults(run=_run, group=Group.USE, extra="sim")


def _add_destination(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE.v",
        help="where the module goes; the page goes to FILE.md",
    )
    where.add_argument(
        "--folder",
        type=Path,
        metavar="FOLDER",
        help="where the module, its page and everything else goes; made if it is not there",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace FILE.v and FILE.md, or files in a FOLDER that is not empty; other files stay",
    )
    parser.add_argument(
        "--prefix",
        metavar="NAME",
        help="name of the module (default: FILE without its ending; in a FOLDER core)",
    )
    parser.add_argument(
        "--src",
        choices=["off", "on"],
        default="off",
        help="attributes that name the lines of the circuit in Python (default %(default)s)",
    )
    parser.add_argument("--flat", action="store_true", help="one module, without a hierarchy")


def _add_configuration(parser: argparse.ArgumentParser) -> None:
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

    add("--data-width", whole_number, "bits in a beat: 32, 64 or 128; with --stream also 8 or 16")
    add("--ports", whole_number, "read managers: 2, or 1 that A and B share")
    add_list("--ops", _OPS, "operations")
    add_list("--lanes", _LANES, "lanes of shifts, counts, and strided or repeated runs")
    add_list("--modes", _MODES, "ways to walk a run; dense is always there")
    add("--loops", whole_number, "nested loops of a command, 1 to 6")
    add("--search", _search, "a search array; powers of two but for UNITS", SEARCH_FORM)
    add("--memory-base", _size, "first byte that commands may touch")
    add("--memory-bytes", _size, "bytes from there on, with KiB, MiB or GiB if you like")
    parser.add_argument(
        "--block-ram",
        action="store_const",
        const=True,
        help="FIFOs in block RAM (iCE40), not in LUT RAM",
    )
    parser.add_argument(
        "--counters",
        action=argparse.BooleanOptionalAction,
        help="counters of cycles, beats and stalls",
    )
    parser.add_argument(
        "--id-width",
        type=whole_number,
        default=1,
        metavar="N",
        help="bits of the managers' identifiers, which are 0 (default %(default)s)",
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
            f"{text!r} is not a number of bytes; expected one like 4096, 0x1000, 64KiB, 1GiB"
        ) from None


def _search(text: str) -> Search:
    try:
        return parse_search(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}; expected {SEARCH_FORM}") from None


def _run(arguments: argparse.Namespace) -> int:
    from cppsim.errors import SimulationError

    style = Style(sources=arguments.src == "on", flat=arguments.flat)
    to = destination(arguments.output, arguments.folder, arguments.prefix, force=arguments.force)
    to = replace(to, style=style)
    if arguments.stream:
        return _run_stream(arguments, to)
    expect_no_stream(arguments)
    in_flight = beats_in_flight(arguments)
    base = arguments.configuration
    try:
        chosen = _chosen(arguments)
        configuration = replace(_named(base, in_flight), **chosen)
        _expect_built(configuration, chosen)
        command = _command(configuration, arguments.id_width, to, base, in_flight)
        if in_flight is None:
            text, page = export(
                configuration, to.name, id_width=arguments.id_width, to=to, base=base
            )
        else:
            text, page = export_wishbone(configuration, in_flight, command, to)
    except ValueError as error:
        raise ExportError(_in_options(str(error))) from error
    except SimulationError as error:
        raise ExportError(str(error)) from error
    files = {to.module.name: text, to.page.name: page}
    if to.folder is not None:
        bus = "AXI4" if in_flight is None else "Wishbone"
        files |= integrator_files(configuration, to.name, command, bus)
        files |= start_files(to.name, text, bus)
    to.write(files)
    if to.folder is None:
        print(f"wrote {to.module} and {to.page}")
    else:
        print(f"wrote {to.folder}: {', '.join(files)}")
    return DONE


def _run_stream(arguments: argparse.Namespace, to: Destination) -> int:
    from cppsim.errors import SimulationError

    try:
        text, page = stream_files(arguments, to)
    except ValueError as error:
        raise ExportError(_in_options(str(error))) from error
    except SimulationError as error:
        raise ExportError(str(error)) from error
    to.write({to.module.name: text, to.page.name: page})
    print(f"wrote {to.module} and {to.page}")
    return DONE


def _named(name: str, in_flight: int | None) -> Configuration:
    """The named configuration; on Wishbone, which ``in_flight`` is for, with one read port."""
    configuration = NAMED[name]()
    return configuration if in_flight is None else replace(configuration, read_ports=1)


def _chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fields of the configuration that options give, with their values."""
    fields = [field for field, _ in _FIELDS.values()] + ["block_ram", "counters"]
    chosen = {field: getattr(arguments, field) for field in fields}
    if chosen["modes"] is not None:
        chosen["modes"] |= {Mode.DENSE}
    return {field: value for field, value in chosen.items() if value is not None}


def _expect_built(configuration: Configuration, chosen: Mapping[str, Any]) -> None:
    """Raise ``ExportError`` if ``configuration`` is built without something that was chosen."""
    lost = chosen.get("modes", frozenset()) - configuration.modes
    if lost:
        names = ", ".join(mode.name.lower() for mode in lost)
        rest = ",".join(mode.name.lower() for mode in sorted(configuration.modes))
        raise ExportError(
            f"--modes: no operation of --ops has {names}; expected --modes {rest}, or --ops with"
            " one that counts"
        )
    if chosen.get("read_ports") == 2 and not configuration.two_ports:
        raise ExportError(
            "--ports: 2, but no operation of --ops reads B; expected --ports 1, or --ops with one"
            " of two operands"
        )


def _in_options(complaint: str) -> str:
    """``complaint`` of a configuration, which begins with names of it, with the options' names."""
    names, colon, rest = complaint.partition(":")
    options = {field: option for option, (field, _) in _FIELDS.items()} | {"reduces": "--reduce"}
    rest = rest.replace("address_width = ", "")  # no option
    said = [options.get(name, f"--{name.replace('_', '-')}") for name in names.split(", ")]
    return ", ".join(said) + colon + rest


def export(
    configuration: Configuration,
    name: str,
    *,
    id_width: int = 1,
    to: Destination | None = None,
    base: str = _USUAL,
) -> tuple[str, str]:
    """Return the core as Verilog with the top module ``name``, and its page as Markdown.

    ``to`` is the destination that both mention (default: NAME.v), ``base`` the named configuration
    that the command in both starts from. Raises ``ValueError`` for a bad ``id_width``, and as
    `verilog` does.
    """
    from bitlane_rtl.core import Core

    from .backend import conventional_ports, verilog
    from .document import comments, header, page

    core = Core(configuration)
    ports = conventional_ports(core, id_width)
    to = to or Destination(name, Path(f"{name}.v"))
    command = _command(configuration, id_width, to, base)
    module = verilog(core, name, ports, comments(ports), to.style)
    text = header(configuration, name, command, to.page.name) + "\n" + module
    return text, page(configuration, name, command, ports)


def _command(
    configuration: Configuration,
    id_width: int,
    to: Destination,
    base: str,
    in_flight: int | None = None,
) -> str:
    """The command that writes the same ``to`` the same place again, see `beats_in_flight`."""
    words = ["bitlane", "export"]
    if base != _USUAL:
        words += ["--configuration", base]
    usual = _named(base, in_flight)
    for option, (field, show) in _FIELDS.items():
        value = getattr(configuration, field)
        if value != getattr(usual, field):
            words += [option, show(value)]
    if configuration.block_ram:
        words.append("--block-ram")
    if configuration.counters != usual.counters:
        words.append("--counters" if configuration.counters else "--no-counters")
    if id_width != 1:
        words += ["--id-width", str(id_width)]
    if in_flight is not None:
        words += ["--bus", "wishbone"]
    if in_flight not in (None, USUAL_IN_FLIGHT):
        words += ["--in-flight", str(in_flight)]
    return shlex.join([*words, *to.words()])
