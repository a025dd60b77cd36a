"""Random expressions: programs that make nodes, and NumPy's results of the same steps.

A program is data, so that a failing one prints in a form that can be run again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane.compiler import (
    Constant,
    Expression,
    Stored,
    add_up,
    apply,
    broadcast,
    evaluate,
    join,
    truth_of,
    widen,
    window,
)
from bitlane.driver import Driver, Storage
from bitlane.lowering import Options, View
from bitlane_rtl.abi import Op


def upload(driver: Driver, array: NDArray[Any]) -> Stored:
    """Copy ``array``, whose memory may have gaps, steps and repetitions, to the device."""
    low, high = np.lib.array_utils.byte_bounds(array)
    storage = Storage(driver, high - low)
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    content = base.reshape(-1).view(np.uint8)
    first = low - np.lib.array_utils.byte_bounds(base)[0]
    driver.write(storage.address, content[first : first + high - low].tobytes())
    address = storage.address + array.ctypes.data - low
    return Stored(storage, View(address, array.strides, array.itemsize), array.shape)


def download(driver: Driver, stored: Stored) -> NDArray[Any]:
    """Return the elements of ``stored`` as unsigned integers."""
    storage, view = stored.storage, stored.view
    content = driver.read(storage.address, storage.size)
    offset = view.address - storage.address
    return np.ndarray(stored.shape, f"<u{view.itemsize}", content, offset, view.strides)


Array: TypeAlias = NDArray[Any]
Value: TypeAlias = tuple[Array, Expression]
Finish: TypeAlias = Callable[[Driver, Expression, list[Stored]], Expression]
"""Function that is called with each new node, and returns the node to use in its place."""

_MOST = 1000
"""Elements of the largest value."""

_LOGIC = [Op.AND, Op.OR, Op.XOR, Op.NAND, Op.NOR, Op.XNOR]


@dataclass(frozen=True)
class Leaf:
    """An array of random elements with steps along its axes, which are in any order in memory."""

    seed: int
    itemsize: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    steps: tuple[int, ...]

    def array(self) -> Array:
        spread = [n * abs(step) for n, step in zip(self.shape, self.steps, strict=True)]
        base = [spread[axis] for axis in self.axes]
        content = np.random.default_rng(self.seed).bytes(int(np.prod(base)) * self.itemsize)
        array = np.frombuffer(bytearray(content), f"<u{self.itemsize}").reshape(base)
        array = array.transpose(np.argsort(self.axes).tolist())
        return array[(*(slice(None, None, step) for step in self.steps), ...)]


@dataclass(frozen=True)
class Step:
    """An operation on earlier values. Numbers select an option, modulo the number of options."""

    kind: str
    first: int
    second: int
    choice: int
    flags: tuple[bool, bool]


@dataclass(frozen=True)
class Program:
    """Leaves, steps on them, and the requested results, as indices from the last value."""

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    roots: tuple[int, ...]


@st.composite
def programs(draw: st.DrawFn, most: int = 16) -> Program:
    """Return programs of ``most // 2`` to ``most`` steps; most of the leaves broadcast together."""
    numbers = st.integers(0, 40)
    kinds = ["logic"] * 8 + sorted(_STEPS)
    step = st.builds(
        Step, st.sampled_from(kinds), numbers, numbers, numbers, st.tuples(*[st.booleans()] * 2)
    )
    itemsize = draw(st.sampled_from([1, 2, 4, 8]))
    leaves = draw(st.lists(_leaves(itemsize), min_size=1, max_size=4))
    steps = draw(st.lists(step, min_size=most // 2, max_size=most))
    return Program(tuple(leaves), tuple(steps), (0, *draw(st.lists(numbers, max_size=2))))


@st.composite
def _leaves(draw: st.DrawFn, itemsize: int) -> Leaf:
    shape = draw(st.sampled_from([(5, 7), (5, 7), (5, 7), (5, 1), (1, 7), (7,), (), (3, 5, 7)]))
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, -1, 2])) for _ in shape]
    return Leaf(draw(st.integers(0, 9)), itemsize, shape, tuple(axes), tuple(steps))


