"""The fault matrix is whole, and finds a bad engine; `bitlane campaign` tells it, or one line.

The command prints tables, and writes folders for machines without Amaranth.
"""

import json
import shlex
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bitlane.command_line import CHECK_FAILED, DONE
from bitlane.errors import BitlaneError, LinkError
from bitlane_rtl.abi import Status
from bitlane_sim.campaigns import FaultPlan, Observed, Stage, add_campaign, make_circuit, run_plan
from bitlane_sim.campaigns.__main__ import main
from bitlane_sim.campaigns.stalls import RAM, WORKS, StallPlan
from cppsim.errors import BatchError
from support.processes import run_python
from support.sim.harnesses import SMALL, command_line, quiet, small_circuit, small_folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_face,
    pytest.mark.reads("cppsim/pyproject.toml"),
]


@pytest.fixture
def stage() -> Stage:
    return Stage(small_circuit(), "threads")


def test_every_cycle_of_every_job_meets_every_kind(stage: Stage) -> None:
    plan = FaultPlan(stage, 1)
    # Without B there are four kinds less.
    kinds = {"dense XOR": 22, "strided NOT": 18, "popcount": 18, "two commands": 22}
    assert [job.name for job in plan.jobs] == list(kinds)
    wanted = sum(
        kinds[job.name] * (int(cycles) + 1)
        for job, cycles in zip(plan.jobs, plan.cycles[:, 0], strict=True)
    )
    assert plan.instances == wanted
    assert len({tuple(row) for row in plan._table.T.tolist()}) == wanted


def test_nothing_is_wrong_with_a_share_of_them(stage: Stage) -> None:
    plan = FaultPlan(stage, 3)
    outcomes = run_plan(stage, plan, np.arange(0, plan.instances, 53), quiet)
    assert outcomes.failures == []
    assert outcomes.instances > 400
    rows = plan.rows()
    assert sum(int(str(row["instances"])) for row in rows) == outcomes.instances
    seen = {str(row["kind"]) for row in rows if row["seen"]}
    assert seen == {str(row["kind"]) for row in rows} - {"reset"}


def broken(
    monkeypatch: pytest.MonkeyPatch, spoil: Any, which: int = 0, *, programs: int = 2
) -> None:
    """Let ``spoil`` change the outcomes after program ``which`` of at least ``programs``."""
    right, least = Stage.run, programs

    def wrong(self: Stage, ram: Any, programs: Any, instances: int) -> list[Observed]:
        observed = right(self, ram, programs, instances)
        if len(programs) >= least:
            spoil(observed[which])
        return observed

    monkeypatch.setattr(Stage, "run", wrong)


def test_a_job_that_fails_by_itself_is_no_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(monkeypatch, spoil_ram, programs=1)
    words = ("faults", "--circuit", str(small_folder()), "--backend", "threads")
    assert command_line(add_campaign, "campaign", *words) == CHECK_FAILED
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("dense XOR without a fault: ")


def spoil_ram(observed: Observed) -> None:
    observed.ram[:, 4000] ^= 1


def spoil_code(observed: Observed) -> None:
    code = observed.results["FAULT"] & np.uint64(0xFF)
    hung = code == Status.TIMEOUT
    observed.results["FAULT"][hung] ^= np.uint64(Status.TIMEOUT ^ Status.READ_ERROR)


def spoil_port(observed: Observed) -> None:
    failed = observed.results["FAULT"] != 0
    observed.results["FAULT"][failed] ^= np.uint64(2 << 8)


def spoil_end(observed: Observed) -> None:
    observed.results["came"][:] = 0


def not_cleared(observed: Observed) -> None:
    observed.results["cleared STATUS"][:] = 1


@pytest.mark.parametrize(
    ("spoil", "which", "wanted"),
    [
        (spoil_ram, 0, "bytes are wrong"),
        (spoil_ram, 1, "bytes are wrong"),
        (spoil_code, 0, "expected TIMEOUT on"),
        (spoil_port, 0, "expected TIMEOUT on"),
        (spoil_end, 0, "no interrupt within"),
        (spoil_end, 1, "no interrupt within"),
        (not_cleared, 0, "after CLEAR"),
    ],
)
def test_what_goes_wrong_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, spoil: Any, which: int, wanted: str
) -> None:
    plan = FaultPlan(stage, 1)
    broken(monkeypatch, spoil, which)
    # Silence from the first cycle of the first job on.
    numbers = np.flatnonzero((plan._table[0] == 0) & (plan._table[2] == 13))[:2]
    outcomes = run_plan(stage, plan, numbers, quiet)
    assert outcomes.failures
    for number, line in zip(numbers, outcomes.failures, strict=True):
        assert line.startswith(
            f"bitlane campaign faults --config '{SMALL}' --seeds 1 --replay {number}  # dense XOR"
        )
        assert wanted in line


def test_a_fault_must_come_if_it_matters_and_not_else(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = FaultPlan(stage, 1)
    hangs = np.flatnonzero((plan._table[0] == 0) & (plan._table[2] == 13))
    early, late = hangs[:1], hangs[-1:]

    def retired(observed: Observed) -> None:
        observed.results["FAULT"][:] = 0
        observed.results["RETIRED"][:] = 1
        observed.ram[:] = plan.portion(late).ram
        observed.ram[:, 2061:2266] = observed.ram[:, 3:208] ^ observed.ram[:, 1030:1235]

    def stopped(observed: Observed) -> None:
        observed.results["FAULT"][:] = int(Status.TIMEOUT)
        observed.results["RETIRED"][:] = 0

    for spoil, numbers, wanted in (
        (retired, early, "no fault, though it began in time"),
        (stopped, late, "a fault, though it began too late"),
    ):
        with monkeypatch.context() as patch:
            broken(patch, spoil)
            (line,) = run_plan(stage, plan, numbers, quiet).failures
        assert wanted in line


def test_a_line_replays_it_with_waves(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, stage: Stage
) -> None:
    waves = tmp_path / "waves.vcd"
    line = f"bitlane campaign faults --config '{SMALL}' --seeds 1 --replay 40  # why"
    words = shlex.split(line, comments=True)[1:]
    assert command_line(add_campaign, *words, "--backend", "threads", "--vcd", str(waves)) == DONE
    assert capsys.readouterr().out == "instance 40: no failure\n"
    assert waves.stat().st_size > 10_000


# --- stalls ---------------------------------------------------------------------------------------


OPTIONS = "width=32&ports=1&loops=2&slots=16&ops=xor,not&modes=dense,strided&memory=8MiB"

SHORT = ["64 B NOT", "12 times 64 B NOT", "12 times 64 B XOR"]


def test_cycles_do_not_depend_on_the_few_words_of_ram() -> None:
    stage = Stage(make_circuit(OPTIONS, RAM), "threads")
    plan = StallPlan(stage, 40, SHORT)
    outcomes = run_plan(stage, plan, np.arange(plan.instances), quiet)
    assert outcomes.failures == []
    rows = plan.rows()
    assert [row["work"] for row in rows] == SHORT
    assert (plan.cycles > 0).all()
    assert all(len(set(cycles.tolist())) > 3 for cycles in plan.cycles)
    # 16 beats of 4 bytes, of which none is written before the first has come.
    assert plan.beats[0] == 16
    assert plan.cycles[0].min() > 2 * 16


def test_all_jobs_of_the_contract_are_there() -> None:
    assert len(WORKS) == 17
    assert all(len(given()) >= 1 for given in WORKS.values())


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
