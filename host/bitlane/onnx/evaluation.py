"""What a graph gives: as arrays on a device, which compute it when needed; and as NumPy has it.

The second is what the first is checked against. They share the graph and nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bitlane_rtl.abi import Op

from .. import reference
from ..arrays import Array
from ..arrays.base import value_of
from ..arrays.value import Value
from ..device import Device
from ..expression.form import Constant, Expression, apply
from ..jobs.lowering import LayoutError
from ..jobs.operands import AnyArray, ShapeError
from .graph import BitGraph

__all__ = ["expected", "pending"]


def pending(graph: BitGraph, device: Device, tensors: Mapping[str, Array]) -> list[Array]:
    """The outputs of ``graph`` for ``tensors``, its inputs and constants. Executes nothing.

    Raises ``ShapeError`` where shapes do not go together, ``LayoutError`` as arrays do.
    """
    sources = {name: value_of(x) for name, x in tensors.items()}
    nodes = {name: value.node for name, value in sources.items()}
    types = {name: value.dtype for name, value in sources.items()}
    for each in graph.nodes:
        operands = [nodes[name] for name in each.inputs]
        try:
            nodes[each.output] = _applied(each.op, operands, types[each.inputs[0]])
        except (ShapeError, LayoutError) as error:
            raise type(error)(f"{each.label}: {error}") from None
        types[each.output] = each.dtype
    # An array for each output alone: one that waits knows all the arrays that it waits for.
    results, taken = [], {value.node for value in sources.values()}
    for x in graph.outputs:
        node = nodes[x.name]
        if node in taken:
            # Writing to one array may not change another.
            node = apply(Op.COPY, node)
        taken.add(node)
        results.append(Array(Value(device, x.dtype, node, tuple(sources.values()))))
    return results


def _applied(op: Op | None, operands: Sequence[Expression], dtype: np.dtype[Any]) -> Expression:
    """``op`` of operands of ``dtype``, of whose bits it makes another type where there is none."""
    if op is None:
        return operands[0]
    if op is Op.NOT and dtype.kind == "b":
        return apply(Op.XOR, operands[0], Constant(b"\1"))
    return apply(op, *operands, flags=(True, dtype.kind == "i"))


def expected(graph: BitGraph, tensors: Mapping[str, AnyArray]) -> list[AnyArray]:
    """What `pending` ought to give, by the golden model.

    Truth values are their bytes, also where they are neither 0 nor 1.
    """
    values = {name: np.asarray(x, x.dtype.newbyteorder("=")) for name, x in tensors.items()}
    for node in graph.nodes:
        first = values[node.inputs[0]]
        truth = first.dtype.kind == "b"
        operands = [values[name].view(np.uint8) if truth else values[name] for name in node.inputs]
        if node.op is None:
            result = first
        elif truth and node.op is Op.NOT:
            result = reference.bit_xor(operands[0], np.uint8(1))
        else:
            signed = first.dtype.kind == "i"
            result = reference.compute(node.op, *operands, saturate=True, arithmetic=signed)
        values[node.output] = result.view(node.dtype)
    return [values[x.name] for x in graph.outputs]