def play(
    program: Program,
    leaf: Callable[[Array], Expression],
    finish: Callable[[Expression], Expression] = lambda node: node,
) -> list[Value]:
    """Return the requested values of a program: NumPy's arrays, and nodes.

    ``leaf`` stores an array; ``finish`` is called on every new node.
    """
    values = [(array, leaf(array)) for array in (each.array() for each in program.leaves)]
    for step in program.steps:
        # Operands are among the latest values, so that chains grow.
        result = _STEPS[step.kind](step, values[-1 - step.first % min(4, len(values))], values)
        if result is not None and result[0].size <= _MOST:
            array, node = np.asarray(result[0]), result[1]
            assert (node.shape, node.itemsize) == (array.shape, array.itemsize)
            values.append((array, finish(node)))
    return [values[-1 - root % len(values)] for root in program.roots]


def later(driver: Driver, node: Expression, kept: list[Stored]) -> Expression:
    """Leave ``node`` lazy, so that one job computes all nodes in the end."""
    return node


def one_by_one(driver: Driver, node: Expression, kept: list[Stored]) -> Expression:
    """Compute ``node`` at once and return the stored result, so that nothing is fused."""
    return evaluate(driver, [node])[0]


def now_and_then(driver: Driver, node: Expression, kept: list[Stored]) -> Expression:
    """Compute ``node`` at once, and retain the latest two results."""
    kept += evaluate(driver, [node])
    del kept[:-2]
    return node


def expect_numpys(driver: Driver, program: Program, finish: Finish = later) -> None:
    """Run a program, and expect every bit of its results to be NumPy's."""
    kept: list[Stored] = []
    wanted = play(
        program, lambda array: upload(driver, array), lambda node: finish(driver, node, kept)
    )
    results = evaluate(driver, [node for _, node in wanted])
    for (array, _), result in zip(wanted, results, strict=True):
        assert np.array_equal(download(driver, result), array)


def _partner(step: Step, x: Value, values: list[Value]) -> Value:
    """Return a value that ``x`` broadcasts with, or a constant."""
    width = x[0].itemsize
    noise = np.random.default_rng(step.second).bytes(width)
    one = (1).to_bytes(width, "little")
    content = [noise, bytes(width), b"\xff" * width, one][step.second % 4]
    fitting: list[Value] = [(np.frombuffer(content, f"<u{width}").reshape(()), Constant(content))]
    for y in values:
        pairs = zip(reversed(x[0].shape), reversed(y[0].shape), strict=False)
        if y[0].itemsize == width and all(m == n or 1 in (m, n) for m, n in pairs):
            fitting.append(y)
    return fitting[step.second % min(5, len(fitting))]


def _logic(step: Step, x: Value, values: list[Value]) -> Value:
    """Return a logic operation on two operands; the flags invert one, both or none."""
    pair = zip((x, _partner(step, x, values)), step.flags, strict=True)
    (a, node_a), (b, node_b) = (_invert(step, y, values) if flag else y for y, flag in pair)
    op = _LOGIC[step.choice % len(_LOGIC)]
    array: Array = {0: np.bitwise_and, 1: np.bitwise_or, 2: np.bitwise_xor}[op & 3](a, b)
    return (np.invert(array) if op & 4 else array), apply(op, node_a, node_b)


def _shift(step: Step, x: Value, values: list[Value]) -> Value:
    (a, node_a), (b, node_b) = x, _partner(step, x, values)
    saturate, arithmetic = step.flags
    bits = 8 * a.itemsize
    op = [Op.SHIFT_LEFT, Op.SHIFT_RIGHT][step.choice % 2]
    count = np.minimum(b, np.array(bits, b.dtype)) if saturate else b % np.array(bits, b.dtype)
    if op is Op.SHIFT_RIGHT and arithmetic:
        signed = f"<i{a.itemsize}"
        near = np.minimum(count, np.array(bits - 1, b.dtype))
        array = np.right_shift(a.view(signed), near.astype(signed)).view(a.dtype)
    else:
        array = (np.left_shift if op is Op.SHIFT_LEFT else np.right_shift)(a, count)
    options = Options.of(saturate=saturate, arithmetic=arithmetic)
    return np.asarray(array), apply(op, node_a, node_b, options=options)


def _invert(step: Step, x: Value, values: list[Value]) -> Value:
    return np.invert(x[0]), apply(Op.NOT, x[1])


