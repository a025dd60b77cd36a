"""Random operators and graphs on the real driver equal the golden model's results, node by node.

Graphs are fused or not, in any layout, on circuits with and without the count of a logic operation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane import dml, reference
from bitlane.dml import (
    BufferBinding,
    BufferTensorDesc,
    DataType,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
    ReduceFunction,
    ReduceOperatorDesc,
    TensorFlags,
)
from bitlane.dml.operators import OPERATOR_DESCS, NodeDesc, OperatorDesc
from bitlane_rtl.abi import Mode, Op
from support.host.model_link import ModelDriver
from support.seeds import examples
from support.system.jobs import Job, jobs
from support.system.jobs import evaluate as evaluate_jobs
from support.system.jobs import execute as execute_jobs

Bytes: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

_UNSIGNED = [DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64]
_COUNTED = [DataType.UINT8, DataType.UINT32]


@dataclass
class Sketch:
    """A graph as data: ``sources`` has the origin of each input of each node.

    An origin is the number of an input of the graph (True), or of a node (False).
    """

    sizes: list[int] = field(default_factory=list)
    """Bytes of each input of the graph."""
    owned: list[bool] = field(default_factory=list)
    nodes: list[NodeDesc] = field(default_factory=list)
    sources: list[list[tuple[bool, int]]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    """Nodes that write the outputs of the graph."""
    size: int = 0
    """Bytes of each tensor, if it is not 0."""


def elements(tensor: BufferTensorDesc, total: int) -> Mask:
    """Return a mask of the bytes, of ``total``, that belong to elements."""
    mask = np.zeros(total, np.bool_)
    size = tensor.data_type.itemsize
    strides = tuple(step * size for step in tensor.element_strides)
    np.ndarray((*tensor.sizes, size), np.bool_, mask, strides=(*strides, 1))[...] = True
    return mask


@st.composite
def sketches(draw: st.DrawFn, *, sums: bool, most: int = 6, size: int = 0) -> Sketch:
    """Return graphs of up to ``most`` nodes; REDUCE is one of them only if ``sums`` is set.

    ``size``: the number of bytes of each input, which most outputs fill, too.
    """
    sketch = Sketch(size=size)
    written: list[Mask] = []
    for _ in range(draw(st.integers(1, most))):
        counts = [k for k, node in enumerate(sketch.nodes) if _is_count(node)] if sums else []
        if counts and draw(st.booleans()):
            source = draw(st.sampled_from(counts))
            node: NodeDesc = draw(_sums(sketch.nodes[source].output_tensor))
            sketch.sources.append([(False, source)])
        else:
            node = draw(_operators(sketch, written))
        sketch.nodes.append(node)
        written.append(elements(node.output_tensor, node.output_tensor.total_tensor_size_in_bytes))
    read = {source for sources in sketch.sources for outer, source in sources if not outer}
    free = [k for k in range(len(sketch.nodes)) if k not in read or draw(st.integers(0, 3)) == 0]
    sketch.results = draw(st.permutations(free))
    return sketch


@st.composite
def _operators(draw: st.DrawFn, sketch: Sketch, written: list[Mask]) -> OperatorDesc:
    kind = draw(st.sampled_from(sorted(OPERATOR_DESCS.values(), key=lambda kind: kind.op)))
    outer, source, total = draw(_origins(sketch))
    exact = None if outer else sketch.nodes[source].output_tensor
    sizes = draw(_whole(total)) if sketch.size else (None, None)
    first = draw(_views(total, *sizes))
    allowed = np.ones(total, np.bool_) if outer else written[source]
    if not outer and (draw(st.booleans()) or not _reads(first, allowed)):
        assert exact is not None
        if exact.data_type in kind.wide_types:
            first = exact
    if not _reads(first, allowed):
        outer, source = True, draw(_new_input(sketch, total))
    sources, tensors = [(outer, source)], [first]
    if kind.op.reads_b:
        outer, source, total = draw(_origins(sketch))
        second = draw(_views(total, first.data_type, first.sizes))
        allowed = np.ones(total, np.bool_) if outer else written[source]
        if second is None or not _reads(second, allowed):
            total = (first.data_type.itemsize * prod(first.sizes) + 3) // 4 * 4
            second = BufferTensorDesc(first.data_type, first.sizes)
            outer, source = True, draw(_new_input(sketch, total))
        sources.append((outer, source))
        tensors.append(second)
    for k, (outer, source) in enumerate(sources):
        if outer and sketch.owned[source]:
            tensors[k] = _with_flags(tensors[k])
    sketch.sources.append(sources)
    counts = kind is dml.ElementWiseBitCountOperatorDesc
    out_type = draw(st.sampled_from(_COUNTED)) if counts else first.data_type
    tensors.append(draw(_outputs(out_type, first.sizes, gaps=not sketch.size)))
    return cast(Callable[..., OperatorDesc], kind)(*tensors)


@st.composite
def _origins(draw: st.DrawFn, sketch: Sketch) -> tuple[bool, int, int]:
    """Draw the origin of an input and its size in bytes; most origins are recent nodes."""
    if sketch.nodes and draw(st.integers(0, 3)):
        last = len(sketch.nodes) - 1
        number = last - draw(st.integers(0, min(2, last)))
        return False, number, sketch.nodes[number].output_tensor.total_tensor_size_in_bytes
    if not sketch.sizes or draw(st.booleans()):
        draw(_new_input(sketch, sketch.size or draw(st.sampled_from([16, 96, 160]))))
    number = draw(st.integers(0, len(sketch.sizes) - 1))
    return True, number, sketch.sizes[number]


@st.composite
def _new_input(draw: st.DrawFn, sketch: Sketch, size: int) -> int:
    sketch.sizes.append(size)
    sketch.owned.append(draw(st.integers(0, 4)) == 0)
    return len(sketch.sizes) - 1


@st.composite
def _whole(draw: st.DrawFn, total: int) -> tuple[DataType, tuple[int, ...]]:
    """Draw a type and sizes of a tensor that fills ``total`` bytes."""
    data_type = draw(st.sampled_from(_UNSIGNED[:3]))
    room, columns = total // data_type.itemsize, draw(st.sampled_from([1, 4, 8]))
    return data_type, (room // columns, columns) if room % columns == 0 else (room,)


@st.composite
def _views(
    draw: st.DrawFn,
    total: int,
    data_type: DataType | None = None,
    sizes: tuple[int, ...] | None = None,
) -> BufferTensorDesc:
    """Draw any view of ``total`` bytes; strides are 0 where others would reach too far."""
    if data_type is None:
        data_type = draw(st.sampled_from([x for x in _UNSIGNED if x.itemsize <= total]))
    room = total // data_type.itemsize
    if sizes is None:
        parts = []
        left = room
        for _ in range(draw(st.integers(1, 3))):
            parts.append(draw(st.integers(1, max(1, min(left, 12)))))
            left //= parts[-1]
        sizes = tuple(parts)
    if draw(st.booleans()) and prod(sizes) <= room:
        return BufferTensorDesc(data_type, sizes, None, TensorFlags.NONE, total)
    strides, left = [0] * len(sizes), max(0, room - 1)
    for axis in draw(st.permutations(range(len(sizes)))):
        most = left // (sizes[axis] - 1) if sizes[axis] > 1 else 3
        strides[axis] = draw(st.integers(0, most))
        left -= strides[axis] * (sizes[axis] - 1)
    return BufferTensorDesc(data_type, sizes, strides, TensorFlags.NONE, total)


@st.composite
def _outputs(
    draw: st.DrawFn, data_type: DataType, sizes: tuple[int, ...], *, gaps: bool = True
) -> BufferTensorDesc:
    """Draw an output: packed in any order of axes, now and then with gaps and bytes behind it."""
    strides, step = [0] * len(sizes), 1
    for axis in draw(st.permutations(range(len(sizes)))) if gaps else reversed(range(len(sizes))):
        strides[axis] = step
        step = step * sizes[axis] + (draw(st.sampled_from([0, 0, 0, 1, 3])) if gaps else 0)
    plain = BufferTensorDesc(data_type, sizes, strides)
    total = plain.total_tensor_size_in_bytes + (draw(st.sampled_from([0, 0, 0, 8])) if gaps else 0)
    return BufferTensorDesc(data_type, sizes, strides, TensorFlags.NONE, total)


@st.composite
def _sums(draw: st.DrawFn, count: BufferTensorDesc) -> ReduceOperatorDesc:
    rank = count.dimension_count
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    sizes = tuple(1 if axis in axes else n for axis, n in enumerate(count.sizes))
    return ReduceOperatorDesc(
        ReduceFunction.SUM, count, draw(_outputs(DataType.UINT32, sizes)), tuple(axes)
    )


def _is_count(node: NodeDesc) -> bool:
    counts = isinstance(node, dml.ElementWiseBitCountOperatorDesc)
    return counts and node.output_tensor.data_type is DataType.UINT32


def _reads(tensor: BufferTensorDesc, allowed: Mask) -> bool:
    return tensor.bytes_reached <= allowed.size and not np.any(
        elements(tensor, allowed.size) & ~allowed
    )


def _with_flags(tensor: BufferTensorDesc) -> BufferTensorDesc:
    return BufferTensorDesc(
        tensor.data_type,
        tensor.sizes,
        tensor.strides,
        TensorFlags.OWNED_BY_DML,
        tensor.total_tensor_size_in_bytes,
    )


# --- What becomes of them -----------------------------------------------------------------------


def compile_sketch(device: dml.Device, sketch: Sketch) -> dml.CompiledOperator:
    """Compile the graph of a sketch on ``device``; inputs that no node reads are left out."""
    arriving, between = [], []
    for node, sources in enumerate(sketch.sources):
        for port, (outer, source) in enumerate(sources):
            if outer:
                arriving.append(InputGraphEdgeDesc(_used(sketch).index(source), node, port))
            else:
                between.append(IntermediateGraphEdgeDesc(source, 0, node, port))
    leaving = [OutputGraphEdgeDesc(node, 0, k) for k, node in enumerate(sketch.results)]
    nodes = [OperatorGraphNodeDesc(device.create_operator(node)) for node in sketch.nodes]
    counts = (len(_used(sketch)), len(sketch.results))
    return device.compile_graph(dml.GraphDesc(*counts, nodes, arriving, leaving, between))


def _used(sketch: Sketch) -> list[int]:
    return sorted({source for sources in sketch.sources for outer, source in sources if outer})


def record(
    device: dml.Device,
    sketch: Sketch,
    inputs: Sequence[BufferBinding],
    outputs: Sequence[BufferBinding],
    times: int = 1,
) -> dml.CommandList:
    """Compile a graph; record its initialization and ``times`` dispatches of it."""
    operator = compile_sketch(device, sketch)
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    initializer = device.create_operator_initializer([operator])
    table = device.create_binding_table(initializer)
    bound = [(inputs[k], sketch.owned[k]) for k in _used(sketch)]
    table.bind_inputs([[binding if owned else None for binding, owned in bound]])
    recorder.record_dispatch(commands, initializer, table)
    table = device.create_binding_table(operator)
    table.bind_inputs([None if owned else binding for binding, owned in bound])
    table.bind_outputs(outputs)
    for _ in range(times):
        recorder.record_dispatch(commands, operator, table)
    return commands


def execute(device: dml.Device, sketch: Sketch, inputs: list[Bytes]) -> list[Bytes]:
    """Dispatch a graph twice, and return the bytes of every output."""
    sources = [device.create_buffer(x.size) for x in inputs]
    for buffer, x in zip(sources, inputs, strict=True):
        buffer.write(x)
    outputs = [device.create_buffer(size) for size in _sizes(sketch)]
    bindings = [[BufferBinding(x) for x in buffers] for buffers in (sources, outputs)]
    device.execute(record(device, sketch, *bindings, times=2))
    return [buffer.read().view(np.uint8) for buffer in outputs]


def _sizes(sketch: Sketch) -> list[int]:
    """Return the number of bytes of each output."""
    return [sketch.nodes[k].output_tensor.total_tensor_size_in_bytes for k in sketch.results]


def evaluate(sketch: Sketch, inputs: list[Bytes]) -> list[tuple[Bytes, Mask]]:
    """Return the golden model's bytes of every output, and a mask of those that are defined."""
    values: list[Bytes] = []
    for node, sources in zip(sketch.nodes, sketch.sources, strict=True):
        regions = [
            reference.Region(inputs[source] if outer else values[source])
            for outer, source in sources
        ]
        blank = np.zeros(node.output_tensor.total_tensor_size_in_bytes, np.uint8)
        values.append(reference.evaluate(node, regions, reference.Region(blank)))
    return [
        (values[k], elements(sketch.nodes[k].output_tensor, values[k].size)) for k in sketch.results
    ]


