"""The subcommand `bench`: what to measure, where to print and write it. Measures nothing.

Its words and help do without Amaranth: `modes`, which need it, are imported when one is measured.
"""

import argparse
import importlib.util
from pathlib import Path

from bitlane.command_line.cli import Group, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane.installation import how_to_install


class BenchError(BitlaneError):
    """The bench could not be run."""


_WIDTHS = (32, 64, 128)
_EVALUATORS = ("compiled", "pysim")
_OPTIONS = {
    "cycles": {"width", "evaluator", "plot", "check"},
    "simulators": set[str](),
    "verilator": set[str](),
    "search": {"evaluator", "check", "units", "mhz"},
    "batch": {"instances", "backend", "export"},
}
"""Options of each mode, beside --json."""
_UNITS, _MHZ = 32, 100
"""An array that routes on an ECP5-85F, and a clock that it reaches there."""

_BACKENDS = ("auto", "threads", "cuda")

_PICTURES = (".png", ".svg", ".pdf")


def add_bench(subparsers: Subparsers) -> None:
    """Add the subcommand `bench`."""
    parser = subparsers.add_parser(
        "bench",
        help="measure the circuit in clock cycles, or the simulators",
        description="Measures the circuit against its speed contract, in clock cycles of the"
        " simulated circuit, or one of the other things below.",
        epilog="exit codes: 0 measured (a row that misses its goal is shown as such), 1 with"
        " --check: a row missed its goal, 2 bad input or a missing tool",
    )
    modes = parser.add_argument_group(
        "what to measure instead of cycles"
    ).add_mutually_exclusive_group()
    modes.add_argument(
        "--simulators",
        action="store_true",
        help="the evaluators, in seconds; needs a C++ compiler",
    )
    modes.add_argument(
        "--verilator",
        action="store_true",
        help="the fast evaluator beside Verilator, on the same exported core, in seconds",
    )
    modes.add_argument(
        "--search",
        action="store_true",
        help="the search array, in cycles, and in comparisons a second beside FAISS and NumPy",
    )
    modes.add_argument(
        "--batch",
        action="store_true",
        help="many systems at once, on threads and a GPU, beside one core and Verilator on all",
    )

    _add_cycles(parser.add_argument_group("cycles"))
    _add_search(parser.add_argument_group("search"))
    _add_batch(parser.add_argument_group("batch"))
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


def _add_batch(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--instances",
        type=whole_number,
        metavar="N",
        help="systems at once (default: 512 a core, 65,536 on a GPU)",
    )
    group.add_argument(
        "--backend",
        choices=_BACKENDS,
        help="what runs them (default: auto, threads and a GPU if CuPy finds one)",
    )
    group.add_argument(
        "--export",
        type=Path,
        metavar="FOLDER",
        help="measure nothing, but write the circuit there for a machine without Amaranth",
    )


def _run(arguments: argparse.Namespace) -> int:
    mode = next((name for name in _OPTIONS if getattr(arguments, name, False)), "cycles")
    for option in sorted(set[str]().union(*_OPTIONS.values()) - _OPTIONS[mode]):
        if getattr(arguments, option) is not None and getattr(arguments, option) is not False:
            known = [name for name, options in _OPTIONS.items() if option in options]
            with_ = f"without --{mode}" if "cycles" in known else f"with --{known[0]}"
            raise BenchError(f"--{option}: goes only {with_}")
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
    if arguments.instances is not None and arguments.instances < 1:
        raise BenchError(f"--instances: {arguments.instances}; expected 1 or more")
    if arguments.export and arguments.json:
        raise BenchError("--json: --export measures nothing")
    arguments.width = sorted(set(arguments.width or _WIDTHS))
    from cppsim.errors import SimulationError

    from .modes import MODES

    try:
        return MODES[mode](arguments)
    except SimulationError as error:
        raise BenchError(str(error)) from error
