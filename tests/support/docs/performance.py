"""Write docs/performance.md and the tables of other pages from docs/performance/*.json.

    python -m support.docs.performance

Measures nothing: the figures are those in the files, to the last digit shown; what was not measured
is said so. A table stands in a page between ``<!-- figures: NAME -->`` and ``<!-- end of figures
-->``; its name is one of `TABLES`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bitlane.version import __version__

from .pages import PAGES, ROOT, name

PAGE = ROOT / "docs" / "performance.md"
PICTURE = "performance/cycles.png"

Record = Mapping[str, Any]
"""The content of a file of --json: ``kind``, ``date``, ``machine``, ``versions``, ``rows``."""

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


def page(records: Sequence[Record]) -> str:
    """Return the page in Markdown. Of several records of one kind the rows are joined."""
    text = ["# Performance", "", _HEAD, ""]
    text += _section(records, "cycles", "Clock cycles", _CYCLES, _cycles)
    if of_kind(records, "cycles"):
        text += [f"![Rate over transfer size, and where cycles went]({PICTURE})", ""]
    text += _section(records, "area", "Area and clock", _AREA, _area) + _designs(records)
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
    return text


def _designs(records: Iterable[Record]) -> list[str]:
    """Return a list of the measured designs, each with its parts."""
    rows = [row for record in of_kind(records, "area") for row in record["rows"]]
    scopes = {row["design"]: row["scope"] for row in rows}
    lines = [f"- `{design}`: {scope}." for design, scope in scopes.items()]
    return ["### Designs", "", *lines, ""] if lines else []


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
    return [own, *map(_peer_row, row["peers"])]


def _peer_row(peer: Record) -> list[str]:
    cells = ["-" if peer[x] is None else str(peer[x]) for x in ("lut4", "carry", "ff", "ram")]
    rate = number(peer["gigabytes_per_second"], 2)
    return [f"{peer['name']} (peer)", *cells, number(peer["mhz"], 1), "-", rate, "-", "-"]


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


def _placed(records: Sequence[Record]) -> list[str]:
    """Return a table of the designs that several seeds placed: cells, clock and goals."""
    rows = []
    for row in (row for record in of_kind(records, "area") for row in record["rows"]):
        if len(row["mhz_by_seed"]) == 1:
            continue
        goal = f"at most {row['most_lut4']:,} LUT4, at least {row['least_mhz']:g} MHz"
        met = "met" if row["met"] else "**missed**"
        chip = row["chip"].partition(",")[0]
        lut4, mhz = f"{row['cells']['lut4']:,}", number(row["mhz"], 1)
        rows.append([row["design"], chip, lut4, mhz, f"{goal}: {met}"])
    return table(("Core", "Chip", "LUT4", "MHz", "Goal"), rows, left=2)


_ENGINES = {
    "64 KiB NOT, with start-up": "64 KiB copy, start-up included, beats a cycle",
    "64 KiB NOT, 30 cycles of latency": "the same, on a memory with 30 cycles of latency",
    "idle write cycles between 64 B NOT, aligned": "idle cycles between commands of 64 bytes",
    "64 B NOT, doorbell to last response (N = 16)": "**a single command of 64 bytes**, cycles",
}
"""Works of a DMA engine, and how the page of comparisons names them."""

_OF = {0.999: "`aximm2s` into `axis2mm`", 0.938: "`axi_dma`", 1: "`axi_cdma`", 22: "`axi_cdma`"}
"""The core that reached a recorded figure of a peer."""


def _peers(records: Sequence[Record]) -> list[str]:
    """Return a table of the engine of 32 bits beside the best other one in each work."""
    rows = []
    for row in (row for record in of_kind(records, "cycles") for row in record["rows"]):
        if row["width"] == 32 and row["work"] in _ENGINES:
            digits = 0 if row["unit"] == "cycles" else 3
            peer, own = (number(row[kind], digits) for kind in ("peer", "measured"))
            rows.append([_ENGINES[row["work"]], f"{peer}, {_OF[row['peer']]}", own])
    for row in (row for record in of_kind(records, "area") for row in record["rows"]):
        if row["design"] == "copy-32":
            least = min(row["peers"], key=lambda peer: peer["lut4"])
            cells = f"{least['lut4']} and {least['mhz']}, `{least['name'].partition(',')[0]}`"
            own = f"{row['cells']['lut4']} and {number(row['mhz'], 1)}"
            rows.append(["LUT4 and MHz of an ECP5, any byte to any byte", cells, own])
    return table(("Work, 32 bits", "Best other core", "bitlane"), rows)


def _simulators(records: Sequence[Record]) -> list[str]:
    """Return a table of ratios of speed, which hold on other computers, too."""
    [verilator], [others] = of_kind(records, "verilator"), of_kind(records, "simulators")
    built = verilator["rows"]
    rows = [
        (
            "Verilator",
            number(built["compiled to Verilator, no stalls"], 2),
            number(built["Verilator, seconds to build"], 0),
            verilator,
        ),
        ("Amaranth's simulator", f"{others['rows']['compiled to pysim']:,.0f}", "none", others),
    ]
    origin = [f"{x['date']}, bitlane {x['versions']['bitlane']}" for *_, x in rows]
    heads = ("Simulator", "`cppsim.Model` is faster by", "Seconds to build", "Measured")
    cells = [[*row[:3], at] for row, at in zip(rows, origin, strict=True)]
    own = ["`cppsim.Model`", "1", number(built["compiled, seconds to build"], 0), origin[0]]
    return table(heads, [own, *cells])


TABLES: dict[str, Callable[[Sequence[Record]], list[str]]] = {
    "area": _placed,
    "cycles": summary,
    "peers": _peers,
    "simulators": _simulators,
}
"""Tables by the names that the pages have for them."""


_MARKED = re.compile(
    r"(?<=<!-- figures: )(\w+)( -->\n).*?(?=<!-- end of figures -->)", flags=re.DOTALL
)


def records() -> list[Record]:
    """Return the contents of all files of measured performance."""
    files = sorted((ROOT / "docs" / "performance").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def filled(text: str, measured: Sequence[Record]) -> str:
    """Return the page ``text`` with all its tables written anew."""

    def lines(mark: re.Match[str]) -> str:
        return mark[1] + mark[2] + "\n".join(["", *TABLES[mark[1]](measured)]) + "\n"

    return _MARKED.sub(lines, text)


def main() -> None:
    """Write the page and the tables of the others."""
    measured = records()
    PAGE.write_text(page(measured), encoding="utf-8")
    for each in PAGES:
        text = each.read_text(encoding="utf-8")
        if (new := filled(text, measured)) != text:
            each.write_text(new, encoding="utf-8")
            print(f"wrote the tables of {name(each)}")


if __name__ == "__main__":
    main()
