"""Write the tables of figures in the pages from docs/performance/*.json. Measures nothing.

    python -m support.docs.figures

A table stands in a page between ``<!-- figures: NAME -->`` and ``<!-- end of figures -->``; its
name is one of `TABLES`. ``docs/performance.md`` has all figures: `support.docs.performance`.
"""

import json
import re
from collections.abc import Callable, Sequence

from .pages import PAGES, ROOT, name
from .performance import Record, number, of_kind, summary, table

_MARKED = re.compile(
    r"(?<=<!-- figures: )(\w+)( -->\n).*?(?=<!-- end of figures -->)", flags=re.DOTALL
)


def _area(records: Sequence[Record]) -> list[str]:
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
    "area": _area,
    "cycles": summary,
    "peers": _peers,
    "simulators": _simulators,
}
"""Tables by the names that the pages have for them."""


def records() -> list[Record]:
    """Return the contents of all files of measured performance."""
    files = sorted((ROOT / "docs" / "performance").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def filled(text: str, measured: Sequence[Record]) -> str:
    """Return the page ``text`` with all its tables written anew."""

    def lines(mark: re.Match[str]) -> str:
        return mark[1] + mark[2] + "\n".join(["", *TABLES[mark[1]](measured)]) + "\n"

    return _MARKED.sub(lines, text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text, records())) != text:
            page.write_text(new, encoding="utf-8")
            print(f"wrote the tables of {name(page)}")
