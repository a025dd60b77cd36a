"""Measure simulators in seconds of this machine: the evaluators, Verilator, many systems at once.

    python -m simulators.run {evaluators,verilator,batch} --json FILE

prints the figures, and writes them to FILE for `make performance`. ``batch --folder FOLDER`` needs
no Amaranth: it measures the circuit that ``batch --export FOLDER`` has written.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from bitlane.command_line import DONE, UNUSABLE
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane.terminal import show
from bitlane_sim.bench import BenchError
from bitlane_sim.campaigns import make_circuit, open_circuit
from bitlane_sim.campaigns.command import count
from bitlane_sim.figures import record, write_json
from cppsim.errors import SimulationError
from simulators import batch
from simulators.batch import RAM_BYTES


def _progress(text: str) -> None:
    show(f"{text} ...")


def _evaluators(arguments: argparse.Namespace) -> None:
    from simulators.speeds import measure_simulators

    figures = measure_simulators(_progress)
    title = "Evaluators on the full 64-bit system (this machine, now; only ratios travel)"
    _report("simulators", title, figures, (), arguments.json)


def _verilator(arguments: argparse.Namespace) -> None:
    from simulators.speeds import measure_verilator

    figures = measure_verilator(_progress)
    title = (
        "Fast evaluator and Verilator on the same core and memory, with the same random data\n"
        "(this machine, now; only ratios travel)"
    )
    _report("verilator", title, figures, ("verilator",), arguments.json)


def _batch(arguments: argparse.Namespace) -> None:
    measure = partial(
        batch.measure_batches, backend=arguments.backend, instances=arguments.instances
    )
    if arguments.folder:
        circuit = open_circuit(arguments.folder)
        batch.report(measure(circuit, progress=lambda _: None), arguments.json, {})
        return
    from simulators.speeds import measure_beside

    _progress("the circuit")
    circuit = make_circuit(batch.OPTIONS, RAM_BYTES)
    show("")
    if arguments.export:
        circuit.write(arguments.export)
        print(f"Measure it with: python -m simulators.run batch --folder {arguments.export}")
        return
    print(
        "The full 64-bit system, all with one timing, or half of all handshakes stalled with a seed"
        " for each;\nmillion cycles a second of all instances together. Every byte of each is"
        " compared with NumPy's.\n"
    )
    beside = measure_beside(circuit.configuration, _progress)
    measured = chain(beside, measure(circuit, progress=_progress))
    batch.report(measured, arguments.json, _compiler())


def _compiler() -> dict[str, str]:
    """Return the version of the C++ compiler, for `record`."""
    from bitlane_sim.builds import find_compiler

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


def _add_options(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--backend",
        choices=("auto", "threads", "cuda"),
        default="auto",
        help="what runs them (default: auto, threads and a GPU if CuPy finds one)",
    )
    options.add_argument(
        "--instances",
        type=count,
        metavar="N",
        help="systems at once (default: 512 a core, 65,536 on a GPU)",
    )
    there = options.add_mutually_exclusive_group()
    there.add_argument("--folder", type=Path, help="measure the circuit that --export wrote there")
    there.add_argument(
        "--export", type=Path, metavar="FOLDER", help="measure nothing, but write the circuit there"
    )


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
            _add_options(options)
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
