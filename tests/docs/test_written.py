"""Pages and figures that programs write: what they say is what the programs write today.

A figure is a number with one of `UNITS`. Pages of measurements with their own date and command, and
the pages that `support.docs.performance` writes, are left out.
"""

import doctest
import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bitlane.command_line import DONE, main
from bitlane.version import __version__
from bitlane_boards import boards
from bitlane_sim.bench.contract import Row, measure
from bitlane_sim.device import choose_evaluator
from support.docs import notebooks, recording, status
from support.docs.notebooks import NOTEBOOKS, execute
from support.docs.pages import PAGES, ROOT, blocks, name
from support.docs.performance import PAGE, filled, page, records
from support.docs.recording import drawn, lines_of
from support.docs.status import level_table, operator_table

UNITS = r"LUT4|CCU2C|[MG]B/s|[kM]?Hz|cycles a second|times as (?:fast|many|much)"

_IN_DOCS = ("architecture", "boards", "compare", "distances", "index", "litex", "models")
_IN_DOCS += ("network", "security", "troubleshooting", "verification")
READ = ["README.md", "cppsim/docs/measurements.md", *(f"docs/{page}.md" for page in _IN_DOCS)]
"""Pages whose figures are read."""

MARKED = [page for page in PAGES if "<!-- figures: " in page.read_text(encoding="utf-8")]

FILES = sorted(
    file
    for folder in ("performance", "measurements")
    for file in (ROOT / "docs" / folder).glob("*.json")
)
"""The files that `make figures`, `make status` and other commands write."""

PRINTED = ROOT / "cppsim" / "docs" / "measurements.json"
"""The lines that cppsim's benchmarks printed; ``cppsim/benchmarks/record.py`` writes it."""


