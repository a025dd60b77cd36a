"""The package's README and page say what is so. tests/docs runs their code blocks."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Instance, Module, Signal

import cppsim
from cppsim.mode import Mode

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "differs.md").read_text(encoding="utf-8")
README = ROOT / "README.md"


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_is_explained(mode: Mode) -> None:
    assert f"| `{mode.value}` |" in README.read_text(encoding="utf-8")


def _loop() -> Module:
    m, a = Module(), Signal(4)
    m.d.comb += a.eq(a + 1)
    return m


def _instance() -> Module:
    m = Module()
    m.submodules += Instance("cell", o_o=Signal())
    return m


@pytest.mark.parametrize("make", [_loop, _instance])
def test_what_is_not_compiled_is_listed_with_its_line(make: Any) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        cppsim.Simulator(make(), mode="always")
    [warning] = [x for x in warned if x.category is cppsim.FallbackWarning]
    assert warning.filename == __file__
    line = str(warning.message)
    text = line.removeprefix("left to Amaranth's simulator: ")
    assert any(text.startswith(row.split("`")[1]) for row in PAGE.splitlines() if "| `" in row)
