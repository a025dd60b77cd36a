"""Reads nodes of a graph, checked by ONNX's schemas; other operators are refused by name."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, defs

from .._typing import AnyArray
from ..errors import OnnxError, OnnxLackingError
from .given import Given
from .model import BitNode, quoted
from .operators import OPERATORS
from .types import schema_name

OWN_DOMAINS: Final = ("", "ai.onnx")
"""The names of the domain of ONNX's own operators."""

UNDEFINED: Final = (
    "neither the graph nor a node before this one gives it; expected nodes in order, without cycles"
)

_MANY: Final = 1 << 30
"""More inputs than a node has: ONNX's mark of a variable number."""

_KINDS: Final = {
    defs.OpSchema.AttrType.INT: (AttributeProto.INT, "i", "an integer"),
    defs.OpSchema.AttrType.INTS: (AttributeProto.INTS, "ints", "integers"),
    defs.OpSchema.AttrType.STRING: (AttributeProto.STRING, "s", "a string"),
}
"""The type number, the field and the name of each attribute type."""

_OPTION: Final = defs.OpSchema.FormalParameterOption

Types: TypeAlias = Mapping[str, np.dtype[Any] | str]
"""The types of values by name, or why a value has none that a device has."""


def newest_opset() -> int:
    """Return the newest version of ONNX's own operators in the package `onnx`."""
    return int(defs.onnx_opset_version())


def expect_opset(where: str, opset: object) -> int:
    """Return ``opset`` if the package `onnx` supports it. Raises ``OnnxError``."""
    if isinstance(opset, int) and 1 <= opset <= newest_opset():
        return opset
    known = f"1 to {newest_opset()}, which onnx {onnx.__version__} knows"
    raise OnnxError(f"{where}: opset {opset!r:.40}; expected {known}")


def label_of(node: NodeProto, number: int) -> str:
    """Return a node in messages: ``node 'name' (Xor)``."""
    operator = _operator(node)
    return f"node {quoted(node.name) if node.name else number} ({quoted(operator)[1:-1]})"


def _operator(node: NodeProto) -> str:
    return node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}.{node.op_type}"


def subgraphs_of(node: NodeProto) -> list[GraphProto]:
    found = []
    for attribute in node.attribute:
        found += [attribute.g] if attribute.HasField("g") else []
        found += attribute.graphs
    return found


def read_node(
    node: NodeProto,
    number: int,
    types: Types,
    opset: int,
    constants: Mapping[str, AnyArray] | None = None,
) -> BitNode:
    """Read a node that reads values of ``types``, of which ``constants`` are always the same.

    Raises ``OnnxLackingError`` for one that devices do not compute, ``OnnxError`` for another
    than ONNX defines.
    """
    label, name = label_of(node, number), _operator(node)
    schema = _schema(label, name, opset)
    attributes = _attributes(label, node, schema)
    dtypes = _input_types(label, node, types, schema)
    if len(node.output) != 1 or not node.output[0]:
        raise OnnxError(f"{label}: {len(node.output)} outputs; expected one, with a name")
    given = Given(label, tuple(node.input), tuple(dtypes), attributes, constants or {})
    if given.dtype.kind not in OPERATORS[name].kinds:
        raise OnnxLackingError(f"{label}: of {given.dtype}, which takes arithmetic")
    inputs, dtype, settings = OPERATORS[name].read(given)
    return BitNode(label, name, inputs, node.output[0], dtype, settings)


def _schema(label: str, operator: str, opset: int) -> defs.OpSchema:
    """Return the schema of an operator in ``opset``.

    Raises ``OnnxLackingError`` if it is unsupported.
    """
    if operator not in OPERATORS:
        raise OnnxLackingError(f"{label}: an operator that bitlane does not have")
    versions = OPERATORS[operator].versions
    try:
        schema = defs.get_schema(operator, max_inclusive_version=opset, domain="")
    except defs.SchemaError:
        schema = None
    if schema is None or schema.since_version not in versions:
        as_of = "" if schema is None else f", where it is as of {schema.since_version}"
        known = " or ".join(map(str, versions))
        raise OnnxLackingError(f"{label}: opset {opset}{as_of}; expected it as of opset {known}")
    return schema


def _attributes(label: str, node: NodeProto, schema: defs.OpSchema) -> dict[str, Any]:
    """Return the attributes: integers and strings. Raises ``OnnxError``."""
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        where = f"{label}: attribute {quoted(attribute.name)}"
        if attribute.name not in schema.attributes or attribute.name in values:
            names = ", ".join(schema.attributes) or "none"
            raise OnnxError(f"{where}: unknown, or there already; expected {names}, once")
        kind, value, expected = _KINDS[schema.attributes[attribute.name].type]
        fields = {field.name for field, _ in attribute.ListFields()} - {"doc_string"}
        # Any other field might name a file, and is refused. `ListFields` leaves out empty lists.
        if attribute.type != kind or not {"name", "type"} <= fields <= {"name", "type", value}:
            raise OnnxError(f"{where}: of another type; expected {expected}")
        found = getattr(attribute, value)
        values[attribute.name] = tuple(found) if value == "ints" else found
    for name, declared in schema.attributes.items():
        if name not in values:
            _, value, expected = _KINDS[declared.type]
            if declared.required:
                raise OnnxError(f"{label}: attribute {name!r}: nothing given; expected {expected}")
            default = declared.default_value
            values[name] = getattr(default, value) if default.HasField("type") else None
    return values


def _input_types(
    label: str, node: NodeProto, types: Types, schema: defs.OpSchema
) -> list[np.dtype[Any] | None]:
    """Return the types of the inputs, checked by the schema; None for those that are left out.

    Raises ``OnnxError``, and ``OnnxLackingError`` for types that no device has.
    """
    if not schema.min_input <= len(node.input) <= schema.max_input:
        expected = str(schema.min_input)
        if schema.max_input > schema.min_input:
            expected += f" to {schema.max_input}" if schema.max_input < _MANY else " or more"
        raise OnnxError(f"{label}: {len(node.input)} inputs; expected {expected}")
    found: dict[str, np.dtype[Any]] = {}
    result: list[np.dtype[Any] | None] = []
    for number, name in enumerate(node.input):
        formal = schema.inputs[min(number, len(schema.inputs) - 1)]
        if not name and formal.option == _OPTION.Optional:
            result.append(None)
            continue
        where = f"{label}: input {quoted(name)}"
        if name not in types:
            raise OnnxError(f"{where}: {UNDEFINED}")
        dtype = types[name]
        if isinstance(dtype, str):
            raise OnnxLackingError(f"{where}: {dtype}")
        _expect_allowed(where, dtype, formal, schema)
        if found.setdefault(formal.type_str, dtype) != dtype:
            raise OnnxError(f"{where}: {dtype}; expected {found[formal.type_str]}, as the other")
        result.append(dtype)
    return result


def _expect_allowed(
    where: str,
    dtype: np.dtype[Any],
    formal: defs.OpSchema.FormalParameter,
    schema: defs.OpSchema,
) -> None:
    """Raise ``OnnxError`` for a type that the schema does not allow for an input."""
    allowed = [formal.type_str]
    for each in schema.type_constraints:
        if each.type_param_str == formal.type_str:
            allowed = list(each.allowed_type_strs)
    if schema_name(dtype) not in allowed:
        raise OnnxError(
            f"{where}: {dtype}; expected {', '.join(allowed)} (as of {schema.since_version})"
        )
