"""Explanations list the passes that would run, with their commands, bytes and cycles."""

import numpy as np
import pytest

from bitlane.driver.commands import Command
from bitlane.driver.driver import Driver
from bitlane.driver.geometry import Geometry
from bitlane.expression.explain import explain
from bitlane.expression.form import Constant, Stored, apply, window
from bitlane.jobs import cost
from bitlane_rtl.abi import Op
from support.host.tensors import upload
from support.models.device import ModelLink


@pytest.fixture
def link() -> ModelLink:
    return ModelLink(loops=1, ops=frozenset(op for op in Op if not op.counts) | {Op.COUNT})


@pytest.fixture
def driver(link: ModelLink) -> Driver:
    return Driver(link)


@pytest.fixture
def tensor(driver: Driver) -> Stored:
    return upload(driver, np.zeros((64, 64), np.uint32))


def test_passes_are_listed_beside_what_they_would_be_unfused(
    driver: Driver, link: ModelLink, tensor: Stored
) -> None:
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


def test_the_work_grows_with_the_number_of_passes(
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
