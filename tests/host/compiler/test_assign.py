"""Assigned values are those from before the assignment, wherever operands and target lie."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane.compiler.evaluate import assign
from bitlane.compiler.nodes import Constant, Stored, apply, widen, window
from bitlane.driver.driver import Driver
from bitlane.errors import LayoutError, ShapeError
from bitlane_rtl.abi import Op
from support.host.expressions import play, programs
from support.host.model_link import ModelLink
from support.host.tensors import download, upload

Array = NDArray[Any]

SEED = 3


class Bench:
    """A tensor of 8 x 12 elements of 32 bits, on a modelled device and in NumPy."""

    def __init__(self) -> None:
        self.link = ModelLink(memory_bytes=1 << 16)
        self.driver = Driver(self.link)
        self.array = np.random.default_rng(SEED).integers(0, 1 << 32, (8, 12), np.uint32)
        self.node = upload(self.driver, self.array)

    def part(self, *key: slice) -> tuple[Stored, Array]:
        """Return a view of the tensor as a node and as an array."""
        part = self.array[key]
        offset = part.ctypes.data - self.array.ctypes.data
        node = window(self.node, offset, part.shape, part.strides)
        assert isinstance(node, Stored)
        return node, part

    def passes(self) -> list[str]:
        return [Op(record.op).name for record in self.link.log]


HALF = slice(None, 6)


def test_the_last_operation_writes_to_the_target_itself() -> None:
    bench = Bench()
    (target, array), (operand, values) = bench.part(slice(3)), bench.part(slice(None, -4, -1))
    inverted = apply(Op.NOT, apply(Op.OR, apply(Op.SHIFT_RIGHT, target, target), operand))
    assign(bench.driver, target, inverted)
    array[...] = ~(np.right_shift(array, array) | values)
    assert np.array_equal(download(bench.driver, bench.node), bench.array)
    assert bench.passes() == ["SHIFT_RIGHT", "NOR"]


def test_an_operator_in_place_is_one_pass() -> None:
    bench = Bench()
    (target, array), (operand, values) = bench.part(slice(3)), bench.part(slice(3, 6))
    assign(bench.driver, target, apply(Op.XOR, operand, target))
    array ^= values
    assert np.array_equal(download(bench.driver, bench.node), bench.array)
    assert bench.passes() == ["XOR"]


def test_signs_spread_into_the_target() -> None:
    bench = Bench()
    target, array = bench.part(HALF)
    assign(bench.driver, target, widen(window(target, 1, (6, 12), (48, 4), 1), 4, signed=True))
    array[...] = ((array << 16).view("i4") >> 24).view("u4")
    assert np.array_equal(download(bench.driver, bench.node), bench.array)
    assert bench.passes() == ["COPY", "SHIFT_RIGHT"]


def test_assigning_a_tensor_to_itself_does_nothing() -> None:
    bench = Bench()
    assign(bench.driver, bench.node, bench.node)
    assert bench.passes() == []


def test_targets_may_lie_off_their_elements_places() -> None:
    bench = Bench()
    target = window(bench.node, 3, (20,), (8,))
    assert isinstance(target, Stored)
    array = np.ndarray((20,), "u4", bench.array.data, 3, (8,))
    assign(bench.driver, target, apply(Op.SHIFT_LEFT, target, Constant(b"\5\0\0\0")))
    array[...] = array << 5
    assert np.array_equal(download(bench.driver, bench.node), bench.array)


def test_what_does_not_fit_is_refused() -> None:
    bench = Bench()
    with pytest.raises(LayoutError, match="value: 2 bytes; expected 4"):
        assign(bench.driver, bench.node, Constant(b"\0\0"))
    with pytest.raises(ShapeError, match=r"\(8, 12\) does not broadcast to \(12,\)"):
        assign(bench.driver, window(bench.node, 0, (12,), (4,)), bench.node)  # type: ignore[arg-type]
    assert bench.passes() == []


@given(programs(6), st.integers(0, 20), st.integers(0, 20))
def test_any_value_over_any_leaf(program: Any, leaf: int, root: int) -> None:
    driver = Driver(ModelLink(memory_bytes=1 << 18))
    stored: list[Stored] = []

    def store(array: Array) -> Stored:
        stored.append(upload(driver, array))
        return stored[-1]

    values = play(program, store)
    target = stored[leaf % len(stored)]
    for value, node in values:
        if node.itemsize == target.itemsize and node.shape == target.shape:
            expected = value.copy()
            assign(driver, target, node)
            assert np.array_equal(download(driver, target), expected)
            break
