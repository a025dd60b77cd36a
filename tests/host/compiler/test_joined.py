"""Parts that are joined: computed once, in one job, and with nothing lost."""

import numpy as np
import pytest

from bitlane.compiler.bounds import possible_bits
from bitlane.compiler.evaluate import assign, evaluate
from bitlane.compiler.explain import explain
from bitlane.compiler.nodes import Constant, apply, broadcast, count_pending, join, window
from bitlane.driver.driver import Driver
from bitlane_rtl.abi import Op
from support.host.arrays import random
from support.host.model_link import ModelLink
from support.host.tensors import download, upload


@pytest.fixture
def driver() -> Driver:
    return Driver(ModelLink(memory_bytes=1 << 12))


def test_parts_lie_one_behind_the_other(driver: Driver) -> None:
    a, b = random((3, 4), "u2", 1), random((3, 2), "u2", 2)
    x, y = upload(driver, a), upload(driver, b)
    none = window(x, 0, (3, 0), (8, 2))
    made = join([x, apply(Op.NOT, y), none, broadcast(Constant(b"\7\0"), (3, 1))], 1)
    (result,) = evaluate(driver, [made])
    wanted = np.concatenate([a, ~b, np.full((3, 1), 7, "u2")], 1)
    assert np.array_equal(download(driver, result), wanted)
    assert made.cached is result


def test_parts_are_fused(driver: Driver) -> None:
    x, y = (upload(driver, random((4,), "u1", seed)) for seed in (1, 2))
    inverse = apply(Op.NOT, apply(Op.XOR, x, y))
    lines = explain(driver.geometry.abilities, [join([inverse, x], 0)]).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["XNOR", "COPY", "COPY"]


def test_it_is_an_operation_that_waits(driver: Driver) -> None:
    x = upload(driver, random((4,), "u1", 1))
    made = join([x, apply(Op.NOT, x)], 0)
    assert count_pending(made) == 2
    kept = evaluate(driver, [made])
    assert count_pending(made) == 0
    assert len(kept) == 1


def test_any_bit_of_a_part_may_be_1() -> None:
    parts = [broadcast(Constant(bytes([n])), (2,)) for n in (1, 4)]
    bits = [apply(Op.COPY, part) for part in parts]
    assert possible_bits(join(bits, 0), lambda _: None) == 5
    assert possible_bits(join(bits[::-1], 0), lambda _: None) == 5


def test_a_target_takes_all_parts(driver: Driver) -> None:
    a, b = random((3, 2), "u1", 1), random((3, 2), "u1", 2)
    target = upload(driver, np.zeros((3, 8), np.uint8))
    x, y = upload(driver, a), upload(driver, b)
    every_other = window(target, 0, (3, 4), (8, 2))
    assign(driver, every_other, join([apply(Op.XOR, x, y), y], 1))  # type: ignore[arg-type]
    wanted = np.zeros((3, 8), np.uint8)
    wanted[:, ::2] = np.concatenate([a ^ b, b], 1)
    assert np.array_equal(download(driver, target), wanted)


def test_a_target_that_is_a_part_is_read_first(driver: Driver) -> None:
    a = random((6,), "u1", 1)
    target = upload(driver, a)
    halves = [window(target, offset, (3,), (1,)) for offset in (3, 0)]
    assign(driver, target, join(halves, 0))
    assert np.array_equal(download(driver, target), np.roll(a, 3))
