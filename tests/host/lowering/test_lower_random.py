"""Lowering puts every element, or sum of counts, where NumPy does: any layout on any circuit.

Random layouts run on the device `numpy`, which refuses whatever a command must not do, and is
watched for whatever the contract leaves open; the expected bytes come from the tests' oracle on
views of the same memory.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import compress
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane import BitlaneError
from bitlane.driver import Command, Geometry, encode
from bitlane.errors import LayoutError, NoRunError, UnsupportedError
from bitlane.lowering import Options, Streams, View, lower, packed_strides
from bitlane_rtl.abi import BIT_OPS, COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Mode, Op
from bitlane_rtl.configuration import Configuration
from support.oracle import computed
from support.record import Record
from support.seeds import examples
from support.watched import WatchedInterpreter


def interpreter(geometry: Geometry, seed: int) -> WatchedInterpreter:
    """Return the interpreter of a circuit of ``geometry``, with random memory from address 0 on."""
    circuit = Configuration(
        memory_bytes=geometry.memory_bytes,
        data_width=8 * geometry.data_bytes,
        loops=geometry.loops,
        length_bits=geometry.length_bits,
        count_bits=geometry.count_bits,
        lanes=geometry.lanes,
        modes=geometry.modes,
        read_ports=geometry.read_ports,
    )
    model = WatchedInterpreter(circuit)
    model.memory[:] = np.random.default_rng(seed).integers(0, 256, geometry.memory_bytes, np.uint8)
    return model


def execute(model: WatchedInterpreter, commands: Iterable[Command]) -> None:
    """Have ``commands`` executed; words that they do not use hold rubbish."""
    for command in commands:
        assert model.execute(Record(encode(command).tolist()).content) is None, command


def window(memory: NDArray[np.uint8], view: View, shape: Sequence[int]) -> NDArray[Any]:
    """Return the elements of a view as a NumPy array on the memory."""
    low = view.address + sum(min(0, s * (n - 1)) for s, n in zip(view.strides, shape, strict=True))
    assert low >= 0
    return np.ndarray(
        tuple(shape), f"<u{view.itemsize}", memory.data, view.address, tuple(view.strides)
    )


@st.composite
def geometries(draw: st.DrawFn, memory: int) -> Geometry:
    """Circuits of every size, some without most modes and lanes, with ``memory`` bytes."""
    return Geometry(
        slots=16,
        memory_base=0,
        data_bytes=draw(st.sampled_from([4, 8, 16])),
        loops=draw(st.integers(1, 6)),
        length_bits=draw(st.sampled_from([12, 24, 32])),
        count_bits=draw(st.sampled_from([1, 2, 3, 24])),
        read_ports=draw(st.integers(1, 2)),
        modes=frozenset({Mode.DENSE}) | draw(st.frozensets(st.sampled_from(Mode))),
        lanes=draw(
            st.sampled_from([frozenset(Lane), frozenset(list(Lane)[:3]), frozenset({Lane.BITS_16})])
        ),
        memory_last=memory - 1,
    )


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], size: int, start: int, output: bool) -> View:
    """Draw a view within 2 KiB from ``start`` on: axes permuted, padded, negative or repeated."""
    order = draw(st.permutations(range(len(shape))))
    aligned = draw(st.sampled_from([True, True, False]))
    unit = size if aligned else 1
    strides = [0] * len(shape)
    step, low, left = size, 0, prod(shape)
    for axis in order:
        count = shape[axis]
        padding = draw(st.integers(0, 5)) * draw(st.sampled_from([0, 0, 1])) * unit
        stride = step + padding
        if stride * left > 2048:
            stride = step
        left //= count
        if not output and draw(st.sampled_from([False, False, True])):
            continue
        step = stride * count
        if draw(st.booleans()):
            stride = -stride
            low += -stride * (count - 1)
        strides[axis] = stride
    address = start + low
    if not aligned:
        address += draw(st.integers(0, 7))
    return View(address, tuple(strides), size)


MEMORY = 1 << 13

COMPUTED = "computed"
"""Outcome of a work that is not refused."""

Work = tuple[Op, tuple[int, ...], View, View | None, View]


@st.composite
def works(draw: st.DrawFn, *, sums: bool) -> Work:
    """Draw an operation, or a sum of counts along some axes, of tensors of up to 2 KiB."""
    op = draw(st.sampled_from(sorted(COUNT_OPS if sums else BIT_OPS)))
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 5, 8, 11]), max_size=5)))
    while prod(shape) > 200:
        shape = shape[1:]
    size = draw(st.sampled_from([1, 2, 4, 8]))
    out = 4 if sums else draw(st.sampled_from([1, 4])) if op.counts else size
    kept = [not sums or draw(st.booleans()) for _ in shape]
    y = draw(views(tuple(compress(shape, kept)), out, 4352, output=True))
    a = draw(views(shape, size, 0, output=False))
    b = draw(views(shape, size, 2048 + 64, output=False)) if op.reads_b else None
    alias = draw(st.sampled_from(["none", "none", "a", "b"])) if out == size and not sums else ""
    if alias == "a":
        a = y
    elif op.reads_b and alias == "b":
        b = y
    steps = iter(y.strides)
    return op, shape, a, b, View(y.address, tuple(next(steps) if keep else 0 for keep in kept), out)


def expected(
    op: Op, a: NDArray[Any], b: NDArray[Any] | None, out: int, saturate: bool, arithmetic: bool
) -> NDArray[Any]:
    """Return the result on unsigned integers, computed with Python's integers."""
    second = np.zeros_like(a) if b is None else b
    pairs = zip(a.ravel().tolist(), second.ravel().tolist(), strict=True)
    shifts = {"saturate": saturate, "arithmetic": arithmetic}
    flat = [computed(op, 8 * a.dtype.itemsize, x, n, **shifts) for x, n in pairs]
    return np.array(flat, dtype=f"<u{out}").reshape(a.shape)


