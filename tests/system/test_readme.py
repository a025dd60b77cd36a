"""The README, and the page on arrays: their Python runs as it stands, what they name exists."""

import doctest
import re
from pathlib import Path

import pytest

from bitlane.command_line.cli import DONE, main
from bitlane_sim.bench import cycles
from bitlane_sim.bench.contract import measure
from bitlane_sim.simulator import choose_evaluator

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.mark.parametrize("page", ["README.md", "docs/arrays.md"])
def test_the_python_in_it_gives_what_it_says(page: str) -> None:
    failed, tried = doctest.testfile(str(ROOT / page), module_relative=False, encoding="utf-8")
    assert tried > 12
    assert failed == 0


@pytest.mark.parametrize(
    ("page", "model"), [("README.md", "bit_xor"), ("examples/README.md", "bit_not")]
)
def test_what_run_is_said_to_print(
    page: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    pattern = rf"bitlane run examples/{model}\.json.*?^(Running on .*?)^```$"
    (shown,) = re.findall(pattern, text, flags=re.M | re.S)
    file = ROOT / "examples" / f"{model}.json"
    assert main(["run", str(file), "--device", "sim:compiled"]) == DONE
    # All but the host's time is the same everywhere.
    printed, shown = (
        re.sub(r"[0-9.]+ ms", "N ms", each) for each in (capsys.readouterr().out, shown)
    )
    assert printed == shown


def test_every_link_and_folder_exists() -> None:
    text = README.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    folders = re.findall(r"^\| `([^`]+)` \|", text, flags=re.M)
    assert len(links) >= 3
    assert len(folders) >= 6
    assert [name for name in links + folders if not (ROOT / name).exists()] == []


def test_every_make_target_in_it_exists() -> None:
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"^    make (\w+)$|`make (\w+)`", text, flags=re.M))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, flags=re.M))
    assert {first or second for first, second in named} <= targets


def test_the_table_of_cycles_is_what_bench_prints() -> None:
    text = README.read_text(encoding="utf-8")
    (table,) = re.findall(r"^```text\n(work .*?)^```$", text, flags=re.M | re.S)
    rows = [cycles.line(row) for row in measure([64], choose_evaluator(), lambda _: None)]
    assert table.splitlines() == [cycles.HEADER, *rows]
