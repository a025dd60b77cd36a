"""Reads nodes of a graph, checked by ONNX's schemas; other operators are refused by name."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, defs

from bitlane_rtl.abi import Op

from ..errors import OnnxError
from .model import BitNode, quoted
from .types import TYPES, read_type, schema_name

OWN_DOMAINS: Final = ("", "ai.onnx")
"""The names of the domain of ONNX's own operators."""

_OPERATORS: Final[Mapping[str, Op | None]] = {
    "And": Op.AND,
    "BitCast": None,
    "BitShift": None,
    "BitwiseAnd": Op.AND,
    "BitwiseNot": Op.NOT,
    "BitwiseOr": Op.OR,
    "BitwiseXor": Op.XOR,
    "Equal": Op.COUNT_XOR,
    "Not": Op.NOT,
    "Or": Op.OR,
    "Xor": Op.XOR,
}
"""The circuit's operation of each operator, for Equal the one whose counts are tested; None where
an attribute selects it."""

_VERSIONS: Final = {
    **dict.fromkeys(("And", "Or", "Xor"), (7,)),
    "Not": (1,),
    **dict.fromkeys(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), (18,)),
    "BitShift": (11, 28),
    "BitCast": (26,),
    "Equal": (7, 11, 13, 19),
}
"""The opsets of the supported definitions. And, Equal, Or and Xor broadcast as NumPy from 7 on."""

_DIRECTIONS: Final = {b"LEFT": Op.SHIFT_LEFT, b"RIGHT": Op.SHIFT_RIGHT}

_VALUES: Final = {
    defs.OpSchema.AttrType.INT: (AttributeProto.INT, "i", "an integer"),
    defs.OpSchema.AttrType.STRING: (AttributeProto.STRING, "s", "a string"),
}
"""The type number, the field and the name of each attribute type."""


def newest_opset() -> int:
    """Return the newest version of ONNX's own operators in the package `onnx`."""
    return int(defs.onnx_opset_version())


def expect_opset(where: str, opset: object) -> int:
    """Return ``opset`` if the package `onnx` supports it. Raises ``OnnxError``."""
    if isinstance(opset, int) and 1 <= opset <= newest_opset():
        return opset
    known = f"1 to {newest_opset()}, which onnx {onnx.__version__} knows"
    raise OnnxError(f"{where}: opset {opset!r:.40}; expected {known}")


def read_node(
    node: NodeProto, number: int, types: Mapping[str, np.dtype[Any]], opset: int
) -> BitNode:
    """Read a node; ``types`` has the types of its inputs. Raises ``OnnxError``."""
    operator = node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}.{node.op_type}"
    label = f"node {quoted(node.name) if node.name else number} ({quoted(operator)[1:-1]})"
    schema = _schema(label, operator, opset)
    attributes = _attributes(label, node, schema)
    dtypes = _input_types(label, node, types, schema)
    if len(node.output) != 1 or not node.output[0]:
        raise OnnxError(f"{label}: {len(node.output)} outputs; expected one, with a name")
    op, dtype = _OPERATORS[operator], dtypes[0]
    if operator == "BitShift":
        direction = attributes["direction"]
        if direction not in _DIRECTIONS:
            shown = quoted(direction.decode(errors="backslashreplace"))
            raise OnnxError(f"{label}: direction {shown}; expected LEFT or RIGHT")
        op = _DIRECTIONS[direction]
    if operator == "Equal":
        dtype = TYPES["BOOL"]
    if operator == "BitCast":
        dtype = read_type(f"{label}: to", attributes["to"])
        if dtype.itemsize != dtypes[0].itemsize:
            raise OnnxError(f"{label}: from {dtypes[0]} to {dtype}; expected as many bits")
    return BitNode(label, op, tuple(node.input), node.output[0], dtype)


def _schema(label: str, operator: str, opset: int) -> defs.OpSchema:
    """Return the schema of an operator in ``opset``. Raises ``OnnxError`` if it is unsupported."""
    if operator not in _OPERATORS:
        raise OnnxError(
            f"{label}: an operator that bitlane does not have; expected {', '.join(_OPERATORS)}"
        )
    versions = _VERSIONS[operator]
    try:
        schema = defs.get_schema(operator, max_inclusive_version=opset, domain="")
    except defs.SchemaError:
        schema = None
    if schema is None or schema.since_version not in versions:
        as_of = "" if schema is None else f", where it is as of {schema.since_version}"
        known = " or ".join(map(str, versions))
        raise OnnxError(f"{label}: opset {opset}{as_of}; expected it as of opset {known}")
    return schema


def _attributes(label: str, node: NodeProto, schema: defs.OpSchema) -> dict[str, Any]:
    """Return the attributes: integers and strings. Raises ``OnnxError``."""
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        where = f"{label}: attribute {quoted(attribute.name)}"
        if attribute.name not in schema.attributes or attribute.name in values:
            names = ", ".join(schema.attributes) or "none"
            raise OnnxError(f"{where}: unknown, or there already; expected {names}, once")
        kind, value, expected = _VALUES[schema.attributes[attribute.name].type]
        fields = {field.name for field, _ in attribute.ListFields()} - {"doc_string"}
        # No other field: it might name a file.
        if attribute.type != kind or fields != {"name", "type", value}:
            raise OnnxError(f"{where}: of another type; expected {expected}")
        values[attribute.name] = getattr(attribute, value)
    for name, declared in schema.attributes.items():
        if name not in values:
            _, _, expected = _VALUES[declared.type]
            raise OnnxError(f"{label}: attribute {name!r}: nothing given; expected {expected}")
    return values


def _input_types(
    label: str, node: NodeProto, types: Mapping[str, np.dtype[Any]], schema: defs.OpSchema
) -> list[np.dtype[Any]]:
    """Return the types of the inputs, checked by the schema. Raises ``OnnxError``."""
    if len(node.input) != len(schema.inputs):
        raise OnnxError(f"{label}: {len(node.input)} inputs; expected {len(schema.inputs)}")
    constraints = {each.type_param_str: each for each in schema.type_constraints}
    found: dict[str, np.dtype[Any]] = {}
    result = []
    for name, formal in zip(node.input, schema.inputs, strict=True):
        where = f"{label}: input {quoted(name)}"
        if name not in types:
            raise OnnxError(
                f"{where}: neither the graph nor a node before this one gives it; expected nodes"
                " in order, without cycles"
            )
        dtype = types[name]
        if schema_name(dtype) not in constraints[formal.type_str].allowed_type_strs:
            allowed = ", ".join(constraints[formal.type_str].allowed_type_strs)
            raise OnnxError(f"{where}: {dtype}; expected {allowed} (as of {schema.since_version})")
        if found.setdefault(formal.type_str, dtype) != dtype:
            raise OnnxError(f"{where}: {dtype}; expected {found[formal.type_str]}, as the other")
        result.append(dtype)
    return result