def numbers(value: Any) -> Iterator[float]:
    """Yield all numbers in the content of a file."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def figures(text: str) -> list[str]:
    """Return the numbers before units in the text of a page."""
    return re.findall(
        rf"(?<![\w.,-])(\d[\d,]*(?:\.\d+)?)[- ](?:{UNITS})(?!\w)", " ".join(text.split())
    )


def is_in(figure: str, known: list[float]) -> bool:
    """Return whether a number, rounded as ``figure`` is, equals it."""
    digits = len(figure.partition(".")[2])
    return any(
        f"{number:,.{digits}f}".replace(",", "") == figure.replace(",", "") for number in known
    )


@pytest.mark.parametrize("page", READ)
def test_each_figure_of_a_page_is_in_a_file(page: str) -> None:
    known = [number for file in FILES for number in numbers(json.loads(file.read_text()))]
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    for block in blocks(path):
        text = text.replace(block.text, "")
    assert [figure for figure in figures(text) if not is_in(figure, known)] == []


def test_figures_are_found_and_compared() -> None:
    assert figures("has 5,135 LUT4, at\n125.4 MHz; 2 cores, v0.11.1 MHz") == ["5,135", "125.4"]
    assert is_in("5,135", [5135])
    assert is_in("125.4", [125.44])
    assert not is_in("125.5", [125.44])
    assert list(numbers({"a": [1, {"b": 2.5}], "c": True, "d": "3"})) == [1, 2.5]


@pytest.mark.parametrize("page", MARKED, ids=name)
def test_the_tables_of_a_page_are_what_the_program_writes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, records()) == text, "run make performance"
    names = re.findall(r"<!-- figures: (\w+) -->\n\n\| ", text)
    assert names
    assert len(names) == text.count("<!-- figures: ") == text.count("<!-- end of figures -->")


def test_the_page_shows_what_the_benchmarks_of_cppsim_printed() -> None:
    entries = json.loads(PRINTED.read_text(encoding="utf-8"))
    page = PRINTED.with_suffix(".md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- printed: (\w+) -->\n\n```text\n(.*?)```", page, flags=re.DOTALL)
    printed = {name: "".join(f"{line}\n" for line in x["printed"]) for name, x in entries.items()}
    assert dict(shown) == printed
    assert len(shown) == page.count("```") / 2


@pytest.mark.parametrize("table", [operator_table, level_table])
def test_the_page_of_models_has_the_tables_of_the_code(table: Callable[[], list[str]]) -> None:
    wanted = "\n".join(table())
    assert wanted in (ROOT / "docs" / "models.md").read_text(encoding="utf-8"), f"\n{wanted}"


def recorded() -> list[dict[str, object]]:
    """Return the recorded rows of the engine of 64 bits."""
    cycles = json.loads((ROOT / "docs" / "performance" / "cycles.json").read_text())
    assert cycles["versions"]["bitlane"] == __version__
    return [row for row in cycles["rows"] if row["width"] == 64]


def measured(rows: int | None = None) -> list[Any]:
    found: Iterable[Row] = measure([64], choose_evaluator(), lambda _: None)
    return [json.loads(json.dumps(row.as_dict())) for row in islice(found, rows)]


def test_the_first_rows_are_what_the_circuit_takes() -> None:
    """They need one circuit, that of ``sim``."""
    assert measured(11) == recorded()[:11]


@pytest.mark.slow
def test_all_rows_are_what_the_circuit_takes() -> None:
    assert measured() == recorded()


_FIELDS = ("work", "unit", "width", "goal", "bound", "peer", "measured", "ratio", "met")
_CYCLES: dict[str, Any] = {
    "kind": "cycles",
    "date": "2026-11-21",
    "machine": "A machine, 2 cores",
    "versions": {"bitlane": "1.2", "amaranth": "0.5"},
    "rows": [
        dict(zip(_FIELDS, row, strict=True))
        for row in (
            ("64 KiB NOT", "beat/cycle", 64, 0.998, 1.0, None, 0.99854, 0.99854, True),
            ("64 B NOT", "cycles", 32, 28, 19, 22, 29, 29 / 19, False),
        )
    ],
}
_NOT_PLACED: dict[str, Any] = {"design": "copy-32", "family": "ecp5", "chip": "LFE5U-25F"}
_NOT_PLACED |= {"scope": "the data path", "most_lut4": 522, "least_mhz": 150.0, "cells": None}
_NOT_PLACED |= {"failure": "ERROR: no room"}


def test_the_page_of_performance_says_what_failed_or_is_missing_or_old() -> None:
    text = page([_CYCLES, {**_CYCLES, "kind": "area", "rows": [_NOT_PLACED]}])
    old = f"**Not measured since: this page is of bitlane {__version__}.**"
    assert f"2026-11-21 on A machine, 2 cores; bitlane 1.2, amaranth 0.5. {old}" in text
    assert "| work | unit | bound | 64 bits | 32 bits |\n" in text
    assert "| 64 KiB NOT | beat/cycle | 1.000 | 0.9985 | - |\n" in text
    assert "| 64 B NOT | cycles | 19 | - | **29** / 22 |\n" in text
    assert "| <= 522 LUT4, >= 150 MHz | **not placed**: ERROR: no room |\n" in text
    assert "Not measured here: `python -m simulators.run verilator --json FILE`." in text
    assert old not in page([{**_CYCLES, "versions": {"bitlane": __version__}}])


def test_the_page_of_performance_says_what_the_files_beside_it_say() -> None:
    assert PAGE.read_text() == page(records())


def stored(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_a_notebook_has_the_cells_and_the_output_of_its_page(file: Path) -> None:
    found, source = stored(file)["cells"], file.with_suffix(".md")
    made = [(cell["cell_type"], "".join(cell["source"])) for cell in found]
    assert made == list(notebooks.cells(source)), "run make notebooks"
    assert len({cell["id"] for cell in found}) == len(found)
    python = [block for block in blocks(source) if block.language == "python"]
    shown = [x for block in python for x in doctest.DocTestParser().get_examples(block.text)]
    outputs = [cell["outputs"] for cell in found if cell["cell_type"] == "code"]
    assert len(outputs) > 5
    printed = ["".join(map(notebooks.text_of, each)) for each in outputs if each]
    assert printed == [x.exc_msg or x.want for x in shown if x.want]


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_each_cell_of_a_notebook_gives_its_output(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert notebooks.notebook(file.with_suffix(".md")) == stored(file), "run make notebooks"


class Shown:
    def __repr__(self) -> str:
        return "shown"

    def _repr_html_(self) -> str:
        return "<b>shown</b>"


def test_a_cell_is_executed_as_a_kernel_does() -> None:
    names = {"Shown": Shown}
    assert execute("x = 3", names) == []
    printed, result = execute("print(x)\nShown()", names)
    assert (printed["output_type"], printed["text"]) == ("stream", ["3\n"])
    assert result["data"] == {"text/plain": ["shown"], "text/html": ["<b>shown</b>"]}
    (raised,) = execute("import bitlane\nbitlane.open('none')", names)
    assert (raised["output_type"], raised["ename"]) == ("error", "bitlane.LinkError")
    assert "no link has the scheme 'none'" in raised["evalue"]
    with pytest.raises(NameError):
        execute("y", names)


RECORDED = recording.PICTURE.read_text(encoding="utf-8")


def test_the_recording_is_drawn_by_its_program_and_has_the_python_of_the_readme() -> None:
    assert drawn(lines_of(RECORDED)) == RECORDED, "run make recording"
    python = next(each for each in blocks(ROOT / "README.md") if each.language == "python")
    assert "\n".join(lines_of(RECORDED)).endswith(f"$ python\n{python.text.rstrip()}")


def test_its_examples_are_those_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """They need one circuit, that of ``sim``."""
    assert main(["demo", "examples"]) == DONE
    examples = re.search(r"^Examples: .*?\n\n", capsys.readouterr().out, flags=re.M | re.S)
    assert examples
    assert examples[0] in "\n".join(lines_of(RECORDED))


@pytest.mark.slow
def test_all_of_it_is_what_the_demo_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == DONE
    printed = "\n".join(recording.session(capsys.readouterr().out))
    assert timeless(printed) == timeless("\n".join(lines_of(RECORDED)))


def timeless(text: str) -> str:
    """Return ``text`` without the seconds at the ends of the demo's table."""
    return re.sub(r"(\d\.\d{3}) +\d+\.\d$", r"\1", text, flags=re.M)


