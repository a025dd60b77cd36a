"""Planning takes time in proportion to the operations: function calls are counted, not seconds."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from bitlane.driver.driver import Driver
from bitlane.expression.explain import explained
from bitlane.expression.form import Constant, Expression, Stored, apply, narrowed, widened
from bitlane.expression.fusion import fused
from bitlane.expression.planning import planned
from bitlane_rtl.abi import Op
from support.host.tensors import upload
from support.models.device import ModelLink


@pytest.fixture
def driver() -> Driver:
    return Driver(ModelLink())


@pytest.fixture
def leaf(driver: Driver) -> Stored:
    return upload(driver, np.zeros(100, np.uint32))


def number(value: int) -> Constant:
    return Constant(value.to_bytes(4, "little"))


def chain(leaf: Stored, count: int) -> list[Expression]:
    """Return the expression that ``for i in range(count): y = y ^ i`` builds."""
    y: Expression = leaf
    for i in range(count):
        y = apply(Op.XOR, y, number(i))
    return [y]


def doubled(leaf: Stored, count: int) -> list[Expression]:
    """Return a chain in which each value is read twice; a walk without memory never ends."""
    y: Expression = leaf
    for i in range(count // 2):
        y = apply(Op.XOR, y, apply(Op.SHIFT_LEFT, y, number(i)))
    return [y]


def converted(leaf: Stored, count: int) -> list[Expression]:
    y: Expression = leaf
    for i in range(count // 3):
        y = apply(Op.XOR, y, widened(narrowed(y, 1), 4, signed=bool(i % 2)))
    return [y]


def tree(leaf: Stored, count: int) -> list[Expression]:
    level: list[Expression] = [apply(Op.SHIFT_LEFT, leaf, number(i)) for i in range(count // 2)]
    while len(level) > 1:
        level = [apply(Op.OR, *level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
    return level


def roots(leaf: Stored, count: int) -> list[Expression]:
    return [apply(Op.AND, leaf, number(i)) for i in range(count)]


def calls(work: Callable[[], object]) -> int:
    """Return the number of calls and returns in ``work``, also of generators and C functions."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", [chain, doubled, converted, tree, roots])
def test_four_times_the_operations_take_four_times_the_calls(
    driver: Driver, leaf: Stored, kind: Callable[[Stored, int], list[Expression]]
) -> None:
    def explain(nodes: list[Expression]) -> None:
        explained(driver.geometry, fused(nodes, driver.geometry))

    small, large = kind(leaf, 256), kind(leaf, 1024)
    assert calls(lambda: explain(large)) < 5 * calls(lambda: explain(small))


def test_a_constant_is_stored_once_also_as_a_part_of_another(driver: Driver, leaf: Stored) -> None:
    y: Expression = leaf
    for content in (b"\1\2\3\4", b"\1\2\3\5", b"\1\2\3\4", bytes(4)):
        y = apply(Op.XOR, y, Constant(content))
    narrow = apply(Op.XOR, narrowed(y, 1), Constant(b"\3"))
    plan = planned([narrow], driver.geometry)
    assert plan.constants.content == bytes([1, 2, 3, 4, 0, 0, 0, 0, 1, 2, 3, 5, 0, 0, 0, 0])
    assert plan.constants.size == 16
