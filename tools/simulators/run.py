"""Measure simulators in seconds of this machine: the evaluators, Verilator, many systems at once.

    python -m simulators.run {evaluators,verilator,batch} --json FILE

prints the figures, and writes them to FILE for `make performance`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from bitlane.command_line.cli import DONE, UNUSABLE
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane.terminal import show
from bitlane_sim.bench import BenchError
from bitlane_sim.builds import find_compiler
from bitlane_sim.campaigns.folder import make_circuit
from bitlane_sim.figures import record, write_json
from cppsim.errors import SimulationError
from simulators import batch
from simulators.speeds import measure_beside, measure_simulators, measure_verilator
from simulators.xors import RAM_BYTES


def _progress(text: str) -> None:
    show(f"{text} ...")


def _evaluators(arguments: argparse.Namespace) -> None:
    figures = measure_simulators(_progress)
    title = "Evaluators on the full 64-bit system (this machine, now; only ratios travel)"
    _report("simulators", title, figures, (), arguments.json)


def _verilator(arguments: argparse.Namespace) -> None:
    figures = measure_verilator(_progress)
    title = (
        "Fast evaluator and Verilator on the same core and memory, with the same random data\n"
        "(this machine, now; only ratios travel)"
    )
    _report("verilator", title, figures, ("verilator",), arguments.json)


def _batch(arguments: argparse.Namespace) -> None:
    _progress("the circuit")
    circuit = make_circuit(batch.OPTIONS, RAM_BYTES)
    show("")
    if arguments.export:
        circuit.write(arguments.export)
        print(f"Measure it with: python -m simulators.batch {arguments.export}")
        return
    print(
        "The full 64-bit system, all with one timing, or half of all handshakes stalled with a seed"
        " for each;\nmillion cycles a second of all instances together. Every byte of each is"
        " compared with NumPy's.\n"
    )
    measured = chain(
        measure_beside(circuit.configuration, _progress),
        batch.measure_batches(circuit, arguments.backend, arguments.instances, _progress),
    )
    batch.report(measured, arguments.json, _compiler())


def _compiler() -> dict[str, str]:
    """Return the version of the C++ compiler, for `record`."""
    return {"compiler": find_compiler().version.splitlines()[0]}


def _report(
    kind: str,
    title: str,
    figures: Mapping[str, float],
    packages: tuple[str, ...],
    file: Path | None,
) -> None:
    show("")
    print(title)
    for name, value in figures.items():
        print(f"  {name:36} {value:>14,.2f}" if value < 1000 else f"  {name:36} {value:>14,.0f}")
    if file:
        write_json(file, record(kind, dict(figures), packages, _compiler()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line ``arguments`` name, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m simulators.run", description=__doc__)
    modes = parser.add_subparsers(required=True, metavar="WHAT")
    for mode, measure, text in (
        ("evaluators", _evaluators, "the compiled evaluator and Amaranth's simulator"),
        ("verilator", _verilator, "the compiled evaluator beside Verilator, on one core"),
        ("batch", _batch, "many systems at once, beside one core and Verilator on all"),
    ):
        options = modes.add_parser(mode, help=text, description=f"Measures {text}.")
        options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
        options.set_defaults(measure=measure, export=None)
        if measure is _batch:
            batch.add_options(options)
            options.add_argument(
                "--export",
                type=Path,
                metavar="FOLDER",
                help="measure nothing, but write the circuit there for a machine without Amaranth",
            )
    chosen = parser.parse_args(arguments)
    try:
        if chosen.export and chosen.json:
            raise BenchError("--json: --export measures nothing")
        if chosen.json:
            expect_writable("--json", chosen.json)
        chosen.measure(chosen)
    except (BitlaneError, SimulationError) as error:
        print(f"simulators.run: {error}", file=sys.stderr)
        return UNUSABLE
    return DONE


if __name__ == "__main__":
    sys.exit(main())
