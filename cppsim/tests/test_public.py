"""The package as others see it: public modules, pages and examples, and nothing from outside."""

import ast
import asyncio
import re
import runpy
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest

import cppsim
import feeding
import firmware
import speed
from cppsim import stored
from cppsim.mode import Mode
from cppsim.testing import EXECUTORS
from support.processes import run_python
from support.small import foreign, loop
from support.zoo import Counter

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
FOLDERS = ("src", "tests", "examples", "benchmarks", "tools")
WITHOUT_AMARANTH = ("cppsim", "cppsim.build", "cppsim.circuits", "cppsim.stored")


@pytest.mark.parametrize("name", [*WITHOUT_AMARANTH, "cppsim.testing"])
def test_all_names_of_a_module_exist_and_no_others(name: str) -> None:
    module = import_module(name)
    assert all(hasattr(module, each) for each in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("name", [*WITHOUT_AMARANTH, "cppsim.errors"])
def test_a_module_is_imported_without_amaranth(name: str) -> None:
    code = f"import sys, {name}; print('amaranth' in sys.modules)"
    assert run_python("-c", code).stdout == "False\n"


def test_testing_imports_no_runner_of_tests() -> None:
    code = "import sys, cppsim.testing; print(*{'pytest', 'hypothesis', 'numpy'} & {*sys.modules})"
    assert run_python("-c", code).stdout == "\n"


def test_a_stored_design_has_what_a_batch_has() -> None:
    program = cppsim.Program().set("by", 3).step(5).get("count")
    batch = cppsim.Batch(Counter(), 3, "threads:1")
    design = stored.store(Counter())
    assert design.source().description.ports == batch.description.ports
    found = stored.Runner(design, 3, "threads:1").run(program)["count"]
    assert np.array_equal(found, batch.run(program)["count"])
    assert set(found.tolist()) == {15}


# --- pages, whose code blocks tests/docs runs -----------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_is_explained(mode: Mode) -> None:
    assert f"| `{mode.value}` |" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(loop, "Combinational cycle"), (foreign, "Instance is not known here: 'CELL' at ")],
)
def test_what_is_not_compiled_is_listed_with_its_line(make: Any, reason: str) -> None:
    with pytest.warns(cppsim.FallbackWarning) as warned:
        made: list[Any] = [cppsim.Simulator(make(), mode="always"), EXECUTORS["engine"](make())]
    assert warned[0].filename == __file__
    page = (ROOT / "docs" / "differs.md").read_text(encoding="utf-8")
    listed = tuple(row.split("`")[1] for row in page.splitlines() if "| `" in row)
    for warning, simulator in zip(warned, made, strict=True):
        text = str(warning.message).removeprefix("left to Amaranth's simulator: ")
        assert text.startswith(reason)
        assert text.startswith(listed)
        assert reason in simulator._engine.reason


def test_no_link_of_a_page_leads_out_of_the_folder() -> None:
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s:#]+)[^)\s:]*\)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            if not target.exists() or not target.is_relative_to(ROOT):
                broken.append((page.name, link))
    assert len(PAGES) > 4
    assert broken == []


# --- no package of bitlane ------------------------------------------------------------------------


