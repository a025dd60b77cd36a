"""Expressions give NumPy's bits, in one job, and are written over targets that they read."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane.compiler import Constant, Expression, Stored, apply, assign, evaluate, widen, window
from bitlane.driver import Driver
from bitlane.errors import DeviceFault, LayoutError, OutOfDeviceMemory, ShapeError, UnsupportedError
from bitlane_rtl.abi import BIT_OPS, Lane, Mode, Op
from support.host.arrays import random
from support.host.expressions import (
    Program,
    download,
    expect_numpys,
    later,
    now_and_then,
    one_by_one,
    play,
    programs,
    upload,
)
from support.host.model_link import ModelLink
from support.seeds import examples

MEMORY = 1 << 16


def value(driver: Driver, root: Expression) -> NDArray[Any]:
    return download(driver, evaluate(driver, [root])[0])


@pytest.mark.parametrize(
    ("ports", "narrow", "wide", "signed", "expected"),
    [
        (2, 1, 4, False, ["AND"]),
        (2, 4, 8, False, ["AND"]),
        (1, 1, 2, False, ["COPY", "COPY"]),
        (2, 1, 4, True, ["COPY", "SHIFT_RIGHT"]),
    ],
)
def test_zeros_are_added_as_the_circuit_does_it_fastest(
    ports: int, narrow: int, wide: int, signed: bool, expected: list[str]
) -> None:
    link = ModelLink(memory_bytes=MEMORY, read_ports=ports)
    driver = Driver(link)
    x = widen(upload(driver, random(2048, f"u{narrow}")), wide, signed=signed)
    evaluate(driver, [x])
    assert [Op(record.op).name for record in link.log] == expected


def test_a_shared_node_is_computed_once_and_all_in_one_job(driver: Driver, link: ModelLink) -> None:
    a, b = random(64, "u4"), random(64, "u4", 2)
    shared = apply(Op.XOR, upload(driver, a), upload(driver, b))
    left, right = apply(Op.SHIFT_LEFT, shared, shared), apply(Op.COUNT, shared, itemsize=4)
    got = evaluate(driver, [left, right, shared])
    assert len(link.log) == 3
    assert [record.control["INTERRUPT"] for record in link.log] == [0, 0, 1]
    assert [record.control["FENCE"] for record in link.log] == [1, 1, 0]
    x = a ^ b
    for stored, expected in zip(got, [np.left_shift(x, x), np.bitwise_count(x), x], strict=True):
        assert np.array_equal(download(driver, stored), expected)


def test_what_is_stored_already_is_given_as_it_is(driver: Driver, link: ModelLink) -> None:
    a = upload(driver, random(64, "u4"))
    assert evaluate(driver, [a, a]) == [a, a]
    assert link.log == []


def test_intermediates_take_no_memory_where_the_next_value_fits(driver: Driver) -> None:
    a = upload(driver, random(MEMORY // 8, "u4"))
    x: Expression = a
    for _ in range(20):
        x = apply(Op.NOT, x)
        x = apply(Op.XOR, a, x)
    # The operand and the result are all the memory: nothing is left for a temporary.
    assert np.array_equal(value(driver, x), download(driver, a))


def test_what_does_not_fit_side_by_side_is_done_in_turn(driver: Driver, link: ModelLink) -> None:
    a = random(MEMORY // 64, "u4")
    x = upload(driver, a)
    numbers = range(1, 21)
    pairs = [apply(Op.XOR, apply(Op.SHIFT_LEFT, x, x), Constant(bytes([n] * 4))) for n in numbers]
    total: Expression = pairs[0]
    for each in pairs[1:]:
        total = apply(Op.OR, total, each)
    expected = np.bitwise_or.reduce(
        [np.left_shift(a, a) ^ np.uint32(0x01010101 * n) for n in numbers]
    )
    assert np.array_equal(value(driver, total), expected)
    assert [Op(record.op).name for record in link.log[:4]] == ["SHIFT_LEFT", "XOR"] * 2


def test_what_just_fits_is_computed(driver: Driver) -> None:
    # A quarter of the memory each: the operand, the result, and one value in between.
    a = random(MEMORY // 16, "u4")
    x = upload(driver, a)
    one, two, three = (apply(Op.SHIFT_LEFT, x, Constant(bytes([n, 0, 0, 0]))) for n in (1, 2, 3))
    got = value(driver, apply(Op.XOR, apply(Op.XOR, one, two), three))
    assert np.array_equal(got, a << 1 ^ a << 2 ^ a << 3)


def test_an_expression_that_cannot_fit_is_refused(driver: Driver, link: ModelLink) -> None:
    a = upload(driver, random(MEMORY // 8, "u4"))
    x = apply(Op.XOR, apply(Op.SHIFT_RIGHT, a, a), apply(Op.SHIFT_LEFT, a, a))
    with pytest.raises(OutOfDeviceMemory, match=f"{MEMORY // 2} bytes .* 1 results .*one after"):
        evaluate(driver, [x])
    assert link.log == []
    assert driver.allocator.pieces == 1
    small = upload(driver, random(4, "u4"))
    assert value(driver, apply(Op.NOT, small)).size == 4


def test_a_fault_leaves_memory_and_device_as_they_were(link: ModelLink, driver: Driver) -> None:
    a = upload(driver, random(64, "u4"))
    x = apply(Op.SHIFT_LEFT, apply(Op.XOR, a, Constant(bytes(4))), a)
    link.fail_reads = frozenset({a.view.address + 8})
    with pytest.raises(DeviceFault, match="command 0 of the job") as raised:
        evaluate(driver, [x])
    # Whoever keeps the error, as an interpreter's prompt does, keeps no device memory by it.
    assert raised.traceback
    assert driver.allocator.pieces == 1
    link.fail_reads = frozenset()
    assert np.array_equal(value(driver, x), np.left_shift(*[download(driver, a)] * 2))


def test_threads_may_share_nodes(driver: Driver) -> None:
    a = upload(driver, random(64, "u4"))
    shared = apply(Op.SHIFT_RIGHT, a, Constant(b"\3\0\0\0"))
    numbers = range(8)

    def work(number: int) -> bool:
        node: Expression = shared
        for _ in range(number):
            node = apply(Op.XOR, apply(Op.NOT, node), a)
        x = download(driver, a)
        expected = x >> 3
        for _ in range(number):
            expected = ~expected ^ x
        return np.array_equal(value(driver, node), expected)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, [*numbers] * 5))
    assert driver.allocator.pieces == 1


def test_a_value_that_is_kept_is_not_computed_again(driver: Driver, link: ModelLink) -> None:
    a = upload(driver, random(64, "u4"))
    x = apply(Op.SHIFT_RIGHT, a, a)
    y = apply(Op.SHIFT_LEFT, x, a)
    kept = evaluate(driver, [x])
    link.log.clear()
    assert np.array_equal(
        value(driver, y), np.left_shift(download(driver, *kept), *[download(driver, a)])
    )
    assert [Op(record.op).name for record in link.log] == ["SHIFT_LEFT"]
    del kept
    link.log.clear()
    evaluate(driver, [y])
    assert [Op(record.op).name for record in link.log] == ["SHIFT_RIGHT", "SHIFT_LEFT"]


def test_chains_may_be_longer_than_the_stack(driver: Driver) -> None:
    a = upload(driver, random(4, "u4"))
    x: Expression = a
    for _ in range(1500):
        x = apply(Op.XOR, x, a)
    assert np.array_equal(value(driver, x), download(driver, a))


# --- random expressions on any circuit --------------------------------------------------------


ROOM = 1 << 18

ABILITIES = st.fixed_dictionaries(
    {
        "data_bytes": st.sampled_from([4, 8, 16]),
        "loops": st.integers(1, 6),
        "read_ports": st.integers(1, 2),
        "length_bits": st.sampled_from([12, 24]),
        "modes": st.sets(st.sampled_from(Mode)).map(lambda x: frozenset({Mode.DENSE, *x})),
        "lanes": st.sampled_from([frozenset(Lane), frozenset({Lane.BITS_8, Lane.BITS_32})]),
    }
)


def check(program: Program, **abilities: Any) -> None:
    """Run a program in one job, a node at a time, and in one job when some values are there."""
    driver = Driver(ModelLink(memory_bytes=ROOM, **abilities))
    for finish in (later, one_by_one, now_and_then):
        try:
            expect_numpys(driver, program, finish)
        except UnsupportedError:
            assert abilities, "the circuit has everything"
        assert driver.allocator.pieces == 0, "memory was not given back"


@given(programs())
def test_on_a_circuit_that_has_everything(program: Program) -> None:
    check(program)


@given(programs(8), ABILITIES)
@examples(0.4)
def test_on_lesser_circuits(program: Program, abilities: dict[str, Any]) -> None:
    check(program, **abilities)


@given(programs(8), st.sets(st.sampled_from(sorted(BIT_OPS)), min_size=1))
@examples(0.4)
def test_on_circuits_with_fewer_operations(program: Program, ops: set[Op]) -> None:
    check(program, ops=frozenset(ops))


Array = NDArray[Any]

# --- assignments ----------------------------------------------------------------------------------


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
