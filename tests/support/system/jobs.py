"""Random DirectML operators, the layout of their tensors in a buffer, and ways to run them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane import dml, reference
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, FeatureLevel
from bitlane.dml.operators import OPERATOR_DESCS, InPlace, OperatorDesc
from bitlane.dml.rules import dimension_counts, introduced, supported_types

ALIGNMENT = 16
"""The offset of a binding is a multiple of this number of bytes."""

_LEVELS = [
    FeatureLevel.LEVEL_4_1,
    FeatureLevel.LEVEL_4_1,
    FeatureLevel.LEVEL_6_4,
    FeatureLevel.LEVEL_3_0,
    FeatureLevel.LEVEL_2_1,
]

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Job:
    """An operator, and the offset of each tensor in the buffer: the inputs', then the output's."""

    desc: OperatorDesc
    offsets: tuple[int, ...]
    size: int
    """Bytes from the buffer's start that hold the tensors and the gaps around them."""
    level: FeatureLevel = FeatureLevel.LEVEL_4_1

    @property
    def tensors(self) -> list[BufferTensorDesc]:
        return [tensor for _, tensor in (*self.desc.inputs, *self.desc.outputs)]


def _reach(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """Return the number of elements from the first to the last one that a tensor touches."""
    return 1 + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))


@st.composite
def _sizes(draw: st.DrawFn, ranks: range, most: int) -> list[int]:
    """Draw sizes of up to ``most`` elements, with a number of dimensions in ``ranks``."""
    left = draw(st.integers(1, most))
    sizes = []
    for _ in range(draw(st.integers(ranks[0], ranks[-1]))):
        sizes.append(draw(st.one_of(st.integers(1, min(left, 9)), st.integers(1, left))))
        left //= sizes[-1]
    return draw(st.permutations(sizes))


@st.composite
def _apart(draw: st.DrawFn, sizes: list[int], most: int) -> list[int] | None:
    """Draw strides without overlap: packed, permuted, padded, or with gaps."""
    axes = draw(st.one_of(st.just(list(range(len(sizes)))), st.permutations(range(len(sizes)))))
    strides = [0] * len(sizes)
    step = draw(st.sampled_from([1, 1, 1, 2, 3]))
    for axis in reversed(axes):
        strides[axis] = step
        step = step * sizes[axis] + draw(st.sampled_from([0, 0, 0, 1, 5]))
    return strides if _reach(sizes, strides) <= most else None


@st.composite
def _any_strides(draw: st.DrawFn, sizes: list[int], most: int) -> list[int] | None:
    """Draw strides for inputs, which may also repeat dimensions or overlap."""
    kind = draw(st.sampled_from(["packed", "apart", "apart", "repeated", "overlapping"]))
    if kind == "packed":
        return None
    if kind == "overlapping":
        strides = [draw(st.integers(0, 7)) for _ in sizes]
        return strides if _reach(sizes, strides) <= most else [0] * len(sizes)
    found = draw(_apart(sizes, most))
    if kind == "repeated" and found is not None:
        found = [draw(st.sampled_from([0, stride])) for stride in found]
    return found


def _end(offset: int, tensor: BufferTensorDesc) -> int:
    return offset + tensor.total_tensor_size_in_bytes


@st.composite
def jobs(draw: st.DrawFn, most: int = 3000, reach: int = 3 * 3000) -> Job:
    """Draw any of the seven operators at any feature level, on up to ``most`` elements.

    A tensor's elements lie at most ``reach`` elements apart, or are packed.
    """
    level = draw(st.sampled_from(_LEVELS))
    kinds = [kind for kind in OPERATOR_DESCS.values() if level >= introduced(kind)]
    kind = draw(st.sampled_from(kinds))
    data_type = draw(st.sampled_from(supported_types(kind, False, level)))
    out_type = data_type
    if kind is dml.ElementWiseBitCountOperatorDesc:
        out_type = draw(st.sampled_from([DataType.UINT8, DataType.UINT32]))
    sizes = draw(_sizes(dimension_counts(level), most))
    output = BufferTensorDesc(out_type, sizes, draw(_apart(sizes, reach)))
    count = 2 if kind.op.reads_b else 1
    in_place: set[int] = set()
    if kind.in_place is not InPlace.NONE and draw(st.integers(0, 3)) == 0:
        in_place = {draw(st.integers(0, count - 1))}
        if kind.in_place is InPlace.ANY and draw(st.booleans()):
            in_place = set(range(count))
    inputs = [
        output
        if k in in_place
        else BufferTensorDesc(data_type, sizes, draw(_any_strides(sizes, reach)))
        for k in range(count)
    ]
    gaps = st.integers(0, 3).map(lambda n: n * ALIGNMENT)
    others = [k for k in range(count) if k not in in_place]
    start = draw(gaps)
    offsets = [0] * count
    inputs_first = draw(st.booleans())
    end = draw(_lay(others, inputs, start, offsets)) if inputs_first else start
    place = _aligned(end) + draw(gaps)
    end = _end(place, output)
    if not inputs_first:
        end = draw(_lay(others, inputs, _aligned(end) + draw(gaps), offsets))
    offsets = [place if k in in_place else offset for k, offset in enumerate(offsets)]
    desc = cast(Callable[..., OperatorDesc], kind)(*inputs, output)
    return Job(desc, (*offsets, place), _aligned(end) + draw(gaps), level)


@st.composite
def _lay(
    draw: st.DrawFn,
    which: list[int],
    inputs: list[BufferTensorDesc],
    start: int,
    offsets: list[int],
) -> int:
    """Set ``offsets`` of inputs from ``start`` on, apart or overlapping; return their end."""
    end = start
    for k in which:
        offsets[k] = _aligned(end)
        if end > start and draw(st.integers(0, 3)) == 0:
            offsets[k] = start + draw(st.integers(0, (end - start) // ALIGNMENT)) * ALIGNMENT
        end = max(end, _end(offsets[k], inputs[k]))
    return end


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def execute(device: dml.Device, buffer: dml.Buffer, *chain: Job) -> None:
    """Run jobs on ``buffer``, one after the other, in one command list."""
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    operators = [device.compile_operator(device.create_operator(job.desc)) for job in chain]
    initializer = device.create_operator_initializer(operators)
    recorder.record_dispatch(commands, initializer, device.create_binding_table(initializer))
    for operator, job in zip(operators, chain, strict=True):
        table = device.create_binding_table(operator)
        bindings = [
            BufferBinding(buffer, offset, tensor.total_tensor_size_in_bytes)
            for offset, tensor in zip(job.offsets, job.tensors, strict=True)
        ]
        table.bind_inputs(bindings[:-1])
        table.bind_outputs(bindings[-1:])
        recorder.record_dispatch(commands, operator, table)
    device.execute(commands)


def evaluate(before: Bytes, *chain: Job) -> Bytes:
    """Return all bytes of the buffer after jobs, as the golden model computes them."""
    after = before
    for job in chain:
        regions = [reference.Region(after, offset) for offset in job.offsets]
        after = reference.evaluate(job.desc, regions[:-1], regions[-1])
    return after