_EIGHT = frozenset({Op.NOT, Op.AND, Op.OR, Op.XOR, Op.SHIFT_LEFT, Op.SHIFT_RIGHT, Op.COUNT})


def agrees(driver: ModelDriver, sketch: Sketch, seed: int) -> None:
    """Expect every byte of an element in the outputs of ``sketch`` to be the golden model's."""
    random = np.random.default_rng(seed)
    inputs = [random.integers(0, 256, size, np.uint8) for size in sketch.sizes]
    with dml.Device(driver) as device:
        results = execute(device, sketch, inputs)
    for got, (wanted, defined) in zip(results, evaluate(sketch, inputs), strict=True):
        different = np.flatnonzero((got[: wanted.size] != wanted) & defined)
        assert different.size == 0, f"noise of seed {seed}, {sketch}: bytes {different[:8]}"


@given(sketch=sketches(sums=True), seed=st.integers(0, 2**32 - 1))
def test_agree_with_the_golden_model(sketch: Sketch, seed: int) -> None:
    agrees(ModelDriver(), sketch, seed)


@pytest.mark.parametrize("data_bytes", [4, 16])
@given(sketch=sketches(sums=False), seed=st.integers(0, 2**32 - 1))
def test_agree_on_circuits_without_fusion(data_bytes: int, sketch: Sketch, seed: int) -> None:
    modes = frozenset(Mode) - {Mode.SUM}
    agrees(ModelDriver(ops=_EIGHT, modes=modes, data_bytes=data_bytes), sketch, seed)


