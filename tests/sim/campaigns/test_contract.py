"""The model of many instances agrees with the interpreter of one record, and with NumPy.

It computes the same on CuPy's arrays, which take no enumeration and no NumPy array. No GPU is
needed: `StrictArray` is NumPy's array with CuPy's restrictions. An operand is a `StrictArray`, a
plain bool, int, float or complex, or a NumPy scalar. An enumeration or a NumPy array as the other
operand, and an implicit copy to NumPy, raise TypeError.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from bitlane.command_line import DONE
from bitlane.driver import encode
from bitlane.errors import LayoutError, UnsupportedError
from bitlane_rtl.abi import MAX_LOOPS, RECORD, RECORD_SEAL, RECORD_WORDS, Status
from bitlane_rtl.configuration import Configuration
from bitlane_sim.campaigns import (
    CircuitOptions,
    RecordPlan,
    Stage,
    add_campaign,
    draw,
    execute,
    geometry_of,
    harness,
    make_circuit,
    noise,
    run_plan,
)
from bitlane_sim.campaigns.trials import SIZE, random_trial
from bitlane_sim.circuit_options import configuration_of
from bitlane_sim.system import System
from support.record import Record, random_record
from support.rtl.records import reseal
from support.seeds import slow
from support.sim.harnesses import SMALL, command_line, quiet, small_circuit, small_folder
from support.watched import WatchedInterpreter

pytestmark = pytest.mark.any_face

MEMORY = 16384


def packed(commands: list[Any], most: int) -> NDArray[np.uint32]:
    """Records of commands as the model takes them, with rubbish in words that are not in use."""
    records = np.random.default_rng(1).integers(0, 1 << 32, (most, RECORD_WORDS), np.uint32)
    for record, command in zip(records, commands, strict=False):
        words = encode(command)
        record[: words.size] = words
    return records


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_numbers_do_not_depend_on_who_is_beside_them() -> None:
    numbers = np.arange(1000)
    assert np.array_equal(noise(3, numbers, 64)[500:600], noise(3, numbers[500:600], 64))
    found = draw(3, numbers, "latency", 7)
    assert np.array_equal(found[17:18], draw(3, numbers[17:18], "latency", 7))
    assert set(found.tolist()) == set(range(7))
    assert not np.array_equal(found, draw(3, numbers, "stall", 7))
    assert not np.array_equal(found, draw(4, numbers, "latency", 7))


# --- pairs of wrong bits --------------------------------------------------------------------------


@pytest.mark.slow
def test_every_bit_and_every_pair_but_those_of_the_seal() -> None:
    plan = RecordPlan(Stage(small_circuit(), "threads"), None)
    jobs, low, high = plan.bits(np.arange(plan.instances))
    for number, job in enumerate(plan.jobs):
        found = set(zip(low[jobs == number].tolist(), high[jobs == number].tolist(), strict=True))
        bits = [bit for bit in range(32 * int(job.used[0])) if not 24 <= bit < 32]
        assert found == {(x, y) for x in bits for y in bits if x <= y}
        assert len(found) == np.count_nonzero(jobs == number)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


# --- CuPy -----------------------------------------------------------------------------------------


LITTLE = 4096

_SCALARS = (bool, int, float, complex)


class StrictArray(NDArrayOperatorsMixin):
    """An array "on the GPU"; `get` copies it to NumPy. A result without axes is an array, too."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, inner: Any) -> None:
        self._inner = np.asarray(inner)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        if method != "__call__":
            return NotImplemented
        return _applied(ufunc)(*inputs, **more)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._inner, name)
        return _applied(found) if callable(found) else found

    def __getitem__(self, index: Any) -> "StrictArray":
        return StrictArray(self._inner[_index(index)])

    def __setitem__(self, index: Any, values: Any) -> None:
        self._inner[_index(index)] = _operand(values)

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator["StrictArray"]:
        return map(StrictArray, self._inner)

    def __bool__(self) -> bool:
        return bool(self._inner)

    def __int__(self) -> int:
        return int(self._inner)

    def __index__(self) -> int:
        return self._inner.__index__()

    def get(self) -> Any:
        return self._inner.copy()


def _operand(value: Any) -> Any:
    """Return NumPy's form of ``value``. Raises TypeError for types that CuPy refuses."""
    if isinstance(value, StrictArray):
        return value._inner
    if type(value) in _SCALARS or isinstance(value, np.generic):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def _index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    return index if index is None or isinstance(index, slice) else _operand(index)


def _setting(value: Any) -> Any:
    """Return NumPy's form of an argument that may also be a shape, a type or a string."""
    if isinstance(value, type | np.dtype | str | tuple) or value is None:
        return value
    return _operand(value)


