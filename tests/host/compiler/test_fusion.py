"""Inversions, counts and sums need no separate pass where the circuit fuses them; joins do not."""

import doctest
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.compiler import (
    Constant,
    Expression,
    Stored,
    add_up,
    apply,
    assign,
    broadcast,
    copy_ordered,
    count_pending,
    evaluate,
    explain,
    fusion,
    join,
    narrow,
    possible_bits,
    truth_of,
    window,
)
from bitlane.driver import Driver
from bitlane.errors import LayoutError
from bitlane_rtl.abi import Mode, Op
from support.host.arrays import random
from support.host.expressions import download, upload
from support.host.model_link import ModelLink

SIZE = 1024


@dataclass
class Bench:
    """Four tensors on a modelled device; it reports the passes that compute an expression."""

    link: ModelLink = field(default_factory=lambda: ModelLink(memory_bytes=1 << 17))

    def __post_init__(self) -> None:
        self.driver = Driver(self.link)
        source = np.random.default_rng(1)
        self.arrays = [source.integers(0, 1 << 32, SIZE, np.uint32) for _ in range(4)]
        self.leaves = [upload(self.driver, array) for array in self.arrays]

    def passes(self, *roots: Expression) -> list[str]:
        """Return the operations that the device executes to compute ``roots``."""
        self.link.log.clear()
        self.results = evaluate(self.driver, roots)
        return [Op(record.op).name for record in self.link.log]

    def values(self) -> list[NDArray[Any]]:
        return [download(self.driver, result) for result in self.results]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def invert(x: Expression) -> Expression:
    return apply(Op.NOT, x)


def test_logic_that_others_need_is_not_counted_on_the_way(bench: Bench) -> None:
    a, b, *_ = bench.leaves
    shared = apply(Op.XOR, a, b)
    assert bench.passes(apply(Op.COUNT, shared), shared) == ["XOR", "COUNT"]


def test_an_inversion_that_several_need_is_done_once(bench: Bench) -> None:
    a, b, c, _ = bench.leaves
    inverted = invert(a)
    roots = [apply(Op.AND, inverted, b), apply(Op.AND, inverted, c), apply(Op.XOR, inverted, b)]
    assert sorted(bench.passes(*roots)) == ["AND", "AND", "NOT", "XNOR"]
    x, y, z, _ = bench.arrays
    for got, expected in zip(bench.values(), [~x & y, ~x & z, ~x ^ y], strict=True):
        assert np.array_equal(got, expected)


def test_a_node_that_is_needed_inverted_alone_is_computed_so(bench: Bench) -> None:
    a, b, c, _ = bench.leaves
    inverted = invert(apply(Op.AND, a, b))
    roots = [apply(Op.AND, inverted, c), apply(Op.SHIFT_LEFT, c, inverted)]
    assert sorted(bench.passes(*roots)) == ["AND", "NAND", "SHIFT_LEFT"]


def test_results_have_memory_of_their_own(bench: Bench) -> None:
    a, b, *_ = bench.leaves
    both = apply(Op.AND, a, b)
    roots = [both, apply(Op.COPY, both), invert(invert(both)), invert(invert(a)), a]
    bench.passes(*roots)
    x, y, *_ = bench.arrays
    for got, expected in zip(bench.values(), [x & y, x & y, x & y, x, x], strict=True):
        assert np.array_equal(got, expected)
    assert len({result.storage for result in bench.results}) == len(roots)
    assert bench.results[-1] is a


def test_windows_of_a_node_have_memory_of_their_own(bench: Bench) -> None:
    a, b, *_ = bench.leaves
    inverted = invert(apply(Op.OR, a, b))
    part = window(inverted, 16, (5,), (8,))
    assert bench.passes(part, inverted) == ["NOR", "COPY"]
    assert bench.results[0].storage is not bench.results[1].storage
    x, y, *_ = bench.arrays
    assert np.array_equal(bench.values()[0], (~(x | y))[4:14:2])


def test_a_copy_in_another_order_is_not_what_it_copies(bench: Bench) -> None:
    matrix = window(bench.leaves[0], 0, (32, 32), (4, 128))
    inverted = invert(matrix)
    copy = copy_ordered(invert(inverted), (0, 1))
    assert sorted(bench.passes(copy_ordered(inverted, (0, 1)), copy)) == ["COPY", "COPY", "NOT"]
    x = bench.arrays[0].reshape(32, 32).T
    for got, expected in zip(bench.values(), [~x, x], strict=True):
        assert np.array_equal(got, expected)
        assert got.flags.c_contiguous