def imported(path: Path) -> Iterator[str]:
    """Yield the packages that a file imports, on any line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_nothing_imports_bitlane() -> None:
    files = [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 150
    found = {path: {x for x in imported(path) if x.startswith("bitlane")} for path in files}
    assert {path.relative_to(ROOT): names for path, names in found.items() if names} == {}


EXAMPLES = Path(speed.__file__).parent
COMPONENT = EXAMPLES / "component.py"
EXPECTED = "; expected PARAMETER=NUMBER for each, and a domain 'sync'"


def ended(path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run an example that ends at once, and return its exit status, or what it says."""
    monkeypatch.setattr("sys.argv", [str(path), *words])
    with pytest.raises(SystemExit) as raised:
        runpy.run_path(str(path), run_name="__main__")
    return raised.value.code


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], r"'' is not a component\nClock any component(.|\n)*"),
        (["no.Thing"], r"'no\.Thing' is not a component\nClock any component(.|\n)*"),
        *(
            ([f"amaranth.lib.fifo.{name}", *others], rf"amaranth\.lib\.fifo\.{name}: .*{EXPECTED}")
            for name, *others in (
                ("SyncFIFO", "width=8"),
                ("SyncFIFO", "width=x"),
                ("AsyncFIFO", "width=8", "depth=4"),
            )
        ),
    ],
)
def test_anything_but_a_component_that_can_be_clocked_is_refused(
    words: list[str], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.fullmatch(answer, ended(COMPONENT, words, monkeypatch))


def test_any_component_is_clocked() -> None:
    ran = run_python(COMPONENT, "amaranth.lib.fifo.SyncFIFO", "width=8", "depth=4")
    # A compilation that lasts more than a second is reported.
    assert re.sub(r"^cppsim: compiling .*\n", "", ran.stderr) == ""
    assert ran.returncode == 0
    line = r"amaranth\.lib\.fifo\.SyncFIFO: 1,000,000 cycles, [\d,]+ cycles/s\n"
    assert re.fullmatch(line, ran.stdout)


def test_the_component_is_simulated_for_all_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator, context = Mock(), AsyncMock()
    context.tick = Mock(return_value=context)
    monkeypatch.setattr("cppsim.Simulator", simulator)
    monkeypatch.setattr(
        "sys.argv", ["component", "amaranth.lib.fifo.SyncFIFO", "width=8", "depth=4"]
    )
    runpy.run_path(str(COMPONENT), run_name="__main__")
    (testbench,) = simulator.return_value.add_testbench.call_args.args
    asyncio.run(testbench(context))
    context.repeat.assert_awaited_once_with(1_000_000)
    simulator.return_value.run.assert_called_once_with()


def test_the_table_of_speeds_has_a_ratio_for_each_design_and_testbench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.01)
    monkeypatch.setattr(speed, "SIDES", (2, 3))
    speed.main()
    title, *lines = capsys.readouterr().out.splitlines()
    assert title.split() == ["design", "testbench", "pysim", "cppsim", "ratio"]
    assert len(lines) == 12
    for line in lines:
        slow, fast, ratio = (float(word.replace(",", "")) for word in line.split()[-3:])
        assert ratio == pytest.approx(fast / slow, abs=0.2, rel=0.01)
        assert slow > 0


def test_a_second_firmware_starts_without_compiling(
    fresh_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    firmware.main()
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Fibonacci, [12] libraries compiled: 1 1 2 3 5 8 13 21 34 .*", first)
    squares = " ".join(str(x * x) for x in range(1, 21))
    assert second == f"squares, 0 libraries compiled: {squares}"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--backend", "gpu"], "no backend 'gpu'; there are: auto, threads, threads:NUMBER, cuda"),
        (["--instances", "0"], "instances: 0; expected a whole number from 1 on"),
        (["--cycles", "-1"], "cycles: -1; expected a whole number from 1 on"),
    ],
)
def test_what_cannot_be_fed_is_one_line(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(EXAMPLES / "feeding.py", words, monkeypatch) == 2
    # A compilation that lasts over a second is announced first.
    assert capsys.readouterr().err.splitlines()[-1] == f"feeding.py: {line}"


def test_a_batch_is_fed_and_each_crc_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["feeding", "--backend", "threads", "--instances", "70", "--cycles", "9"]
    monkeypatch.setattr("sys.argv", words)
    feeding.main()
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "70 instances, 9 cycles, threads"
    assert [line.rsplit(maxsplit=2)[0] for line in lines] == [
        "fed",
        "fed by an encoded program",
        "not fed",
    ]
    monkeypatch.setattr(feeding, "zlib", SimpleNamespace(crc32=len))
    with pytest.raises(SystemExit, match=r"a CRC differs from zlib\.crc32"):
        feeding.main()
