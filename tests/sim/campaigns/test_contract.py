"""The model of many instances agrees with the interpreter of one record, and with NumPy."""

import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.driver.commands import encode
from bitlane.errors import LayoutError, UnsupportedError
from bitlane_rtl.abi import MAX_LOOPS, RECORD_SEAL, RECORD_WORDS, Mode, Op, Status
from bitlane_rtl.configuration import Configuration
from bitlane_sim.campaigns import harness
from bitlane_sim.campaigns.arrays import draw, noise
from bitlane_sim.campaigns.contract import execute
from bitlane_sim.campaigns.folder import CircuitOptions, geometry_of, make_circuit
from bitlane_sim.campaigns.plan import Stage, run_plan
from bitlane_sim.campaigns.records import RecordPlan
from bitlane_sim.campaigns.trials import SIZE, random_trial
from bitlane_sim.circuit_options import configuration_of
from bitlane_sim.fields import Fields, Limits, refusals
from bitlane_sim.system.system import System
from support.record import Record
from support.rtl.random_records import random_record
from support.sim.harnesses import SMALL, quiet, small_circuit
from support.watched import WatchedInterpreter

pytestmark = pytest.mark.slow

MEMORY = 16384

CONFIGURATIONS = {
    "full": Configuration(memory_bytes=MEMORY, loops=MAX_LOOPS),
    "narrow": Configuration(
        data_width=32,
        memory_base=0x1000,
        memory_bytes=MEMORY,
        loops=2,
        length_bits=12,
        count_bits=8,
        ops=frozenset({Op.NOT, Op.COUNT, Op.SHIFT_LEFT}),
        modes=frozenset({Mode.DENSE, Mode.STRIDED}),
    ),
}


@pytest.fixture(params=CONFIGURATIONS)
def configuration(request: pytest.FixtureRequest) -> Configuration:
    return CONFIGURATIONS[request.param]


def test_arrays_of_records_are_refused_as_each_record_is(configuration: Configuration) -> None:
    """The same function refuses both: this shows only that it computes each instance alone.

    `tests/rtl/control/test_refusals.py` compares the codes of single records with the circuit.
    Arrays keep the rubbish in words that are not in use, single records have zeros there.
    """
    chance = random.Random(1)
    words = [random_record(chance, configuration) for _ in range(400)]
    found = refusals(Fields(np.array(words, np.int64).T), Limits.of(configuration))
    wanted = [Record(record).refusal(configuration) for record in words]
    assert found.tolist() == wanted
    assert set(wanted) == {status for status in Status if status < Status.READ_ERROR}


def packed(commands: list[Any], most: int) -> NDArray[np.uint32]:
    """Records of commands as the model takes them, with rubbish in words that are not in use."""
    records = np.random.default_rng(1).integers(0, 1 << 32, (most, RECORD_WORDS), np.uint32)
    for record, command in zip(records, commands, strict=False):
        words = encode(command)
        record[: words.size] = words
    return records


@pytest.mark.parametrize("options", ["width=64&loops=4", "width=32&loops=2"])
def test_trials_come_out_as_numpy_has_them(options: str) -> None:
    configuration = configuration_of(f"sim?{options}&memory=16KiB")
    geometry = geometry_of(configuration)
    trials, commands = [], []
    for seed in range(200):
        trial = random_trial(np.random.default_rng([7, seed]), geometry)
        with suppress(LayoutError, UnsupportedError):
            commands.append(list(trial.commands(geometry, 0)))
            trials.append(trial)
    few = [number for number, each in enumerate(commands) if len(each) <= 16]
    assert len(few) > 100
    records = np.stack([packed(commands[number], 16) for number in few])
    memory = noise(5, np.arange(len(few)), MEMORY)
    counts = np.array([len(commands[number]) for number in few])
    found = execute(memory, records, counts, configuration)
    assert not found.status.any()
    assert not found.loose.any()
    for place, number in enumerate(few):
        wanted = memory[place].copy()
        trials[number].apply(wanted[:SIZE])
        assert np.array_equal(found.memory[place], wanted), trials[number]


@pytest.fixture(scope="module")
def lies() -> tuple[Configuration, NDArray[np.uint32]]:
    """Records of short commands with one or two wrong bits, sealed."""
    configuration = configuration_of("sim?width=64&memory=4KiB")
    plan = RecordPlan(Stage(CircuitOptions("", configuration, 4096)), None)
    chance = np.random.default_rng(2)
    few = np.concatenate([plan.numbers()[:40], chance.integers(0, plan.instances, 2500)])
    return configuration, plan.portion(few).work.records[:, 0]


def test_lying_records_do_what_the_interpreter_says(
    lies: tuple[Configuration, NDArray[np.uint32]],
) -> None:
    configuration, records = lies
    memory = noise(1, np.arange(1), 4096)[0]
    count = len(records)
    whole = np.broadcast_to(memory, (count, 4096)).copy()
    found = execute(whole, records[:, None], np.ones(count, np.int64), configuration, 20000)
    kinds, model = Counter[str](), WatchedInterpreter(configuration)
    for place, record in enumerate(records):
        if found.elements[place] >= 20000:
            kinds["long"] += 1
            continue
        replay = f"record {place}: {[hex(x) for x in record.tolist()]}"
        model.memory[:] = memory
        model.forget_flights()
        status, told = Status.OK, ""
        try:
            if stop := model.execute(record.astype("<u4").tobytes()):
                status = stop.status
        except AssertionError as error:
            told = str(error).splitlines()[0]
        kinds[told.partition(" is ")[0] or status.name] += 1
        if "twice" in told or "reads what" in told:
            # Nobody knows what comes of it, but for steps whose Y is outside, which are not done.
            left = found.status[place] == Status.PAST_MEMORY
            assert found.loose[place].any() or left, replay
        else:
            # What LAST says is only looked at where it is outside the memory.
            assert found.status[place] == status, replay
            sure = ~(found.optional[place] | found.loose[place])
            assert np.array_equal(found.memory[place][sure], model.memory[sure]), replay
            assert status is Status.PAST_MEMORY or not found.loose[place].any(), replay
    assert kinds["OK"] > 30, kinds
    assert len(kinds) > 8, kinds


def test_numbers_do_not_depend_on_who_is_beside_them() -> None:
    numbers = np.arange(1000)
    assert np.array_equal(noise(3, numbers, 64)[500:600], noise(3, numbers[500:600], 64))
    found = draw(3, numbers, "latency", 7)
    assert np.array_equal(found[17:18], draw(3, numbers[17:18], "latency", 7))
    assert set(found.tolist()) == set(range(7))
    assert not np.array_equal(found, draw(3, numbers, "stall", 7))
    assert not np.array_equal(found, draw(4, numbers, "latency", 7))


# --- pairs of wrong bits --------------------------------------------------------------------------


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
