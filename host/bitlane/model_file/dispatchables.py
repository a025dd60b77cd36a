"""The dispatchables of a model file: descriptions of DirectML operators."""

from typing import Any, cast

from ..dml import (
    BufferTensorDesc,
    DataType,
    DmlError,
    ExecutionFlags,
    FeatureLevel,
    OperatorDesc,
    OperatorType,
    TensorFlags,
)
from ..dml.operators import OPERATOR_DESCS
from ..dml.rules import check_operator
from .bindings import read_bindings
from .errors import Fact, ModelFileError
from .model import Binding, Dispatchable, Resource
from .node import Node
from .values import read_data_type

__all__ = ["OPERATOR_PREFIX", "dml_error", "read_dispatchable"]

OPERATOR_PREFIX = "DML_OPERATOR_"

_SUPPORTED = ", ".join(OPERATOR_PREFIX + member.name for member in sorted(OPERATOR_DESCS))
_OTHER_KINDS = {
    "hlsl": "an HLSL shader",
    "onnx": "an ONNX model",
    "dmlserializedgraph": "a serialized graph",
    "dml_graph_desc": "a graph",
}
_TENSOR_FIELDS = (
    "DataType",
    "Flags",
    "DimensionCount",
    "Sizes",
    "Strides",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)
_COMPILE_TYPES = ("DmlCompileOp", "DmlCompileGraph")
_OWN_FIELDS = ("type", "Type", "bindings", "dmlCompileType", "executionFlags")


def read_dispatchable(
    name: str, node: Node, resources: dict[str, Resource], level: FeatureLevel
) -> Dispatchable:
    """An operator that follows DirectML's rules at ``level``. Raises ``ModelFileError``."""
    members = node.members()
    kind = node.required("Type" if "type" not in members and "Type" in members else "type")
    desc_class = OPERATOR_DESCS[_operator_type(kind)]
    fields, tensor_names = _desc_fields(node), _tensor_names(desc_class)
    if fields.path != node.path:
        node.only("an operator", *_OWN_FIELDS, "desc", "Desc")
        fields.only(kind.text(), *tensor_names)
    else:
        fields.only(kind.text(), *tensor_names, *_OWN_FIELDS)
    tensors, tensor_paths = [], {}
    for tensor_name in tensor_names:
        tensor, tensor_paths[tensor_name] = _tensor(fields.required(tensor_name))
        tensors.append(tensor)
    desc = cast(Any, desc_class)(*tensors)
    try:
        check_operator(desc, level)
    except DmlError as error:
        raise dml_error(error, node.file, tensor_paths, kind.path) from error
    return Dispatchable(
        name,
        desc,
        node.flags("executionFlags", ExecutionFlags, "DML_EXECUTION_FLAG_"),
        _owned_bindings(node, desc, resources),
        node.path,
        tensor_paths,
        _is_graph(node),
    )


def dml_error(
    error: DmlError, file: str, tensor_paths: dict[str, str], otherwise: str
) -> ModelFileError:
    """What DirectML refuses, at its place in the file; ``otherwise`` if it is no tensor's."""
    if error.tensor in tensor_paths:
        path = f"{tensor_paths[error.tensor]}.{error.field}"
    else:
        path = f"{otherwise} ({error.tensor}.{error.field})"
    value = Fact(error.value) if isinstance(error.value, str) else error.value
    return ModelFileError(file, path, value, f"{error.expected} ({error.hresult})")


def _operator_type(kind: Node) -> OperatorType:
    text = kind.text()
    other = _OTHER_KINDS.get(text.lower())
    if other is not None:
        raise kind.error(f"one of {_SUPPORTED}; bitlane does not run {other}")
    short = text.removeprefix(OPERATOR_PREFIX)
    if short not in [member.name for member in OPERATOR_DESCS]:
        raise kind.error(f"one of {_SUPPORTED}")
    return OperatorType[short]


def _desc_fields(node: Node) -> Node:
    """Where the fields of the C structure stand: in ``desc`` or ``Desc``, or in place of it."""
    desc = node.optional("desc", "Desc")
    if desc is None:
        return node
    desc.members()
    return desc


def _tensor_names(desc_class: type[OperatorDesc]) -> tuple[str, ...]:
    if desc_class.op.reads_b:
        return ("ATensor", "BTensor", "OutputTensor")
    return ("InputTensor", "OutputTensor")


def _tensor(node: Node) -> tuple[BufferTensorDesc, str]:
    """A tensor, plain or wrapped in ``Type`` and ``Desc``; and where its fields stand."""
    if (kind := node.optional("Type")) is not None:
        kind.choice(["BUFFER"], "DML_TENSOR_TYPE_")
    fields = node
    if node.has("Desc"):
        node.only("a wrapped tensor", "Type", "Desc")
        fields = node.required("Desc")
        fields.only("a tensor", *_TENSOR_FIELDS)
    else:
        fields.only("a tensor", "Type", *_TENSOR_FIELDS)
    data_type = read_data_type(fields.required("DataType"))
    if data_type is DataType.UNKNOWN:
        raise fields.required("DataType").error("the type of the tensor's elements")
    # What is a UINT in C but breaks one of DirectML's rules is left to those rules.
    sizes = fields.required("Sizes").integers()
    count, strides = fields.optional("DimensionCount"), fields.optional("Strides")
    if count is not None and count.integer() != len(sizes):
        raise count.error(f"{len(sizes)}, the length of Sizes")
    steps = [] if strides is None else strides.integers()
    if strides is not None and len(steps) not in (0, len(sizes)):
        raise strides.error(f"{len(sizes)} numbers, as in Sizes")
    alignment = fields.optional("GuaranteedBaseOffsetAlignment")
    tensor = BufferTensorDesc(
        data_type,
        sizes,
        # An empty list and a size of 0 stand for "not given", as they do in DxDispatch.
        steps or None,
        fields.flags("Flags", TensorFlags, "DML_TENSOR_FLAG_"),
        fields.number("TotalTensorSizeInBytes") or None,
        0 if alignment is None else alignment.integer(),
    )
    return tensor, fields.path


def _is_graph(node: Node) -> bool:
    """``dmlCompileType``: whether the operator is compiled as a graph."""
    kind = node.optional("dmlCompileType")
    return kind is not None and kind.choice(_COMPILE_TYPES) == _COMPILE_TYPES[1]


def _owned_bindings(
    node: Node, desc: OperatorDesc, resources: dict[str, Resource]
) -> dict[str, Binding]:
    """What the dispatchable binds at initialization: exactly the tensors that DML owns."""
    owned = [name for name, tensor in desc.inputs if tensor.owned]
    given = node.optional("bindings")
    if given is None:
        if not owned:
            return {}
        expected = f"bindings of {', '.join(owned)}, which are OWNED_BY_DML"
        raise node.child("bindings", Fact("missing")).error(expected)
    return read_bindings(given, owned, resources, "inputs that are OWNED_BY_DML")
