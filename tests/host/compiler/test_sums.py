"""Sums of counts are fused into one pass, or need two; joined parts are computed in one job."""

import numpy as np
import pytest

from bitlane.compiler.bounds import possible_bits
from bitlane.compiler.evaluate import assign, evaluate
from bitlane.compiler.explain import explain
from bitlane.compiler.nodes import (
    Constant,
    Stored,
    add_up,
    apply,
    broadcast,
    count_pending,
    join,
    window,
)
from bitlane.driver.driver import Driver
from bitlane.errors import LayoutError, RowTooLongError, UnsupportedError
from bitlane_rtl.abi import Mode, Op
from support.host.arrays import random
from support.host.model_link import ModelLink
from support.host.tensors import download, upload


def test_elements_that_are_no_run_are_packed_first(driver: Driver, link: ModelLink) -> None:
    a, b = random((5, 7, 6), "u4"), random((7, 1), "u4")
    differ = apply(Op.XOR, upload(driver, a), upload(driver, b))
    (sums,) = evaluate(driver, [add_up(apply(Op.COUNT, differ), (0, 2))])
    assert [Op(record.op) for record in link.log] == [Op.XOR, Op.COUNT]
    assert np.array_equal(download(driver, sums), np.bitwise_count(a ^ b).sum((0, 2)))


def test_counts_that_are_wanted_too_are_counted_besides(driver: Driver, link: ModelLink) -> None:
    a = random((12, 8), "u4")
    counts = apply(Op.COUNT, apply(Op.NOT, upload(driver, a)))
    each, sums = evaluate(driver, [counts, add_up(counts, (0,))])
    assert np.array_equal(download(driver, each), np.bitwise_count(~a))
    assert np.array_equal(download(driver, sums), np.bitwise_count(~a).sum(0))
    assert Mode.SUM in [Mode(record.control["Y_MODE"]) for record in link.log]


def test_a_value_that_repeats_is_not_written_over_by_its_sum(driver: Driver) -> None:
    a = random((30, 1), "u4")
    inverse = apply(Op.SHIFT_LEFT, upload(driver, a), Constant(b"\1\0\0\0"))
    wide = broadcast(inverse, (30, 5))
    roots = [add_up(apply(Op.COUNT, wide), (1,)), apply(Op.NOT, inverse)]
    sums, inverted = evaluate(driver, roots)
    assert np.array_equal(download(driver, sums), np.bitwise_count(a << 1).ravel() * 5)
    assert np.array_equal(download(driver, inverted), ~(a << 1))


def test_one_pass_is_explained_beside_two(driver: Driver, link: ModelLink) -> None:
    rows, query = upload(driver, random((64, 64), "u4")), upload(driver, random((64,), "u4"))
    differ = apply(Op.XOR, rows, query)
    assert explain(driver.geometry, [add_up(apply(Op.COUNT, differ), (1,))]).splitlines() == [
        "pass           elements            commands  runs  bytes read  bytes written  cycles",
        "COUNT_XOR SUM  64 x 64 of 32 bits         1    64      32,768            256   2,065",
        "fused          1 pass                     1    64      32,768            256   2,065",
        "unfused        2 passes                   2   128      49,152         16,640   4,128",
    ]
    assert link.log == []


def test_rows_longer_than_a_run_are_refused_before_anything_is_done(driver: Driver) -> None:
    narrow = Driver(ModelLink(length_bits=12))
    x = upload(narrow, random((3, 1024), "u4"))
    with pytest.raises(RowTooLongError, match="4096 bytes a row; expected 4095"):
        evaluate(narrow, [add_up(apply(Op.COUNT, x), (1,))])
    assert narrow.allocator.pieces == 1


def test_a_device_without_sums_refuses_them_by_name() -> None:
    driver = Driver(ModelLink(modes=frozenset(Mode) - {Mode.SUM}))
    x = upload(driver, random((3, 4), "u4"))
    with pytest.raises(UnsupportedError, match="without sums of COUNT"):
        evaluate(driver, [add_up(apply(Op.COUNT, x), (1,))])


def test_only_counts_are_added_up(driver: Driver) -> None:
    x: Stored = upload(driver, random((3, 4), "u4"))
    with pytest.raises(LayoutError, match="XOR; expected an operation that counts"):
        add_up(apply(Op.XOR, x, x), (0,))
    with pytest.raises(LayoutError, match="unsummed"):
        add_up(add_up(apply(Op.COUNT, x), (0,)), (0,))


# --- joined parts ---------------------------------------------------------------------------------


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


def test_a_target_that_is_a_part_is_read_first(driver: Driver) -> None:
    a = random((6,), "u1", 1)
    target = upload(driver, a)
    halves = [window(target, offset, (3,), (1,)) for offset in (3, 0)]
    assign(driver, target, join(halves, 0))
    assert np.array_equal(download(driver, target), np.roll(a, 3))
