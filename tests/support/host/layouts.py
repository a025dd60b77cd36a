"""Random circuits, and random layouts of tensors in their memory; and what executes commands."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane.driver.commands import Command, encode
from bitlane.driver.geometry import Geometry
from bitlane.jobs.lowering import View
from bitlane_rtl.abi import RECORD_WORDS, Lane, Mode
from support.models.record import Interpreter, Record

__all__ = ["execute", "geometries", "interpreter", "views", "window"]


def interpreter(geometry: Geometry, seed: int) -> Interpreter:
    """Return the contract's interpreter for ``geometry``, with random memory from address 0 on."""
    model = Interpreter(
        memory_bytes=geometry.memory_bytes,
        data_bytes=geometry.data_bytes,
        loops=geometry.loops,
        length_bits=geometry.length_bits,
        count_bits=geometry.count_bits,
        ops=geometry.ops,
        lanes=geometry.lanes,
        modes=geometry.modes,
        read_ports=geometry.read_ports,
    )
    model.memory[:] = np.random.default_rng(seed).integers(0, 256, geometry.memory_bytes, np.uint8)
    return model


def execute(model: Interpreter, commands: Iterable[Command]) -> None:
    """Have ``commands`` executed; words that they do not use hold rubbish."""
    for command in commands:
        words = encode(command).tolist()
        model.execute(Record([*words, *[0xEEEEEEEE] * (RECORD_WORDS - len(words))]))


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
        data_bytes=draw(st.sampled_from([4, 8, 16, 64])),
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
