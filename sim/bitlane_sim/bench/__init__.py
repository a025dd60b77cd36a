"""The subcommand `bench`: what to measure, where to print and write it. Measures nothing.

Its words and help do without Amaranth: `modes`, which need it, are imported when one is measured.
"""

import argparse
import importlib.util
from pathlib import Path

from bitlane.command_line import Group, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane.installation import how_to_install


class BenchError(BitlaneError):
    """The bench could not be run."""


_WIDTHS = (32, 64, 128)
_EVALUATORS = ("compiled", "pysim")
_OPTIONS = {
    "cycles": {"width", "evaluator", "plot", "check"},
    "search": {"evaluator", "check", "units", "mhz"},
}
"""Options of each mode, beside --json."""
_UNITS, _MHZ = 32, 100
"""An array that routes on an ECP5-85F, and a clock that it reaches there."""

_PICTURES = (".png", ".svg", ".pdf")


def add_bench(subparsers: Subparsers) -> None:
    """Add the subcommand `bench`."""
    parser = subparsers.add_parser(
        "bench",
        help="measure the circuit in clock cycles",
        description="Measures the circuit against its speed contract, in clock cycles of the"
        " simulated circuit, or the search array.",
        epilog="exit codes: 0 measured (a row that misses its goal is shown as such), 1 with"
        " --check: a row missed its goal, 2 bad input or a missing tool",
    )
    _add_cycles(parser.add_argument_group("cycles"))
    _add_search(parser.add_argument_group("search"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.set_defaults(run=_run, group=Group.MEASURE, extra="sim")


def _add_cycles(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--width",
        type=whole_number,
        action="append",
        choices=_WIDTHS,
        metavar="BITS",
        help="bits in a beat: 32, 64 or 128; may be given more than once (default: all three)",
    )
    group.add_argument(
        "--evaluator",
        choices=_EVALUATORS,
        help="what runs the circuit (default: compiled if there is a C++ compiler)",
    )
    group.add_argument(
        "--plot",
        type=Path,
        metavar="FILE.png",
        help="draw rates over transfer sizes, and where cycles went; needs matplotlib",
    )
    group.add_argument("--check", action="store_true", help="exit with 1 if a row misses its goal")


def _add_search(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--search",
        action="store_true",
        help="measure the search array, in cycles, and in comparisons a second beside FAISS and"
        " NumPy",
    )
    group.add_argument(
        "--units",
        type=whole_number,
        metavar="N",
        help=f"rows that are compared at a time (default: {_UNITS})",
    )
    group.add_argument(
        "--mhz",
        type=whole_number,
        metavar="N",
        help=f"the array's clock, as `bitlane area` or a board's build says (default: {_MHZ})",
    )


def _run(arguments: argparse.Namespace) -> int:
    mode, other = ("search", "cycles") if arguments.search else ("cycles", "search")
    for option in sorted(_OPTIONS[other] - _OPTIONS[mode]):
        if getattr(arguments, option) is not None:
            with_ = "without" if arguments.search else "with"
            raise BenchError(f"--{option}: goes only {with_} --search")
    for option in ("json", "plot"):
        if getattr(arguments, option):
            expect_writable(f"--{option}", getattr(arguments, option))
    if arguments.plot:
        if arguments.plot.suffix not in _PICTURES:
            raise BenchError(f"--plot: {arguments.plot} ends in none of {', '.join(_PICTURES)}")
        if importlib.util.find_spec("matplotlib") is None:
            raise BenchError(f"--plot: matplotlib is not installed: {how_to_install('plot')}")
    arguments.units = _UNITS if arguments.units is None else arguments.units
    arguments.mhz = _MHZ if arguments.mhz is None else arguments.mhz
    if arguments.mhz < 1:
        raise BenchError(f"--mhz: {arguments.mhz}; expected 1 or more")
    arguments.width = sorted(set(arguments.width or _WIDTHS))
    from cppsim.errors import SimulationError

    from .modes import MODES

    try:
        return MODES[mode](arguments)
    except SimulationError as error:
        raise BenchError(str(error)) from error
