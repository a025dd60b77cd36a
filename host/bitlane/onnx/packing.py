"""Sends truth values as packed bits where only their differences are counted.

In ``ReduceSum(Cast(Xor(a, b)))`` along the last axis, and the same with Equal, each byte of a and b
has one bit that counts. Eight of them fit in a byte, and the sums stay the same.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.axes import normalize_axes
from ..arguments.operands import as_zeros_and_ones
from ..arrays import Strided
from ..arrays.sums import sum_ones
from ..compiler import Expression, apply, window
from ..driver import Geometry
from ..errors import ShapeError
from .build import Build, Operand, Workplace
from .model import BitNode, DeviceGroup
from .operators import BUILDS

DISTANCE: Final = "distance of packed bits"
"""The operator of nodes that count the differences of packed inputs."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """Nodes that count how many elements along an axis differ, or are equal."""

    nodes: tuple[BitNode, ...]
    """Unsqueeze of either input, then Xor or Equal, Cast and ReduceSum."""
    inputs: tuple[str, str]
    views: tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
    """The axes that each Unsqueeze of an input adds."""
    equal: bool

    @property
    def sum(self) -> BitNode:
        return self.nodes[-1]

    def node(self) -> BitNode:
        """Return the node that takes the place of all."""
        settings = {
            "views": self.views,
            "equal": self.equal,
            "keepdims": self.sum.settings["keepdims"],
        }
        return replace(self.sum, operator=DISTANCE, inputs=self.inputs, settings=settings)

    def fits(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Return whether inputs of ``shapes`` can be packed along the axis that is summed."""
        try:
            first, second = (
                _unsqueezed(shapes[name], views)
                for name, views in zip(self.inputs, self.views, strict=True)
            )
            rank = max(len(first), len(second))
            axes = normalize_axes(self.sum.settings["axes"], rank)
        except ShapeError:
            return False
        if not first or not second or axes != (rank - 1,) or first[-1] != second[-1]:
            return False
        # The bits that fill the last byte up differ nowhere; they would count as equal.
        return first[-1] > 0 and not (self.equal and first[-1] % 8)


def _unsqueezed(shape: tuple[int, ...], views: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return ``shape`` with axes of length 1. Raises ``ShapeError``."""
    for axes in views:
        rank = len(shape) + len(axes)
        added = normalize_axes(axes, rank)
        if rank - 1 in added:
            raise ShapeError("shape: the last axis does not stay the last")
        lengths = iter(shape)
        shape = tuple([1 if axis in added else next(lengths) for axis in range(rank)])
    return shape


def find_packable(group: DeviceGroup) -> frozenset[str]:
    """Return the inputs of ``group`` that are sent as packed bits if shapes and types allow it."""
    return frozenset(name for chain in _chains(group) for name in chain.inputs)


def pack_group(
    group: DeviceGroup, shapes: Mapping[str, tuple[int, ...]], truths: Container[str]
) -> tuple[DeviceGroup, frozenset[str]]:
    """Return ``group`` for packed inputs, and the names of these.

    ``shapes``: those of all inputs. ``truths``: the inputs that are truth values on the host.
    """
    chains = [
        chain
        for chain in _chains(group)
        if all(name in truths for name in chain.inputs) and chain.fits(shapes)
    ]
    chains = _alone(group, chains)
    if not chains:
        return group, frozenset()
    gone = {node.output for chain in chains for node in chain.nodes}
    made = {chain.sum.output: chain.node() for chain in chains}
    nodes = [made.get(node.output, node) for node in group.nodes]
    left = tuple([node for node in nodes if node.operator == DISTANCE or node.output not in gone])
    packed = frozenset(name for chain in chains for name in chain.inputs)
    return replace(group, nodes=left), packed


def _chains(group: DeviceGroup) -> list[_Chain]:
    """Return the chains of ``group`` whose values nothing else reads."""
    made = {node.output: node for node in group.nodes}
    found = [
        chain
        for node in group.nodes
        if node.operator == "ReduceSum" and (chain := _chain(node, made)) is not None
    ]
    return _alone(group, found)


def _alone(group: DeviceGroup, chains: Sequence[_Chain]) -> list[_Chain]:
    """Return those of ``chains`` whose inputs and values no node outside of them reads."""
    left = list(chains)
    while True:
        own = {node.output for chain in left for node in chain.nodes}
        read = {x for node in group.nodes if node.output not in own for x in node.inputs}
        read.update(group.outputs)
        fewer = [
            chain
            for chain in left
            if read.isdisjoint(chain.inputs)
            and read.isdisjoint(node.output for node in chain.nodes[:-1])
        ]
        if len(fewer) == len(left):
            return left
        left = fewer


def _chain(total: BitNode, made: Mapping[str, BitNode]) -> _Chain | None:
    cast = made.get(total.inputs[0])
    if cast is None or cast.operator != "Cast" or len(total.settings["axes"]) != 1:
        return None
    compared = made.get(cast.inputs[0])
    if compared is None or compared.operator not in ("Xor", "Equal") or compared.dtype.kind != "b":
        return None
    nodes: list[BitNode] = []
    inputs, views = [], []
    for name in compared.inputs:
        axes: list[tuple[int, ...]] = []
        while name in made and made[name].operator == "Unsqueeze":
            nodes.append(made[name])
            axes.insert(0, made[name].settings["axes"])
            name = made[name].inputs[0]
        if name in made:
            return None
        inputs.append(name)
        views.append(tuple(axes))
    return _Chain(
        (*nodes, compared, cast, total),
        (inputs[0], inputs[1]),
        (views[0], views[1]),
        compared.operator == "Equal",
    )


def pack_bits(array: AnyArray, geometry: Geometry) -> AnyArray:
    """Return truth values along the last axis as words of unsigned integers, filled up with 0.

    The words are as wide as a device of ``geometry`` counts at once, or narrower.
    """
    # NumPy packs arrays in Fortran's order into that order.
    packed = np.ascontiguousarray(np.packbits(as_zeros_and_ones(array), axis=-1, bitorder="little"))
    lanes = [lane.bytes for lane in geometry.lanes if lane.bytes <= geometry.data_bytes]
    size = max(width for width in (*lanes, 1) if packed.shape[-1] % width == 0)
    return packed.view(f"<u{size}").astype(f"u{size}", copy=False)


def build_distance(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    """Return how many bits of two packed operands differ, or are equal, along the last axis."""
    a, b = (_view(x, views) for x, views in zip(operands, node.settings["views"], strict=True))
    words = apply(Op.XNOR if node.settings["equal"] else Op.XOR, a, b)
    value = place.value(words, operands[0].dtype)
    total = sum_ones(value, -1, node.dtype, keep=node.settings["keepdims"])
    return Operand(total.node, node.dtype)


PACKED_BUILDS: Final[Mapping[str, Build]] = {**BUILDS, DISTANCE: build_distance}
"""The functions that make the expressions of groups, packed or not."""


def _view(x: Operand, views: Sequence[tuple[int, ...]]) -> Expression:
    node = x.node
    for axes in views:
        rank = len(node.shape) + len(axes)
        added = normalize_axes(axes, rank)
        key = tuple([None if axis in added else slice(None) for axis in range(rank)])
        part = Strided(node.shape, node.strides, node.itemsize).index(key)
        node = window(node, part.offset, part.shape, part.strides)
    return node
