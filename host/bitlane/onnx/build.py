"""Expressions of a group: each node becomes the expression of its operands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bitlane_rtl.abi import Op

from ..api import Device
from ..arrays import Array, Value
from ..compiler import Applied, Expression, Joined, Viewed, Widened, apply
from ..compiler.nodes import HostSum, operands_first
from ..errors import LayoutError, ShapeError
from .model import BitNode, DeviceGroup

__all__ = ["Build", "Operand", "Workplace", "build_group"]


@dataclass(frozen=True, slots=True)
class Operand:
    """Elements of ``dtype`` that ``node`` describes."""

    node: Expression
    dtype: np.dtype[Any]
    truth: Expression | None = None
    """The truth values that ``node`` shows as integers, if it does."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """The device that an expression is made for, and the values that it may read."""

    device: Device
    sources: Sequence[Value] = field(default_factory=tuple)

    def value(self, node: Expression, dtype: np.dtype[Any]) -> Value:
        """Return ``node`` as a value on the device."""
        return Value(self.device, dtype, node, self.sources)


Build: TypeAlias = Callable[[BitNode, Sequence[Operand], Workplace], Operand]
"""Makes the expression of a node; raises ``ShapeError`` or ``LayoutError``."""


def build_group(
    group: DeviceGroup,
    device: Device,
    tensors: Mapping[str, Array],
    builds: Mapping[str, Build],
) -> list[Array]:
    """Return the outputs of ``group`` for ``tensors``, its inputs. Executes nothing.

    ``builds``: the function of each operator. Raises ``ShapeError`` where shapes do not fit,
    ``LayoutError`` as arrays do.
    """
    sources = [tensors[name]._value for name in group.inputs]
    place = Workplace(device, sources)
    operands = {
        name: Operand(value.node, value.dtype)
        for name, value in zip(group.inputs, sources, strict=True)
    }
    for node in group.nodes:
        try:
            # Operands, not arrays: a chain of arrays takes memory and time of its length's square,
            # and a view of an array computes it.
            made = builds[node.operator](node, [operands[x] for x in node.inputs], place)
        except ShapeError as error:
            raise ShapeError(f"{node.label}: {error}") from None
        except LayoutError as error:
            raise LayoutError(f"{node.label}: {error}") from None
        assert made.dtype == node.dtype, node.label
        operands[node.output] = made
    roots: dict[Expression, np.dtype[Any]] = {}
    taken = {value.node for value in sources}
    for name in group.outputs:
        root, dtype = operands[name].node, operands[name].dtype
        if root in taken or not _is_separate(root):
            # Writing to one array must not change another, or an element that it repeats.
            root = apply(Op.COPY, root)
        taken.add(root)
        roots[root] = dtype
    return [Array(value) for value in _values_of(roots, place)]


def _values_of(roots: Mapping[Expression, np.dtype[Any]], place: Workplace) -> list[Value]:
    """Return the values of ``roots``, each made from those that its expression holds.

    One that is computed serves the others, which have to be computed before it is written to.
    """
    made: dict[Expression, Value] = {}
    held: dict[Expression, frozenset[Expression]] = {}
    for node in operands_first(list(roots)):
        below = frozenset[Expression]().union(*(held[each] for each in node.operands))
        held[node] = below
        if node in roots:
            sources = [*place.sources, *(made[each] for each in below)]
            made[node] = Value(place.device, roots[node], node, sources)
            held[node] = below | {node}
    return [made[root] for root in roots]


def _is_separate(node: Expression) -> bool:
    """Return whether ``node`` is computed to memory in which no two elements share a byte."""
    if isinstance(node, Viewed):
        steps = zip(node.shape, node.strides, strict=True)
        return _is_separate(node.source) and all(step or count == 1 for count, step in steps)
    return isinstance(node, Applied | Widened | Joined | HostSum)
