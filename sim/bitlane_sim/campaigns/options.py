"""What subcommands that run many instances have in common: options, the circuit, tables, figures.

Needs no Amaranth until a circuit is made.
"""

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bitlane.command_line.cli import CHECK_FAILED, DONE, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane.terminal import show
from bitlane.version import __version__
from cppsim.errors import SimulationError

if TYPE_CHECKING:
    from .folder import StandCircuit
    from .plan import CampaignPlan, Outcomes, Stage

__all__ = [
    "MOST_INSTANCES",
    "Wanted",
    "add_options",
    "count",
    "expect_fit",
    "instance_count",
    "report",
    "run",
    "stage_of",
    "table",
]

MOST_INSTANCES = 100_000_000
"""Of a run: each has a number, which takes memory, too."""

_MOST_RAM = 16 << 20
"""Bytes of RAM of an instance. On a core 512 run at once."""

_SHOWN = 20
"""Failures that are printed."""

_BACKENDS = ("auto", "threads", "cuda")
_MODELS = ("auto", "numpy", "cupy")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A circuit: ``options`` as in a simulator's URL; at least so many bytes of ``memory``.

    ``ram_bytes``: of its RAM, if that is not all of the memory.
    """

    options: str
    memory: int
    ram_bytes: int | None = None


def count(text: str) -> int:
    """The ``type`` of an option that takes a whole number from 1 on."""
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 or more")
    return number


def instance_count(text: str) -> int:
    """The ``type`` of an option that takes a number of instances, or of what each has one of."""
    number = count(text)
    if number > MOST_INSTANCES:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {MOST_INSTANCES:,} or less")
    return number


def add_options(parser: "argparse._ActionsContainer") -> None:
    """Add those that say where instances run, and on what circuit."""
    parser.add_argument(
        "--backend",
        choices=_BACKENDS,
        help="what runs the instances: all cores, or a GPU (default: a GPU where CuPy finds one)",
    )
    parser.add_argument(
        "--model", choices=_MODELS, help="what computes the right bytes (default: as the backend)"
    )
    parser.add_argument(
        "--circuit",
        type=Path,
        metavar="FOLDER",
        help="run the circuit that --export has written there, without Amaranth",
    )
    parser.add_argument(
        "--export", type=Path, metavar="FOLDER", help="write the circuit there, and run nothing"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


def stage_of(arguments: argparse.Namespace, wanted: Wanted) -> "Stage | None":
    """Where to run what ``wanted`` asks for; None if it was to be exported, and has been.

    Raises ``BitlaneError``.
    """
    from .folder import circuit_of, make_circuit, open_circuit
    from .plan import Stage

    if arguments.circuit and arguments.config is not None:
        raise BitlaneError("--config: goes only without --circuit, whose folder says what it is")
    if arguments.json:
        expect_writable("--json", arguments.json)
    try:
        if arguments.circuit:
            circuit = open_circuit(arguments.circuit)
        else:
            options = wanted.options if arguments.config is None else arguments.config
            expect_fit(circuit_of(options, wanted.ram_bytes), wanted)
            circuit = make_circuit(options, wanted.ram_bytes)
        expect_fit(circuit, wanted)
        if arguments.export:
            circuit.write(arguments.export)
            print(f"wrote {arguments.export}: run it with --circuit {arguments.export}")
            return None
        stage = Stage(circuit, arguments.backend or "auto", arguments.model or "auto")
        # What is not there is told of before anything else.
        stage.expect_ready()
    except SimulationError as error:
        raise BitlaneError(str(error)) from error
    return stage


def expect_fit(circuit: "StandCircuit", wanted: Wanted) -> None:
    """Raise ``BitlaneError`` if many instances of ``circuit`` cannot do what ``wanted`` is for."""
    configuration = circuit.configuration
    if configuration.memory_bytes < wanted.memory:
        raise BitlaneError(
            f"circuit: {circuit.options!r} has {configuration.memory_bytes:,} bytes of memory;"
            f" expected {wanted.memory:,} or more, as of {wanted.options!r}"
        )
    size = configuration.memory_bytes if wanted.ram_bytes is None else wanted.ram_bytes
    if circuit.ram_bytes != size:
        raise BitlaneError(
            f"circuit: {circuit.options!r} has {circuit.ram_bytes:,} bytes of RAM; expected"
            f" {size:,}: export it for this campaign"
        )
    if size > _MOST_RAM:
        raise BitlaneError(
            f"circuit: {circuit.options!r} has {size:,} bytes of memory in each instance; expected"
            f" {_MOST_RAM:,} at most, as of 'memory={_MOST_RAM >> 20}MiB'"
        )
    if configuration.search:
        raise BitlaneError(f"circuit: {circuit.options!r} has a search array; expected none")


def run(
    stage: "Stage", plan: "CampaignPlan", numbers: Sequence[int] | None, name: str
) -> "Outcomes":
    """Run the instances ``numbers`` of ``plan``, or all."""
    import numpy as np

    from .plan import run_plan

    chosen = np.arange(plan.instances) if numbers is None else np.asarray(numbers)
    total = len(chosen)
    try:
        return run_plan(stage, plan, chosen, lambda done: show(f"{name}: {done:,} of {total:,}"))
    finally:
        show("")


def report(
    stage: "Stage",
    outcomes: "Outcomes",
    rows: Sequence[dict[str, object]],
    name: str,
    file: Path | None,
) -> int:
    """Print ``rows`` and what failed, and write both to ``file``. Returns the exit code.

    Raises ``BitlaneError`` in the end if not all could run.
    """
    if rows:
        print(table(rows))
    rate = stage.cycles / stage.seconds if stage.seconds else 0.0
    failed = len(outcomes.failures)
    print(
        f"{outcomes.instances:,} instances, {stage.cycles:,} cycles, {failed:,} failures;"
        f" {rate:,.0f} cycles/s on {stage.backend.name}"
    )
    for line in outcomes.failures[:_SHOWN]:
        print(line)
    if failed > _SHOWN:
        print(f"... and {failed - _SHOWN:,} more, all of them in the file of --json")
    if file:
        figures = {
            "kind": name,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            "versions": {"bitlane": __version__, "Python": platform.python_version()},
            "circuit": stage.circuit.options,
            "backend": stage.backend.name,
            "instances": outcomes.instances,
            "cycles": stage.cycles,
            "seconds": round(stage.seconds, 3),
            "stopped": outcomes.stopped,
            "failures": outcomes.failures,
            "rows": list(rows),
        }
        file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if outcomes.stopped:
        raise BitlaneError(f"{name}: stopped after {outcomes.instances:,}: {outcomes.stopped}")
    return CHECK_FAILED if failed else DONE


def table(rows: Sequence[dict[str, object]]) -> str:
    """``rows`` with a line of their names above, numbers to the right."""
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    left = [isinstance(rows[0][name], str) for name in names]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in cells
    )


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
