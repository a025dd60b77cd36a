"""The model computes the same on CuPy's arrays, which take no enumeration and no NumPy array.

No GPU is needed: `support.sim.strict_arrays` refuses what CuPy refuses.
"""

import random
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from bitlane.command_line.cli import DONE
from bitlane_rtl.abi import MAX_LOOPS, RECORD, RECORD_WORDS, Status
from bitlane_rtl.configuration import Configuration
from bitlane_sim.campaigns import add_campaign
from bitlane_sim.stand.draws import draw, noise
from bitlane_sim.stand.model.model import execute
from support.rtl.random_records import random_record
from support.rtl.records import reseal
from support.sim.stands import command_line, small_folder
from support.sim.strict_arrays import strict_cupy

MEMORY = 4096


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
    configuration = Configuration(memory_bytes=MEMORY, loops=MAX_LOOPS)
    chance = random.Random(1)
    records = np.array([random_record(chance, configuration) for _ in range(600)], np.uint32)
    # Half of them walk a few bytes of the memory, and are executed.
    for record in records[::2]:
        for name, field in RECORD.items():
            if name in ("RUN", "RESERVED") or name.startswith("COUNT_"):
                record[field.word] = 0 if name == "RESERVED" else 3
            elif name.endswith(("BASE", "LAST")):
                record[field.word] %= MEMORY
                record[field.word] &= ~np.uint32(7)
            elif "STRIDE" in name or "JUMP" in name:
                record[field.word] = chance.choice([8, 16, 24])
        record[:] = reseal(record.tolist(), RECORD_WORDS)
    records = records.reshape(-1, 2, RECORD_WORDS)
    memory = noise(1, np.arange(len(records)), MEMORY)
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


@pytest.mark.parametrize("words", [("records", "--instances", "60"), ("faults", "--replay", "7")])
def test_a_campaign_whose_model_is_cupys_ends_without_a_failure(
    words: tuple[str, ...], cupy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--circuit", str(small_folder()), "--backend", "threads", "--model", "cupy")
    assert command_line(add_campaign, "campaign", *words, *chosen) == DONE
    assert "failure" in capsys.readouterr().out
