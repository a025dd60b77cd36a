"""The subcommand `bench`: prints what is measured, and writes it as JSON. Measures nothing."""

import argparse
import json
import sys
from pathlib import Path

from bitlane.cli import Subparsers
from bitlane.errors import BitlaneError

from ..evaluator import SimulationError
from ..simulator import EVALUATORS, choose_evaluator
from .contract import Row, measure
from .simulators import measure_simulators

__all__ = ["add_bench"]

_WIDTHS = (32, 64, 128)


class BenchError(BitlaneError):
    """The bench could not be run."""


def add_bench(subparsers: Subparsers) -> None:
    """Add the subcommand `bench`."""
    parser = subparsers.add_parser(
        "bench",
        help="measure the circuit in clock cycles, or the simulators",
        description="Measures the circuit against its speed contract, in clock cycles. A row that"
        " is not met is shown as such; the exit code is 0 all the same.",
    )
    parser.add_argument(
        "--width",
        type=int,
        action="append",
        choices=_WIDTHS,
        metavar="BITS",
        help="bits in a beat: 32, 64 or 128; may be given more than once (default: 32 and 64)",
    )
    parser.add_argument(
        "--evaluator",
        choices=sorted(EVALUATORS),
        help="what runs the circuit (default: cxxrtl if there is a C++ compiler)",
    )
    parser.add_argument(
        "--simulators",
        action="store_true",
        help="measure the evaluators in seconds instead; needs a C++ compiler",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.json and not arguments.json.parent.is_dir():
        raise BenchError(f"--json: {arguments.json.parent} is no folder; make it first")
    try:
        figures = _simulators() if arguments.simulators else _contract(arguments)
    except SimulationError as error:
        raise BenchError(str(error)) from error
    if arguments.json:
        unfinished = arguments.json.with_name(arguments.json.name + ".new")
        unfinished.write_text(json.dumps(figures, indent=2) + "\n")
        unfinished.replace(arguments.json)
    return 0


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text} ...", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _contract(arguments: argparse.Namespace) -> list[dict[str, object]]:
    evaluator = arguments.evaluator or choose_evaluator()
    widths = sorted(set(arguments.width or (32, 64)))
    print(f"Cycles of the circuit, run by {evaluator}. limit: what the buses allow.\n")
    print(
        f"{'work':55} {'bits':>4}  {'unit':15} {'limit':>7} {'goal':>7} {'peer':>6}"
        f" {'measured':>9} {'ratio':>6}  met"
    )
    rows = []
    for row in measure(widths, evaluator, _progress):
        _clear()
        rows.append(row)
        print(_line(row), flush=True)
    met = sum(row.met for row in rows)
    print(f"\n{met} of {len(rows)} rows met")
    return [row.as_dict() for row in rows]


def _line(row: Row) -> str:
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
    return (
        f"{row.work:55} {row.width:4}  {row.unit:15} {_number(row, row.limit):>7}"
        f" {_number(row, row.goal):>7} {row.peer:>6} {_number(row, row.measured, 4):>9}"
        f" {ratio:>6}  {'yes' if row.met else 'NO'}"
    )


def _number(row: Row, value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if row.unit != "cycles" else f"{value:g}"


def _simulators() -> dict[str, float]:
    figures = measure_simulators(_progress)
    _clear()
    print("Simulators on the full 64-bit system (this machine, now; ratios travel, seconds do not)")
    for name, value in figures.items():
        print(f"  {name:36} {value:>14,.2f}" if value < 1000 else f"  {name:36} {value:>14,.0f}")
    return figures