def test_a_value_is_written_in_the_order_that_is_asked_for(bench: Bench) -> None:
    matrix = window(bench.leaves[0], 0, (32, 32), (4, 128))
    assert bench.passes(copy_ordered(invert(matrix), (0, 1))) == ["NOT"]
    assert np.array_equal(bench.values()[0], ~bench.arrays[0].reshape(32, 32).T)
    assert bench.values()[0].flags.c_contiguous


def test_of_elements_that_are_narrowed_only_the_low_bytes_are_computed(bench: Bench) -> None:
    a, b, c, d = bench.leaves
    x, y, z, w = bench.arrays
    low = narrow(apply(Op.NAND, apply(Op.SHIFT_RIGHT, a, b), apply(Op.OR, c, d)), 1)
    assert sorted(bench.passes(low)) == ["NAND", "OR", "SHIFT_RIGHT"]
    assert np.array_equal(bench.values()[0], (~((x >> y) & (z | w))).astype("u1"))
    high = apply(Op.COPY, window(apply(Op.XOR, a, b), 2, (SIZE,), (4,), 2))
    assert bench.passes(high) == ["XOR"]
    assert np.array_equal(bench.values()[0], ((x ^ y) >> 16).astype("u2"))
    shifted = narrow(apply(Op.SHIFT_LEFT, a, Constant(b"\3\0\0\0")), 2)
    assert bench.passes(shifted) == ["SHIFT_LEFT", "COPY"]
    assert np.array_equal(bench.values()[0], (x << 3).astype("u2"))


def test_of_elements_that_others_need_whole_the_low_bytes_are_copied(bench: Bench) -> None:
    a, b, *_ = bench.leaves
    x, y, *_ = bench.arrays
    both = apply(Op.XOR, a, Constant(b"\1\2\3\4"))
    assert sorted(bench.passes(narrow(both, 2), apply(Op.AND, both, b))) == ["AND", "COPY", "XOR"]
    assert np.array_equal(bench.values()[0], (x ^ 0x04030201).astype("u2"))
    assert np.array_equal(bench.values()[1], (x ^ 0x04030201) & y)


def test_a_copy_gathers_once_for_all_its_readers(bench: Bench) -> None:
    matrix = window(bench.leaves[0], 0, (32, 32), (4, 128))
    # Read once, a transposed operand needs no copy; read often, it is worth one.
    other = window(bench.leaves[1], 0, (32, 32), (128, 4))
    copy = copy_ordered(matrix, (0, 1))
    assert bench.passes(apply(Op.XOR, copy, other)) == ["XOR"]
    both = [apply(op, copy, other) for op in (Op.XOR, Op.AND)]
    assert sorted(bench.passes(*both)) == ["AND", "COPY", "XOR"]


def test_truth_values_are_inverted_and_added_up_without_a_pass(bench: Bench) -> None:
    a, b, *_ = bench.leaves
    x, y, *_ = bench.arrays
    equal = truth_of(apply(Op.AND, a, b), negate=True)
    roots = [apply(Op.XOR, equal, Constant(b"\1")), add_up(apply(Op.COUNT, invert(equal)), (0,))]
    assert bench.passes(roots[0]) == ["COUNT_AND"]
    assert np.array_equal(bench.values()[0], (x & y != 0).view("u1"))
    ones = [7, 8]  # of the bytes 0xFE and 0xFF
    assert bench.passes(roots[1]) == ["COUNT_AND", "COUNT_XOR"]
    assert bench.values()[0] == np.take(ones, (x & y != 0).view("u1")).sum()
    truth = (x != 0).view("u1")
    cases = [
        (apply(Op.XOR, invert(truth_of(a)), Constant(b"\1")), ~truth ^ np.uint8(1)),
        (apply(Op.XOR, truth_of(a), Constant(b"\3")), truth ^ np.uint8(3)),
        (add_up(truth_of(truth_of(a), negate=True), (0,)), (x == 0).sum()),
    ]
    bench.passes(*[node for node, _ in cases])
    for got, (_, expected) in zip(bench.values(), cases, strict=True):
        assert np.array_equal(got, expected)


def test_truth_values_that_others_need_are_not_tested_twice(bench: Bench) -> None:
    a, b, *_ = bench.leaves
    equal = truth_of(apply(Op.XOR, a, b), negate=True)
    inverted = apply(Op.XOR, equal, Constant(b"\1"))
    count = add_up(apply(Op.COUNT, equal), (0,))
    assert sorted(bench.passes(equal, inverted, count)) == ["COUNT", "COUNT_XOR", "XOR"]


def test_worked_example_in_the_docstring(bench: Bench) -> None:
    names = {"a": bench.leaves[0], "b": bench.leaves[1], "abilities": bench.driver.geometry}
    failed, tried = doctest.testmod(fusion, extraglobs=names)
    assert (failed, tried) == (0, 12)


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
