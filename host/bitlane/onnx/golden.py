"""The golden model of ONNX graphs: onnx's own reference, which shares no code with the device."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from .._typing import AnyArray
from ..arguments.operands import as_zeros_and_ones
from .model import DeviceGroup, HostValue
from .types import read_type


class BitCast(OpRun):
    """BitCast whose booleans have the bytes 0 and 1; its name is the operator's."""

    op_domain = ""

    def _run(self, x: AnyArray, to: int) -> tuple[AnyArray]:
        # onnx 1.23 gives booleans of any byte, so that a BitCast back to uint8 gives 2 for True.
        return (_view_bits(x, read_type("to", to)),)


def reference_group(
    model: ModelProto, group: DeviceGroup, tensors: Mapping[str, HostValue]
) -> list[AnyArray]:
    """Return the outputs of ``group``, cut from ``model``, by onnx's reference.

    ``model``: as `read_model` has read it. ``tensors``: the inputs of the group by name. Any byte
    of a boolean but 0 is True; those of results are 0 and 1.
    """
    own = {node.output for node in group.nodes}
    part = ModelProto()
    part.CopyFrom(model)
    del part.graph.node[:], part.graph.output[:]
    # The part has all constants, because shapes and axes are not inputs of the group.
    part.graph.node.extend(
        node for node in model.graph.node if node.op_type == "Constant" or own & {*node.output}
    )
    values = {name: _view_bits(*_native(np.asarray(x))) for name, x in tensors.items()}
    results = ReferenceEvaluator(part, new_ops=[BitCast]).run(list(group.outputs), values)
    return [np.asarray(x) for x in results]


def _native(x: AnyArray) -> tuple[AnyArray, np.dtype[Any]]:
    """Return ``x`` in the byte order of this machine, and its type."""
    dtype = x.dtype.newbyteorder("=")
    return np.asarray(x, dtype), dtype


def _view_bits(x: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return the bits of ``x`` as ``dtype``; as booleans, whether any is 1."""
    return as_zeros_and_ones(x) if dtype.kind == "b" else x.view(dtype)
