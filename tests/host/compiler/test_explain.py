"""Explanations list the passes that would run; planning takes time in proportion to operations."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from bitlane.compiler import (
    Constant,
    Expression,
    Stored,
    apply,
    explain,
    fuse,
    narrow,
    pass_costs,
    plan_passes,
    widen,
    window,
)
from bitlane.driver import Command, Driver, Geometry
from bitlane.lowering import cost
from bitlane_rtl.abi import Op
from support.host.expressions import upload
from support.host.model_link import ModelLink


@pytest.fixture
def link() -> ModelLink:
    return ModelLink(loops=1, ops=frozenset(op for op in Op if not op.counts) | {Op.COUNT})


@pytest.fixture
def tensor(driver: Driver) -> Stored:
    return upload(driver, np.zeros((64, 64), np.uint32))


def test_passes_are_listed_fused_and_not(driver: Driver, link: ModelLink, tensor: Stored) -> None:
    inverted = apply(Op.NOT, apply(Op.AND, tensor, Constant(b"\1\2\3\4")))
    rows = window(tensor, 0, (2, 64), (8192, 4))
    pair = apply(Op.XOR, window(inverted, 0, (2, 64), (8192, 4)), rows)
    assert explain(driver.geometry, [apply(Op.COUNT, pair)]).splitlines() == [
        "pass     elements            commands  runs  bytes read  bytes written  cycles",
        "NAND     64 x 64 of 32 bits         1     1      16,388         16,384   2,065",
        "XOR      2 x 64 of 32 bits          2     2       1,024            512      79",
        "COUNT    2 x 64 of 32 bits          1     1         512            128      79",
        "fused    3 passes                   4     4      17,924         17,024   2,223",
        "unfused  4 passes                   5     5      34,308         33,408   4,286",
    ]
    assert link.log == []


def test_passes_that_need_nothing_of_each_other_do_not_wait(driver: Driver, tensor: Stored) -> None:
    roots = [apply(Op.NOT, tensor), apply(Op.SHIFT_LEFT, tensor, tensor)]
    cycles = [line.split()[-1] for line in explain(driver.geometry, roots).splitlines()]
    assert cycles[1:4] == ["2,065", "2,048", "4,113"]


def test_what_is_stored_needs_nothing(driver: Driver, tensor: Stored) -> None:
    assert explain(driver.geometry, [tensor]).splitlines()[1:] == [
        "fused    0 passes         0     0           0              0       0",
        "unfused  0 passes         0     0           0              0       0",
    ]


def test_what_the_memory_cannot_hold_is_explained_too(driver: Driver, tensor: Stored) -> None:
    large = window(tensor, 0, (1000, 64, 64), (0, 256, 4))
    lines = explain(driver.geometry, [apply(Op.NOT, large)]).splitlines()
    assert "1000 x 64 x 64 of 32 bits" in lines[1]
    assert lines[2].split()[:3] == ["fused", "1", "pass"]


def test_the_work_grows_with_passes(
    driver: Driver, tensor: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cost.beats
    looks = 0

    def counting(command: Command, geometry: Geometry) -> int:
        nonlocal looks
        looks += 1
        return plain(command, geometry)

    def looks_at(passes: int) -> int:
        nonlocal looks
        looks, result = 0, apply(Op.XOR, tensor, tensor)
        for _ in range(passes - 1):
            result = apply(Op.XOR, result, tensor)
        assert f"fused    {passes} passes" in explain(driver.geometry, [result])
        return looks

    monkeypatch.setattr(cost, "beats", counting)
    assert looks_at(40) == 2 * looks_at(20)


# --- planning ---------------------------------------------------------------------------------


@pytest.fixture
def plain() -> Driver:
    return Driver(ModelLink())


@pytest.fixture
def leaf(plain: Driver) -> Stored:
    return upload(plain, np.zeros(100, np.uint32))


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
        y = apply(Op.XOR, y, widen(narrow(y, 1), 4, signed=bool(i % 2)))
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
    plain: Driver, leaf: Stored, kind: Callable[[Stored, int], list[Expression]]
) -> None:
    def explain_all(nodes: list[Expression]) -> None:
        pass_costs(plan_passes(fuse(nodes, plain.geometry), plain.geometry), plain.geometry)

    small, large = kind(leaf, 128), kind(leaf, 512)
    assert calls(lambda: explain_all(large)) < 5 * calls(lambda: explain_all(small))


def test_a_constant_is_stored_once_also_as_a_part_of_another(plain: Driver, leaf: Stored) -> None:
    y: Expression = leaf
    for content in (b"\1\2\3\4", b"\1\2\3\5", b"\1\2\3\4", bytes(4)):
        y = apply(Op.XOR, y, Constant(content))
    low = apply(Op.XOR, narrow(y, 1), Constant(b"\3"))
    plan = plan_passes([low], plain.geometry)
    assert plan.constants.content == bytes([1, 2, 3, 4, 0, 0, 0, 0, 1, 2, 3, 5, 0, 0, 0, 0])
    assert plan.constants.size == 16
