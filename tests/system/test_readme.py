"""The README: its Python runs as it stands, and what it names exists."""

import doctest
import re
from pathlib import Path

from bitlane_sim.bench import cycles
from bitlane_sim.bench.contract import measure
from bitlane_sim.simulator import choose_evaluator

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_the_python_in_it_gives_what_it_says() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert tried > 15
    assert failed == 0


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
