"""Lowering puts every element where NumPy does, for any layout on any circuit.

Random layouts run on the interpreter of the contract, which refuses or asserts whatever a command
must not do; the expected bytes come from NumPy on the same views of the same memory.
"""

from math import prod
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane.driver.geometry import Geometry
from bitlane.jobs.lowering import LayoutError, UnsupportedError, View, lower
from bitlane_rtl.abi import BIT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Op
from support.host.layouts import execute, geometries, interpreter, views, window
from support.seeds import examples

MEMORY = 1 << 13


@st.composite
def works(draw: st.DrawFn) -> tuple[Op, tuple[int, ...], View, View | None, View]:
    op = draw(st.sampled_from(sorted(BIT_OPS)))
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 5, 8, 11]), max_size=5)))
    while prod(shape) > 200:
        shape = shape[1:]
    size = draw(st.sampled_from([1, 2, 4, 8]))
    out = draw(st.sampled_from([1, 4])) if op.counts else size
    y = draw(views(shape, out, 4352, output=True))
    a = draw(views(shape, size, 0, output=False))
    b = draw(views(shape, size, 2048 + 64, output=False)) if op.reads_b else None
    alias = draw(st.sampled_from(["none", "none", "a", "b"] if out == size else ["none"]))
    if alias == "a":
        a = y
    elif op.reads_b and alias == "b":
        b = y
    return op, shape, a, b, y


def expected(
    op: Op, a: NDArray[Any], b: NDArray[Any] | None, out: int, saturate: bool, arithmetic: bool
) -> NDArray[Any]:
    """Return the result on unsigned integers, computed with Python's integers."""
    width = 8 * a.dtype.itemsize
    mask = (1 << width) - 1

    def one(x: int, n: int) -> int:
        if op in SHIFT_OPS:
            n = min(n, width) if saturate else n % width
            if op is Op.SHIFT_LEFT:
                return x << n & mask
            signed = x - (1 << width) if arithmetic and x >> (width - 1) else x
            return signed >> n & mask
        return {
            Op.AND: x & n,
            Op.OR: x | n,
            Op.XOR: x ^ n,
            Op.COPY: x,
            Op.NAND: ~(x & n) & mask,
            Op.NOR: ~(x | n) & mask,
            Op.XNOR: ~(x ^ n) & mask,
            Op.NOT: ~x & mask,
            Op.COUNT_AND: (x & n).bit_count(),
            Op.COUNT_OR: (x | n).bit_count(),
            Op.COUNT_XOR: (x ^ n).bit_count(),
            Op.COUNT: x.bit_count(),
        }[op]

    second = np.zeros_like(a) if b is None else b
    flat = [one(x, n) for x, n in zip(a.ravel().tolist(), second.ravel().tolist(), strict=True)]
    return np.array(flat, dtype=f"<u{out}").reshape(a.shape)


@examples(4)
@given(works(), geometries(MEMORY), st.booleans(), st.booleans(), st.integers(0, 1 << 32))
def test_any_layout_on_any_circuit(
    work: tuple[Op, tuple[int, ...], View, View | None, View],
    geometry: Geometry,
    saturate: bool,
    arithmetic: bool,
    seed: int,
) -> None:
    op, shape, a, b, y = work
    model = interpreter(geometry, seed)
    random = np.random.default_rng(seed)
    if op in SHIFT_OPS and b is not None and b.address >= 2048 and b is not y:
        small = window(model.memory, b, shape)
        small[...] = random.integers(0, 8 * b.itemsize + 9, shape) % 256
    after = model.memory.copy()
    try:
        got = list(
            lower(op, shape, a, b, y, geometry=geometry, saturate=saturate, arithmetic=arithmetic)
        )
    except LayoutError:
        assert op not in LOGIC_OPS
        assert y.address % y.itemsize or any(stride % y.itemsize for stride in y.strides)
        return
    except UnsupportedError:
        assert op not in LOGIC_OPS
        assert Lane(a.itemsize.bit_length() - 1) not in geometry.lanes
        return
    operands = [window(model.memory, view, shape) for view in (a, b) if view is not None]
    result = expected(
        op,
        operands[0].copy(),
        operands[1].copy() if len(operands) > 1 else None,
        y.itemsize,
        saturate,
        arithmetic,
    )
    window(after, y, shape)[...] = result

    execute(model, got)
    assert np.array_equal(model.memory, after), got
