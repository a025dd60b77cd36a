"""The option ``where`` of universal functions, reductions and copies is NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import Device
from support.host.arrays import random, same

TYPES = ["i2", "?", *(pytest.param(name, marks=pytest.mark.slow) for name in ("u1", "i4", "u8"))]

REDUCTIONS: list[np.ufunc] = [
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.add,
    np.logical_and,
    np.logical_or,
]


def elements(shape: Any, dtype: str, seed: int) -> np.ndarray[Any, Any]:
    return random(shape, "u1", seed) > 99 if dtype == "?" else random(shape, dtype, seed)


def mask(shape: Any, seed: int = 3) -> np.ndarray[Any, Any]:
    return random(shape, "u1", seed) > 127


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("held", [False, True])
def test_outputs_keep_elements_that_are_left_out(device: Device, dtype: str, held: bool) -> None:
    whole = elements((5, 9), dtype, 1)
    a, y = whole[1:4, ::2], device.asarray(whole)
    for where in (mask((3, 5)), mask(5), mask((3, 1)), np.array(True), np.array(False)):
        given: Any = device.asarray(where) if held else where
        np.bitwise_xor(a, a[::-1], out=a, where=where)
        np.bitwise_xor(y[1:4, ::2], y[3:0:-1, ::2], out=y[1:4, ::2], where=given)
        assert same(y.get(), whole)
        np.copyto(a, elements((3, 5), dtype, 2), where=where)
        np.copyto(y[1:4, ::2], elements((3, 5), dtype, 2), where=given)
        assert same(y.get(), whole)
    host = whole.copy()
    np.invert(y, out=host, where=device.asarray(mask((5, 9))))
    np.invert(whole, out=whole, where=mask((5, 9)))
    assert same(host, whole)


def test_a_result_in_another_type(device: Device) -> None:
    a, where = random((4, 6), "u1"), mask(6)
    wanted, out = np.full((4, 6), 7, "i8"), device.asarray(np.full((4, 6), 7, "i8"))
    np.bitwise_count(a, out=wanted, where=where)
    np.bitwise_count(device.asarray(a), out=out, where=where)
    assert same(out.get(), wanted)
    pending = device.asarray(wanted) ^ 1
    np.equal(device.asarray(a), 7, out=(copy := pending ^ 2).astype(bool), where=where)
    assert copy.pending


def test_a_pending_output_stays_pending(device: Device) -> None:
    a, where = random(9, "u2"), mask(9)
    out = device.asarray(a) ^ 1
    np.bitwise_or(out, 0xF0, out=out, where=where)
    assert out.pending
    assert same(out.get(), np.where(where, (a ^ 1) | 0xF0, a ^ 1))


@pytest.mark.parametrize("dtype", TYPES)
def test_reductions(device: Device, dtype: str) -> None:
    a = elements((4, 3, 5), dtype, 5)
    x = device.asarray(a)
    for function in REDUCTIONS:
        for axis, where in ((None, mask((4, 3, 5))), (1, mask((3, 1))), ((0, 2), mask(5))):
            wanted = function.reduce(a, axis=axis, where=where)
            assert same(function.reduce(x, axis=axis, where=where).get(), np.asarray(wanted))


METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "any": lambda x, m: x.any(1, where=m),
    "all": lambda x, m: x.all(where=m, keepdims=True),
    "sum": lambda x, m: x.sum(0, where=m),
    "np.any": lambda x, m: np.any(x, where=m),
    "np.all": lambda x, m: np.all(x, 0, where=m),
    "np.sum": lambda x, m: np.sum(x, 1, where=m),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("held", [False, True])
def test_methods_and_functions(device: Device, name: str, held: bool) -> None:
    a, where = random((4, 6), "i2"), mask((4, 6))
    for m in (where, where[0], np.zeros((4, 6), bool)):
        got = METHODS[name](device.asarray(a), device.asarray(m) if held else m)
        assert same(got.get(), np.asarray(METHODS[name](a, m)))


def test_floats_that_are_left_out(device: Device) -> None:
    a = np.array([[0.0, np.nan, -0.0], [1, 0, np.inf]])
    x = device.asarray(a)
    for where in (mask((2, 3)), ~mask((2, 3)), [True, False, True]):
        assert same(np.any(x, 1, where=where).get(), np.any(a, 1, where=where))
        assert same(np.all(x, 1, where=where).get(), np.all(a, 1, where=where))


def test_sums_of_chosen_truth_values_are_one_pass(device: Device) -> None:
    x = device.asarray(mask(4096, 1))
    table = bitlane.explain(np.sum(x, where=device.asarray(mask(4096, 2)), dtype=np.uint32))
    assert table.splitlines()[1].startswith("COUNT_AND SUM")
    assert "fused          1 pass " in table
