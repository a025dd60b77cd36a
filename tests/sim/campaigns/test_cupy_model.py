"""The model computes the same on CuPy's arrays, which take no enumeration and no NumPy array.

No GPU is needed. `StrictArray` is NumPy's array with CuPy's restrictions: an operand is a
`StrictArray`, a plain bool, int, float or complex, or a NumPy scalar. An enumeration or a NumPy
array as the other operand, and an implicit copy to NumPy, raise TypeError.
"""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from bitlane.command_line.cli import DONE
from bitlane_rtl.abi import MAX_LOOPS, RECORD, RECORD_WORDS, Status
from bitlane_rtl.configuration import Configuration
from bitlane_sim.campaigns import add_campaign
from bitlane_sim.campaigns.arrays import draw, noise
from bitlane_sim.campaigns.contract import execute
from support.record import Record
from support.rtl.random_records import random_record
from support.rtl.records import reseal
from support.seeds import slow
from support.sim.harnesses import command_line, small_folder

MEMORY = 4096

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
        words = record.tolist()
        record[:] = reseal(words, Record(words).used)
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


@pytest.mark.parametrize(
    "words", [("records", "--instances", "60"), slow(("faults", "--replay", "7"))]
)
def test_a_campaign_whose_model_is_cupys_ends_without_a_failure(
    words: tuple[str, ...], cupy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--circuit", str(small_folder()), "--backend", "threads", "--model", "cupy")
    assert command_line(add_campaign, "campaign", *words, *chosen) == DONE
    assert "failure" in capsys.readouterr().out