# --- graphs over their own inputs -------------------------------------------------------------

OFFSETS = st.lists(st.sampled_from([0, 0, 0, 0, 16, 64, 64, 128]), min_size=32, max_size=32)
"""Places in a buffer: alone, in place of one another, and overlapping in part."""


def runs_over_itself(sketch: Sketch, offsets: list[int], seed: int) -> bool:
    """Return whether a graph in one buffer is accepted; expect the golden model's bytes then."""
    before = np.random.default_rng(seed).integers(0, 256, 192, np.uint8)
    starts = iter(offsets)
    ranges = [[(next(starts), size) for size in sizes] for sizes in (sketch.sizes, _sizes(sketch))]
    with dml.Device(ModelDriver()) as device:
        buffer = device.create_buffer(before.size)
        buffer.write(before)
        bindings = [[BufferBinding(buffer, *each) for each in some] for some in ranges]
        wanted, fine = before.copy(), True
        try:
            device.execute(record(device, sketch, *bindings))
        except dml.DmlError:
            fine = False
        else:
            inputs = [before[at : at + size] for at, size in ranges[0]]
            results = [bytes_ for bytes_, _ in evaluate(sketch, inputs)]
            for (at, size), result in zip(ranges[1], results, strict=True):
                wanted[at : at + size] = result
        different = np.flatnonzero(buffer.read() != wanted)
    assert not different.size, f"noise of seed {seed}, {offsets}, {sketch}: bytes {different[:8]}"
    return fine