def refusal(work: Work, geometry: Geometry, error: BitlaneError) -> str:
    """Return the outcome of a work that was refused; expect that the circuit or layout says why."""
    op, shape, a, _, y = work
    if isinstance(error, NoRunError):
        if Lane.BITS_8 not in geometry.lanes:
            return "lane not built"
        packed = View(0, packed_strides(shape, order_of_sum(y), a.itemsize), a.itemsize)
        streams = Streams(packed, packed, y)
        assert list(lower(op, shape, streams, geometry.abilities, geometry.memory)) != []
        return "no run"
    assert op not in LOGIC_OPS
    if isinstance(error, LayoutError):
        assert y.address % y.itemsize or any(stride % y.itemsize for stride in y.strides)
        return "layout refused"
    if 0 in y.strides:
        assert Mode.SUM not in geometry.modes or Lane.BITS_8 not in geometry.lanes
        return "sums not built"
    assert Lane(a.itemsize.bit_length() - 1) not in geometry.lanes
    return "lane not built"


def compute(
    work: Work, geometry: Geometry, saturate: bool, arithmetic: bool, sums: bool, seed: int
) -> str:
    """Lower ``work`` and run it, expect the right bytes, or a refusal with reason.

    Return which of these it was; ``sums``: add sums to the circuit.
    """
    op, shape, a, b, y = work
    if sums:
        geometry = dataclasses.replace(geometry, modes=geometry.modes | {Mode.SUM})
    model = interpreter(geometry, seed)
    random = np.random.default_rng(seed)
    if op in SHIFT_OPS and b is not None and b.address >= 2048 and b is not y:
        small = window(model.memory, b, shape)
        small[...] = random.integers(0, 8 * b.itemsize + 9, shape) % 256
    options = Options.of(saturate=saturate, arithmetic=arithmetic)
    try:
        got = list(lower(op, shape, Streams(a, b, y), geometry.abilities, geometry.memory, options))
    except (LayoutError, UnsupportedError) as error:
        return refusal(work, geometry, error)
    kept = [bool(step) for step in y.strides]
    operands = [window(model.memory, view, shape).copy() for view in (a, b) if view is not None]
    result = expected(op, operands[0], operands[-1], y.itemsize, saturate, arithmetic)
    if not all(kept):
        result = result.sum(tuple(k for k, keep in enumerate(kept) if not keep), np.uint32)
    after = model.memory.copy()
    place = View(y.address, tuple(compress(y.strides, kept)), y.itemsize)
    window(after, place, list(compress(shape, kept)))[...] = result
    execute(model, got)
    assert np.array_equal(model.memory, after), got
    return COMPUTED


def order_of_sum(y: View) -> list[int]:
    """Axes of a copy in which whatever belongs to one sum is a run."""
    return sorted(range(len(y.strides)), key=lambda axis: y.strides[axis] == 0)


BITS, SEED = st.booleans(), st.integers(0, 1 << 32)
WORK = st.tuples(works(sums=False), geometries(MEMORY), BITS, BITS, st.just(False), SEED)
MOSTLY = st.integers(0, 9).map(bool)
SUMS = st.tuples(works(sums=True), geometries(MEMORY), st.just(False), st.just(False), MOSTLY, SEED)


# Refused are circuits without lanes, sums or bytes, and sums whose axes are not a run.
@pytest.mark.parametrize(("works", "least"), [(WORK, 0.5), (SUMS, 0.25)], ids=["all", "sums"])
def test_any_layout_is_computed_on_any_circuit(works: Any, least: float) -> None:
    outcomes: list[str] = []

    @examples(5)
    @given(works)
    def run(drawn: tuple[Any, ...]) -> None:
        outcomes.append(compute(*drawn))

    run()
    assert outcomes.count(COMPUTED) > least * len(outcomes)