def test_the_lines_enter_one_after_the_other_below() -> None:
    text = drawn(["$ one", "two & <three>"])
    frames = [(float(a), int(b)) for a, b in re.findall(r"([\d.]+)% .*?\((\d+)px\)", text)]
    assert frames == sorted(frames, key=lambda frame: (frame[0], -frame[1]))
    assert frames[0][0] == 0
    assert frames[0][1] - frames[1][1] == 18
    assert lines_of(text) == ["$ one", "two & <three>"]
    assert text.count('class="typed"') == 1
    with pytest.raises(ValueError, match=r"93 characters; expected 92"):
        drawn(["x" * (recording.COLUMNS + 1)])


REPORT = """{"board": "hx8k", "seed": 1, "clock_mhz": 72.0, "achieved_mhz": 90.0,
"cells": {"ICESTORM_LC": [5000, 7680]}, "blocks": {}, "line_clocks_mhz": {}, "versions": {}}"""

OTHER = REPORT.replace('"seed": 1', '"seed": 2').replace("90.0", "80.0")
"""A placement that nobody publishes."""


def test_the_page_of_status_is_what_its_program_writes() -> None:
    text = status.PAGE.read_text(encoding="utf-8")
    assert text == status.page(status.recorded()), "run make status"


def test_each_board_has_a_row_and_none_has_run() -> None:
    lines = status.page({}).splitlines()
    rows = [line for line in lines if line.startswith("| `") and "Hz" in line]
    assert [row.split("`")[1] for row in rows] == list(boards())
    assert all(" | not recorded | " in row for row in rows)
    assert {row.split(" | ")[-1] for row in rows} == {"no |"}


def test_a_build_is_collected_with_its_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "BUILDS", tmp_path / "builds.json")
    for folder, text in (("hx8k", REPORT), ("other", OTHER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "report.json").write_text(text)
    status.collect(tmp_path)
    [build] = status.recorded().values()
    assert build["report"]["achieved_mhz"] == 90
    assert build["date"] == datetime.now(UTC).strftime("%Y-%m-%d")
    assert "| `hx8k` | iCE40 | 72 MHz | 25% |" in status.page(status.recorded())


@pytest.mark.parametrize("test", status.INTERFACES.values())
def test_each_interface_has_a_test_that_says_what_it_shows(test: str) -> None:
    assert "def test_" in (ROOT / test).read_text(encoding="utf-8")
    assert len(status.claim(ROOT / test)) > 40


def test_bounded_proofs_say_so(tmp_path: Path) -> None:
    extents = {file.stem: status.extent(file) for file in status.proofs()}
    assert extents["test_core"] == "**for 25 cycles**"
    assert extents["test_lists"] == "for all time"
    assert set(extents.values()) >= {"for all time", "**partly for 14 cycles**"}
    file = tmp_path / "test_new.py"
    file.write_text("DEPTH = 7\nClaim(It, Bounded(DEPTH))\n")
    assert status.extent(file) == "**for 7 cycles**"
