"""Write the performance page from files of measured figures. Measures nothing.

    python -m support.docs.performance cycles.json area.json -o docs/performance.md

The figures are those in the files, to the last digit shown; what was not measured is said so.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bitlane.command_line.cli import DONE, UNUSABLE
from bitlane.files import expect_writable
from bitlane.version import __version__
from bitlane_sim.bench import BenchError
from bitlane_sim.figures import replace

Record = Mapping[str, Any]
"""The content of a file of --json: ``kind``, ``date``, ``machine``, ``versions``, ``rows``."""

_KINDS = ("cycles", "area", "simulators", "verilator", "batch", "host")

_COMMANDS = {
    "cycles": "bitlane bench --plot FILE.png --json FILE",
    "area": "bitlane area --json FILE",
    "simulators": "python -m simulators.run evaluators --json FILE",
    "verilator": "python -m simulators.run verilator --json FILE",
    "batch": "python -m simulators.run batch --json FILE",
    "host": "pytest tools/benchmarks --benchmark-json FILE",
}

_HEAD = """<!-- Written by `make performance` from docs/performance/*.json, which `make figures`
measures. Do not edit. -->

Nothing here was run on hardware: cycles are those of the simulated circuit, areas and clocks those
of the place-and-route tools. Sections of an older version of bitlane are marked."""

_SUMMARY = (
    "64 KiB XOR, with start-up",
    "64 B NOT, doorbell to last response (N = 8)",
    "256 rows of 64 B at odd addresses",
    "256 KiB XOR on SDRAM, all three streams, with refresh",
)
"""The rows of the table in README."""

_CYCLES = """Simulated on a memory that takes every request and beat at once and answers in the next
cycle (or as said), with bursts of 16 beats. *bound*: what the buses allow. Behind a slash: the best
result recorded for another open core, of a copy, because none of them computes. **Bold** figures
miss their goal; `bitlane bench` prints the goals."""

_AREA = """Synthesised by Yosys, placed and routed by nextpnr, out of context: all inputs come from
one shift register and all outputs go to flip-flops, which do not count. MHz is the median of the
seeds; GB/s is width x MHz / 8. The peers' figures were taken by the same method; their features
differ. axi_cdma has no registers, and computes nothing; `bitlane area --design copy-32-core` shows
what command ring, checks and registers add to `copy-32`. `bitlane export --configuration` writes
`copy-32-core`, `small-32`, `full-64` and `one-port-64` as `copy`, `small`, `full` and `one-port`;
`stream-N` is the [stream unit](stream.md)."""


_VERILATOR = """The full 64-bit system (engine, memory, monitor) from one netlist, behind the same
driver. Both XOR the same random bytes and have to write the same bytes in the same cycles. Cycles a
second of processor time, the best of ten rounds. Ratios hold on other computers, seconds do not."""

_SIMULATORS = """The full 64-bit system in both evaluators, which agree on every byte and cycle, and
a large XOR through the driver."""

_BATCH = """Many instances of the full 64-bit system with its memory. Each XORs 16 KiB of its own;
every byte is compared with NumPy's. *same*: one timing for all; *diverging*: half of all handshakes
stalled, with a seed for each. Million cycles a second of wall time, of all instances together."""

_HOST = """Time of a call outside the simulator, the fastest of 300 calls. The goal is 40
microseconds for `bit_xor` of two arrays of 64 bytes. A *yardstick* is a fixed piece of Python work,
for comparison with other computers. Of arrays of 64 MiB, the only new memory is the result's."""


def page(records: Sequence[Record], picture: str | None) -> str:
    """The page in Markdown; ``picture``: where its picture lies, seen from the page.

    Of several records of one kind the rows are joined, in their order.
    """
    text = ["# Performance", "", _HEAD, ""]
    text += _section(records, "cycles", "Clock cycles", _CYCLES, _cycles)
    if picture and of_kind(records, "cycles"):
        text += [f"![Rate over transfer size, and where cycles went]({picture})", ""]
    text += _section(records, "area", "Area and clock", _AREA, _area)
    title = "Fast evaluator and Verilator"
    text += _section(records, "verilator", title, _VERILATOR, _seconds)
    text += _section(records, "simulators", "Simulators", _SIMULATORS, _seconds)
    text += _section(records, "batch", "Many systems at once", _BATCH, _batch)
    text += _section(records, "host", "Time on the host", _HOST, _host)
    return "\n".join(text).rstrip() + "\n"


def of_kind(records: Iterable[Record], kind: str) -> list[Record]:
    return [record for record in records if record["kind"] == kind]


def _section(
    records: Sequence[Record],
    kind: str,
    title: str,
    about: str,
    body: Callable[[Record], list[str]],
) -> list[str]:
    """The section of a kind: ``about``, then the origin and the ``body`` of each record."""
    found = of_kind(records, kind)
    if not found:
        return [f"## {title}", "", f"Not measured here: `{_COMMANDS[kind]}`.", ""]
    text = [f"## {title}", "", about, ""]
    for record in found:
        text += [*_origin(record), *body(record)]
    return text


def _origin(record: Record) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    text = f"Measured {record['date']} on {record['machine']}; {versions}."
    if record["versions"].get("bitlane") != __version__:
        text += f" **Not measured since: this page is of bitlane {__version__}.**"
    return [text, ""]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """A table whose first ``left`` columns are text and whose others are numbers."""
    rule = ["---" if column < left else "---:" for column in range(len(heads))]
    return ["| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows)] + [""]


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _met(met: bool | None) -> str:
    return {None: "-", True: "yes", False: "**no**"}[met]


def summary(records: Sequence[Record]) -> list[str]:
    """Return the table in README: the rows of `_SUMMARY`, at 64 bits."""
    cycles = [row for record in of_kind(records, "cycles") for row in record["rows"]]
    rows = {row["work"]: row for row in cycles if row["width"] == 64}
    shown = [rows[work] for work in _SUMMARY if work in rows]
    if not shown:
        return []
    heads = ("Work, 64 bits", "Unit", "Bound", "Other core", "Measured")
    kinds = ("bound", "peer", "measured")
    cells = ([row["work"], row["unit"], *(_cycle(row, kind) for kind in kinds)] for row in shown)
    return table(heads, cells, left=2)


def _cycle(row: Record, kind: str) -> str:
    """Return a figure of ``row``: whole cycles, ratios of three digits, measured ones of four."""
    value = row[kind]
    if value is not None and row["unit"] == "cycles":
        return f"{value:g}"
    return number(value, 4 if kind == "measured" else 3)


def _cycles(record: Record) -> list[str]:
    """Return a table with a row for each work and a column for each width of the bus."""
    widths = list(dict.fromkeys(row["width"] for row in record["rows"]))
    works: dict[str, dict[int, Record]] = {}
    for row in record["rows"]:
        works.setdefault(row["work"], {})[row["width"]] = row
    rows = []
    for work, by_width in works.items():
        first = next(iter(by_width.values()))
        measured = [_beside_peer(by_width[x]) if x in by_width else "-" for x in widths]
        rows.append([work, first["unit"], _cycle(first, "bound"), *measured])
    return table(("work", "unit", "bound", *(f"{x} bits" for x in widths)), rows, left=2)


def _beside_peer(row: Record) -> str:
    """Return the measured figure and, behind a slash, the peer's; bold if the goal is missed."""
    own = _cycle(row, "measured")
    own = f"**{own}**" if row["met"] is False else own
    return own if row["peer"] is None else f"{own} / {_cycle(row, 'peer')}"


def _area(record: Record) -> list[str]:
    text: list[str] = []
    for family in dict.fromkeys(row["family"] for row in record["rows"]):
        here = [row for row in record["rows"] if row["family"] == family]
        text += [f"### {here[0]['chip']}", ""]
        text += table(
            ("design", "LUT4", "carry", "FF", "RAM", "MHz", "of seeds", "GB/s", "goal", "met"),
            (line for row in here for line in _area_rows(row)),
        )
        text += [f"- `{row['design']}`: {row['scope']}." for row in here] + [""]
    return text


def _area_rows(row: Record) -> list[list[str]]:
    name = f"`{row['design']}`"
    goals = [f"<= {row['most_lut4']} LUT4"] if row["most_lut4"] is not None else []
    goals += [f">= {row['least_mhz']:g} MHz"] if row["least_mhz"] is not None else []
    goal = ", ".join(goals) or "-"
    cells = row["cells"]
    if row["failure"] or cells is None:
        reason = row["failure"].replace("|", "\\|")
        return [[name, *["-"] * 7, goal, f"**not placed**: {reason}"]]
    ram = ", ".join(f"{count} {kind}" for kind, count in cells["ram"].items()) or "-"
    clocks = sorted(row["mhz_by_seed"].values())
    own = [name, *(str(cells[kind]) for kind in ("lut4", "carry", "ff")), ram]
    own += [number(row["mhz"], 1), f"{clocks[0]:.1f} to {clocks[-1]:.1f}"]
    own += [number(row["gigabytes_per_second"], 2), goal, _met(row["met"])]
    peers = [
        [
            f"{peer['name']} (peer)",
            str(peer["lut4"]),
            "-" if peer["carry"] is None else str(peer["carry"]),
            str(peer["ff"]),
            str(peer["ram"]),
            number(peer["mhz"], 1),
            "-",
            number(peer["gigabytes_per_second"], 2),
            "-",
            "-",
        ]
        for peer in row["peers"]
    ]
    return [own, *peers]


def _seconds(record: Record) -> list[str]:
    figures = record["rows"].items()
    rows = ([name, f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"] for name, value in figures)
    return table(("what", "figure"), rows)


def _host(record: Record) -> list[str]:
    """Return a table of calls, in both units, and one of the other figures."""
    units = ("microseconds", "yardsticks")
    figures = dict(record["rows"])
    calls = dict.fromkeys(x.rpartition(", ")[0] for x in figures if x.endswith(units))
    rows = [[call, *(number(figures.pop(f"{call}, {x}"), 2) for x in units)] for call in calls]
    return table(("call", *units), rows) + _seconds({"rows": figures})


def _batch(record: Record) -> list[str]:
    rows = map(_batch_row, record["rows"])
    return table(("what", "instances", "same", "diverging", "note"), rows)


def _batch_row(row: Record) -> list[str]:
    instances = f"{row['instances']:,}" if row["instances"] else "-"
    rates = row["rates"] or {}
    cells = [number(rates[x] / 1e6) if x in rates else "-" for x in ("same", "diverging")]
    note = row["note"] if rates else f"missing: {row['note']}"
    return [row["what"], instances, *cells, note.replace("|", "\\|")]


def _read(file: Path) -> Record:
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise BenchError(f"{file}: no JSON: {error}") from error
    if not isinstance(record, dict) or record.get("kind") not in _KINDS:
        raise BenchError(f"{file}: no file of measured figures")
    return record


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page that the command line ``arguments`` ask for, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m support.docs.performance", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="JSON", help="measured figures")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.md")
    parser.add_argument("--picture", metavar="PATH", help="a picture, seen from the page")
    namespace = parser.parse_args(arguments)
    try:
        expect_writable("--output", namespace.output)
        text = page([_read(file) for file in namespace.files], namespace.picture)
        replace(namespace.output, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))
    except BenchError as error:
        print(f"support.docs.performance: {error}", file=sys.stderr)
        return UNUSABLE
    return DONE


if __name__ == "__main__":
    sys.exit(main())
