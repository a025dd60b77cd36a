"""The fault matrix is whole, and finds an engine that does not keep its word."""

import shlex
from typing import Any

import numpy as np
import pytest

from bitlane.command_line import CHECK_FAILED, DONE
from bitlane_rtl.abi import Status
from bitlane_sim.campaigns import add_campaign
from bitlane_sim.campaigns.faults import FaultPlan
from bitlane_sim.campaigns.folder import make_circuit
from bitlane_sim.campaigns.plan import Stage, run_plan
from bitlane_sim.campaigns.scoreboard import Observed
from bitlane_sim.campaigns.stalls import RAM, WORKS, StallPlan
from support.sim.harnesses import SMALL, command_line, quiet, small_circuit, small_folder

pytestmark = [pytest.mark.slow, pytest.mark.any_face]


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
