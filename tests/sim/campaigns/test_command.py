"""`bitlane campaign`: tables, folders for machines without Amaranth, and one line for bad input."""

import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bitlane.command_line import DONE
from bitlane.errors import BitlaneError, LinkError
from bitlane_sim.campaigns import add_campaign
from bitlane_sim.campaigns.__main__ import main
from bitlane_sim.campaigns.plan import Stage
from cppsim.errors import BatchError
from support.processes import run_python
from support.sim.harnesses import SMALL, command_line, small_folder

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

ROOT = Path(__file__).parents[3]
THREADS = ("--backend", "threads")


def campaign(*words: str) -> int:
    return command_line(add_campaign, "campaign", *words)


def test_a_table_and_the_same_as_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    words = ("records", "--circuit", str(small_folder()), "--instances", "60", "--json", str(file))
    assert campaign(*words, *THREADS) == DONE
    head, *rows, summary = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["record", "words", "pairs"]
    assert [row.split("  ")[0] for row in rows] == ["dense XOR", "strided NOT", "popcount"]
    assert summary.startswith("60 instances, ")
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert figures["kind"] == "campaign records"
    assert figures["circuit"] == SMALL
    assert figures["instances"] == sum(row["instances"] for row in figures["rows"]) == 60
    assert figures["failures"] == []


def test_a_folder_runs_as_a_module_without_amaranth(tmp_path: Path) -> None:
    code = f"""
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("amaranth", "cppsim.batch.circuit"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Nothing())
from bitlane_sim.campaigns.__main__ import main
folder = {str(small_folder())!r}
words = ["campaign", "records", "--instances", "20", "--backend", "threads"]
code = main([*words, "--circuit", folder]) + main(words)
sys.exit(code)
"""
    done = run_python("-c", code)
    assert "20 instances" in done.stdout, done.stderr
    assert done.stderr == "error: amaranth is not installed; give --circuit FOLDER\n"
    assert done.returncode == 2


def test_what_ran_before_a_backend_gave_up_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Stage.run
    calls = []

    def killed(self: Stage, *words: Any) -> Any:
        calls.append(words)
        if len(calls) == 3:
            raise BatchError("the GPU gave up: launch failed; make a new batch")
        return right(self, *words)

    monkeypatch.setattr(Stage, "run", killed)
    monkeypatch.setattr(Stage, "portion", 25)
    words = ("records", "--circuit", str(small_folder()), "--instances", "60", *THREADS)
    with pytest.raises(BitlaneError, match="stopped after 50: the GPU gave up"):
        campaign(*words)
    assert "50 instances, " in capsys.readouterr().out


def test_what_is_exported_is_what_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "circuit"
    assert campaign("faults", "--config", SMALL, "--export", str(folder)) == DONE
    assert capsys.readouterr().out.startswith(f"wrote {folder}")
    assert {x.name for x in folder.iterdir()} == {
        *("batch.json", "circuit.json", "cppsim", "data.npz", "source.h")
    }


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("faults", "--config", "width=33"), r"width"),
        (("faults", "--config", "width=32&memory=1KiB"), r"1,024 bytes of memory; expected 4,096"),
        (("faults", "--circuit", "nowhere"), r"nowhere holds no circuit .*--export"),
        (("faults", "--circuit", "nowhere", "--config", SMALL), r"goes only without --circuit"),
        (("faults", "--vcd", "x.vcd"), r"--vcd: goes only with --replay"),
        (
            ("faults", "--config", "width=32&memory=4KiB&latency=3"),
            r"no option 'latency'; choose wid",
        ),
        (
            ("faults", "--config", "width=32&memory=32MiB"),
            r"in each instance; expected 16,777,216 at",
        ),
        (("faults", "--replay", "0", "--config", "width=32&search=8,64,2,1"), r"search"),
        (("faults", "--json", "nowhere/x.json", "--config", SMALL), r"--json: nowhere/x.json"),
        (("records", "--backend", "cuda", "--circuit", "SMALL"), r"needs CuPy|no GPU"),
        (("records", *THREADS, "--replay", "999999999", "--circuit", "SMALL"), r"expected 0 to"),
        (("stalls", *THREADS, "--circuit", "SMALL"), r"4,096 bytes of memory; expected 4,194,304"),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(small_folder()) if word == "SMALL" else word for word in words]
    with pytest.raises((BitlaneError, LinkError), match=wanted) as caught:
        campaign(*given)
    assert "\n" not in str(caught.value)
    assert main(["campaign", *given]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("more", [(), ("--replay", "3")])
def test_a_model_that_is_not_there_is_told_of_before_anything_runs(
    more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []
    for name in ("run", "expected"):
        monkeypatch.setattr(Stage, name, lambda *words: ran.append(words))
    words = ("records", "--circuit", str(small_folder()), "--model", "cupy", *THREADS, *more)
    none, broken = (SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace())) for _ in "ab")
    none.cuda.runtime.getDeviceCount = lambda: 0
    for there, wanted in (
        (None, r"model 'cupy' needs CuPy: pip install cupy-cuda13x, or take model 'numpy'"),
        (none, r"CuPy finds no GPU; take model 'numpy'"),
        (broken, r"CuPy finds no GPU: .*getDeviceCount.*; take model 'numpy'"),
    ):
        monkeypatch.setitem(sys.modules, "cupy", there)
        with pytest.raises(BitlaneError, match=wanted) as caught:
            campaign(*words)
        assert "\n" not in str(caught.value)
    assert not ran
    extras = tomllib.loads((ROOT / "cppsim" / "pyproject.toml").read_text(encoding="utf-8"))
    assert any(
        x.startswith("cupy-cuda13x") for x in extras["project"]["optional-dependencies"]["cuda"]
    )


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nothing",),
        ("faults", "--seeds", "0"),
        ("faults", "--seeds", "100000001"),
        ("records", "--instances", "x"),
        ("records", "--replay", "-1"),
        ("faults", "--backend", "abacus"),
        ("stalls", "--instances", "3"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        campaign(*words)
    assert caught.value.code == 2
    capsys.readouterr()