OVER_ITSELF = st.tuples(sketches(sums=False, most=3, size=64), OFFSETS, st.integers(0, 2**32 - 1))


def test_graphs_over_their_own_inputs_are_refused_or_right() -> None:
    outcomes: set[str] = set()

    @examples(2)
    @given(OVER_ITSELF)
    def run(case: tuple[Any, ...]) -> None:
        sketch, offsets, _ = case
        inputs, rest = offsets[: len(sketch.sizes)], offsets[len(sketch.sizes) :]
        apart = {*inputs}.isdisjoint(rest[: len(sketch.results)])
        outcomes.add(("apart" if apart else "shared") if runs_over_itself(*case) else "refused")

    run()
    assert outcomes == {"apart", "shared", "refused"}


# --- operators and aliases --------------------------------------------------------------------


MOST, REACH = 200, 1000
CHAIN = 4


@given(
    chain=st.lists(jobs(MOST, REACH), min_size=1, max_size=CHAIN), seed=st.integers(0, 2**32 - 1)
)
def test_agrees_with_the_golden_model_on_every_byte(chain: list[Job], seed: int) -> None:
    with dml.Device(ModelDriver(), max(job.level for job in chain)) as device:
        buffer = device.create_buffer(max(job.size for job in chain))
        before = np.random.default_rng(seed).integers(0, 256, buffer.size_in_bytes, np.uint8)
        buffer.write(before)
        execute_jobs(device, buffer, *chain)
        different = np.flatnonzero(buffer.read() != evaluate_jobs(before, *chain))
    assert different.size == 0, f"noise of seed {seed}, {chain}: bytes {different[:8]}"