def _applied(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` of NumPy as a function of arrays of this module."""

    def call(*given: Any, out: tuple[StrictArray, ...] | None = None, **more: Any) -> Any:
        words = {name: _setting(value) for name, value in more.items()}
        if out is not None:
            function(*map(_setting, given), out=tuple(x._inner for x in out), **words)
            return out[0]
        found = function(*map(_setting, given), **words)
        return StrictArray(found) if isinstance(found, np.ndarray | np.generic) else found

    return call


_NAMES = "arange bincount cumsum flatnonzero full maximum minimum searchsorted where zeros"


def strict_cupy() -> Any:
    """Return the parts of CuPy that the model of many instances uses; for `sys.modules`."""
    runtime = SimpleNamespace(getDeviceCount=lambda: 1)
    functions = {name: _applied(getattr(np, name)) for name in _NAMES.split()}
    return SimpleNamespace(
        asarray=lambda array: StrictArray(np.array(array)),
        cuda=SimpleNamespace(runtime=runtime),
        **functions,
    )


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = strict_cupy()
    monkeypatch.setitem(sys.modules, "cupy", found)
    return found


@pytest.mark.parametrize(
    "mixed",
    [
        lambda array: array != Status.OK,
        lambda array: array == Status.OK,
        lambda array: array + np.ones(3, np.int64),
        lambda array: np.ones(3, np.int64) | array,
        lambda array: array[np.array([0, 1])],
        lambda array: np.add.reduce(array),
        lambda array: np.asarray(array),
        lambda array: np.concatenate([array, array]),
    ],
)
def test_the_stand_in_refuses_what_cupy_refuses(mixed: Callable[[Any], Any], cupy: Any) -> None:
    array = cupy.asarray(np.arange(3))
    with pytest.raises(TypeError):
        mixed(array)


def test_the_stand_in_takes_what_cupy_takes(cupy: Any) -> None:
    array = cupy.asarray(np.arange(3))
    array[array == 1] = Status.OK.value
    array |= np.int64(8)
    assert (np.uint64(1) << array.astype(np.uint64)).get().tolist() == [256, 256, 1024]
    assert int(array[-1]) == len(array) + 7 == 10


def test_the_model_is_the_same_on_both(cupy: Any) -> None:
    configuration = Configuration(memory_bytes=LITTLE, loops=MAX_LOOPS)
    chance = random.Random(1)
    records = np.array([random_record(chance, configuration) for _ in range(600)], np.uint32)
    # Half of them walk a few bytes of the memory, and are executed.
    for record in records[::2]:
        for name, field in RECORD.items():
            if name in ("RUN", "RESERVED") or name.startswith("COUNT_"):
                record[field.word] = 0 if name == "RESERVED" else 3
            elif name.endswith(("BASE", "LAST")):
                record[field.word] %= LITTLE
                record[field.word] &= ~np.uint32(7)
            elif "STRIDE" in name or "JUMP" in name:
                record[field.word] = chance.choice([8, 16, 24])
        words = record.tolist()
        record[:] = reseal(words, Record(words).used)
    records = records.reshape(-1, 2, RECORD_WORDS)
    memory = noise(1, np.arange(len(records)), LITTLE)
    counts = 1 + draw(1, np.arange(len(records)), "counts", 2)
    wanted = execute(memory, records, counts, configuration, 4096)
    given = (cupy.asarray(array) for array in (memory, records, counts))
    found = execute(*given, configuration, 4096)
    for field in fields(wanted):
        array = getattr(found, field.name).get()
        assert np.array_equal(array, getattr(wanted, field.name)), field.name
    kinds = set(wanted.status.tolist())
    assert {Status.OK, Status.BAD_OP, Status.BAD_LANE, Status.PAST_MEMORY} <= kinds
    assert (wanted.memory != memory).any()
    assert wanted.loose.any()


def test_a_draw_is_the_same_on_both(cupy: Any) -> None:
    numbers = np.arange(50)
    there = cupy.asarray(numbers)
    assert np.array_equal(draw(3, there, "latency", 7).get(), draw(3, numbers, "latency", 7))
    assert np.array_equal(noise(3, there, 64).get(), noise(3, numbers, 64))


@pytest.mark.parametrize(
    "words", [("records", "--instances", "60"), slow(("faults", "--replay", "7"))]
)
def test_a_campaign_whose_model_is_cupys_ends_without_a_failure(
    words: tuple[str, ...], cupy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--circuit", str(small_folder()), "--backend", "threads", "--model", "cupy")
    assert command_line(add_campaign, "campaign", *words, *chosen) == DONE
    assert "failure" in capsys.readouterr().out
