"""Every pair of wrong bits has a number, and a record that escapes is found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import RECORD_SEAL, Status
from bitlane_sim.campaigns import harness
from bitlane_sim.campaigns.folder import make_circuit
from bitlane_sim.campaigns.plan import Stage, run_plan
from bitlane_sim.campaigns.records import RecordPlan
from bitlane_sim.system.system import System
from support.record import Record
from support.sim.harnesses import SMALL, quiet, small_circuit

pytestmark = pytest.mark.slow


def test_every_bit_and_every_pair_but_those_of_the_seal() -> None:
    plan = RecordPlan(Stage(small_circuit(), "threads"), None)
    jobs, low, high = plan.bits(np.arange(plan.instances))
    for number, job in enumerate(plan.jobs):
        found = set(zip(low[jobs == number].tolist(), high[jobs == number].tolist(), strict=True))
        bits = [bit for bit in range(32 * int(job.used[0])) if not 24 <= bit < 32]
        assert found == {(x, y) for x in bits for y in bits if x <= y}
        assert len(found) == np.count_nonzero(jobs == number)


def test_records_are_sealed_as_the_contract_has_it() -> None:
    plan = RecordPlan(Stage(small_circuit(), "threads"), 300)
    portion = plan.portion(plan.numbers())
    original = np.stack([job.records[0] for job in plan.jobs])[plan.bits(portion.numbers)[0]]
    for record, used, before in zip(
        portion.work.records[:, 0], portion.work.used[:, 0], original, strict=True
    ):
        taken = Record([int(word) for word in record])
        assert taken.used == used
        assert np.bitwise_xor.reduce(record[:used].astype("<u4").view(np.uint8)) == RECORD_SEAL
        changed = np.bitwise_count(record ^ before)
        assert changed[0] <= 8 + 2


def test_nothing_is_wrong_with_a_share_of_them() -> None:
    stage = Stage(small_circuit(), "threads")
    plan = RecordPlan(stage, 1500)
    outcomes = run_plan(stage, plan, plan.numbers(), quiet)
    assert outcomes.failures == []
    assert plan.codes.sum() + plan.slow.sum() == 1500
    ended = {Status(code) for code in np.flatnonzero(plan.codes.sum(axis=0)).tolist()}
    assert ended == set(Status) - {
        Status.BAD_SEAL,
        Status.READ_ERROR,
        Status.WRITE_ERROR,
        Status.TIMEOUT,
        Status.BAD_DOORBELL,
    }


def test_an_engine_that_takes_its_memory_for_larger_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def larger(configuration: Any) -> System:
        return System(replace(configuration, memory_bytes=2 * configuration.memory_bytes))

    monkeypatch.setattr(harness, "System", larger)
    stage = Stage(make_circuit(SMALL), "threads")
    plan = RecordPlan(stage, 300)
    outcomes = run_plan(stage, plan, plan.numbers(), quiet)
    assert outcomes.failures
    assert "expected PAST_MEMORY" in "".join(outcomes.failures)
    assert outcomes.failures[0].startswith(f"bitlane campaign records --config '{SMALL}' --replay")
