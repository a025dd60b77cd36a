"""Seeds of stalls: all jobs of the contract, each with many timings."""

import numpy as np

from bitlane_sim.campaigns.folder import make_circuit
from bitlane_sim.campaigns.plan import Stage, run_plan
from bitlane_sim.campaigns.stalls import RAM, WORKS, StallPlan
from support.sim.harnesses import quiet

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