def _copy(step: Step, x: Value, values: list[Value]) -> Value:
    return x[0], apply(Op.COPY, x[1])


def _count(step: Step, x: Value, values: list[Value]) -> Value:
    width = [1, 4][step.choice % 2]
    x = _invert(step, x, values) if step.flags[0] else x
    return np.bitwise_count(x[0]).astype(f"<u{width}"), apply(Op.COUNT, x[1], itemsize=width)


def _test(step: Step, x: Value, values: list[Value]) -> Value:
    """Test one operand, or a logic operation on two."""
    array, node = _logic(step, x, values) if step.choice % 3 else x
    negate = bool(step.second % 2)
    return np.asarray((array != 0) ^ negate).view("u1"), truth_of(node, negate=negate)


def _sum(step: Step, x: Value, values: list[Value]) -> Value:
    """Sum the counts of bits of one operand, or of a logic operation on two, or their tests."""
    array, node = _logic(step, x, values) if step.choice % 3 else x
    axes = tuple([axis for axis in range(array.ndim) if step.second >> axis & 1])
    if step.choice % 2:
        array, node = np.asarray(array != 0).view("u1"), truth_of(node)
    counts = np.bitwise_count(array).astype("<u4")
    sums = np.asarray(counts.sum(axes, np.uint32)) if axes else counts
    return sums, add_up(apply(Op.COUNT, node, itemsize=4), axes)


def _widen(step: Step, x: Value, values: list[Value]) -> Value:
    array, node = x
    width = min(8, array.itemsize << step.choice % 3)
    kind = "i" if step.flags[0] else "u"
    wide = array.view(f"<{kind}{array.itemsize}").astype(f"<{kind}{width}").view(f"<u{width}")
    return wide, widen(node, width, signed=step.flags[0])


def _narrow(step: Step, x: Value, values: list[Value]) -> Value | None:
    array, node = x
    if array.itemsize == 1 or isinstance(node, Constant):
        return None
    width = array.itemsize // 2
    place = step.choice % 2 * width
    low = np.right_shift(array, np.array(8 * place, array.dtype)).astype(f"<u{width}")
    view = window(node, place, node.shape, node.strides, width)
    return low, apply(Op.COPY, view) if step.flags[0] else view


def _slice(step: Step, x: Value, values: list[Value]) -> Value | None:
    array, node = x
    if not array.shape:
        return None
    axis = step.choice % array.ndim
    count = array.shape[axis]
    start = step.second % count
    pace = [1, 2, -1][step.choice % 3]
    part = (*[slice(None)] * axis, slice(start, None, pace), ...)
    shape = array[part].shape
    strides = tuple(s * pace if n == axis else s for n, s in enumerate(node.strides))
    return array[part], window(node, start * node.strides[axis], shape, strides)


def _transpose(step: Step, x: Value, values: list[Value]) -> Value:
    array, node = x
    return array.T, window(node, 0, node.shape[::-1], node.strides[::-1])


def _broadcast(step: Step, x: Value, values: list[Value]) -> Value:
    array, node = x
    shape = (3, *[7 if n == 1 else n for n in array.shape])
    return np.broadcast_to(array, shape), broadcast(node, shape)


def _join(step: Step, x: Value, values: list[Value]) -> Value | None:
    """Join two or three values along an axis; the flags choose their order and the third."""
    array, (other, second) = x[0], _partner(step, x, values)
    if not array.shape or np.broadcast_shapes(array.shape, other.shape) != array.shape:
        return None
    parts = [x, (np.broadcast_to(other, array.shape), broadcast(second, array.shape))]
    parts += [x] if step.flags[0] else []
    parts = parts[::-1] if step.flags[1] else parts
    axis = step.choice % array.ndim
    return np.concatenate([part for part, _ in parts], axis), join([y for _, y in parts], axis)


_STEPS: dict[str, Callable[[Step, Value, list[Value]], Value | None]] = {
    "logic": _logic,
    "shift": _shift,
    "invert": _invert,
    "copy": _copy,
    "count": _count,
    "sum": _sum,
    "test": _test,
    "widen": _widen,
    "narrow": _narrow,
    "slice": _slice,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "join": _join,
}
