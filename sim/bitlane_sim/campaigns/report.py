"""The results of many instances: a table, a summary, the lines that replay failures, and JSON."""

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bitlane.command_line.cli import CHECK_FAILED, DONE
from bitlane.errors import BitlaneError
from bitlane.version import __version__

from .plan import Outcomes, Stage

_SHOWN = 20
"""Failures that are printed."""


def report(
    stage: Stage,
    outcomes: Outcomes,
    rows: Sequence[dict[str, object]],
    name: str,
    file: Path | None,
) -> int:
    """Print ``rows`` and failures, write both to ``file``, and return the exit code.

    Raises ``BitlaneError`` after that if the run stopped early.
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
    """Return ``rows`` below a line of their names, with numbers aligned to the right."""
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
