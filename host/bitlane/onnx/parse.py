"""Reads ONNX models into graphs of bit operators; other operators are refused by name."""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    ValueInfoProto,
    checker,
    defs,
    numpy_helper,
)

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..errors import OnnxError
from .model import BitGraph, BitNode, BitTensor, Dimension, quoted


def load(path: str | Path) -> ModelProto:
    """Read the model in the file ``path``, unchecked, and without data in other files.

    Raises ``OnnxError`` for a file of another format, ``OSError`` if it cannot be read.
    """
    try:
        model: ModelProto = ModelProto.FromString(Path(path).read_bytes())
    except DecodeError:
        raise OnnxError(f"{path}: not ONNX's format, or cut off; expected an ONNX model") from None
    return model


_INTEGERS: Final = tuple(f"{sign}INT{bits}" for sign in ("U", "") for bits in (8, 16, 32, 64))

_TYPES: Final = {
    "BOOL": np.dtype(np.bool_),
    **{name: np.dtype(name.lower()) for name in _INTEGERS},
    "FLOAT16": np.dtype(np.float16),
    "FLOAT": np.dtype(np.float32),
    "DOUBLE": np.dtype(np.float64),
}
"""The types of a device's tensors, by ONNX's names."""

_NAMES: Final = {dtype: f"tensor({name.lower()})" for name, dtype in _TYPES.items()}


def read_type(where: str, code: int) -> np.dtype[Any]:
    """Return the type of ONNX's number ``code``. Raises ``OnnxError`` for other types."""
    known = code in TensorProto.DataType.values()
    name = TensorProto.DataType.Name(code) if known else str(code)
    if name not in _TYPES:
        raise OnnxError(f"{where}: data type {name}; expected one of {', '.join(_TYPES)}")
    return _TYPES[name]


def schema_name(dtype: np.dtype[Any]) -> str:
    """Return the name of tensors of ``dtype`` in ONNX's schemas."""
    return _NAMES[dtype]


def read_declaration(what: str, info: ValueInfoProto) -> BitTensor:
    """Read an input or output of a graph; ``what`` names it. Raises ``OnnxError``."""
    where = f"{what} {quoted(info.name)}"
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        raise OnnxError(f"{where}: {kind or 'no type'}; expected a tensor")
    tensor = info.type.tensor_type
    dtype = read_type(where, tensor.elem_type)
    if not tensor.HasField("shape"):
        return BitTensor(info.name, dtype, None)
    shape = tuple(_dimension(where, axis) for axis in tensor.shape.dim)
    return BitTensor(info.name, dtype, shape)


def _dimension(where: str, axis: TensorShapeProto.Dimension) -> Dimension:
    if axis.HasField("dim_value"):
        if axis.dim_value < 0:
            raise OnnxError(f"{where}: an axis of {axis.dim_value}; expected 0 or more")
        return int(axis.dim_value)
    return str(axis.dim_param) or None


def read_initializer(tensor: TensorProto) -> AnyArray:
    """Read an initializer. Raises ``OnnxError``, also for data outside the model."""
    where = f"initializer {quoted(tensor.name)}"
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise OnnxError(
            f"{where}: its data lies in another file; expected it in the model (onnx.load"
            " and onnx.save bring it there)"
        )
    dtype = read_type(where, tensor.data_type)
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise OnnxError(f"{where}: shape {shape}; expected 0 or more")
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        raise OnnxError(f"{where}: {error}; expected the bytes of {shape} {dtype}") from None
    if array.shape != shape or array.dtype != dtype:
        raise OnnxError(f"{where}: {array.dtype} of {array.shape}; expected {dtype} of {shape}")
    return array


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
        dtype = _TYPES["BOOL"]
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


def read_graph(model: ModelProto) -> BitGraph:
    """Read the graph of ``model``, checked down to the type of every name.

    Raises ``OnnxError`` for anything but a model, and for unsupported operators. Opens no file.
    """
    if not isinstance(model, ModelProto):
        kind = type(model).__name__
        raise OnnxError(
            f"model: of type {kind}; expected a ModelProto (bitlane.onnx.load reads one)"
        )
    for name in ("functions", "training_info"):
        if getattr(model, name):
            raise OnnxError(f"model: {name}; expected a graph alone")
    opset = _opset(model)
    graph = _graph(model.graph, opset)
    # Last, after the refusal of all references to other files.
    try:
        checker.check_model(model)
    except (checker.ValidationError, UnicodeDecodeError) as error:
        # Its words span lines, and hold names as they are.
        words = repr(" ".join(str(error).split()))[1:-1]
        raise OnnxError(f"model: onnx.checker: {words:.200}") from None
    return graph


def _opset(model: ModelProto) -> int:
    """Return the version of ONNX's own operators."""
    versions = [each.version for each in model.opset_import if each.domain in OWN_DOMAINS]
    if len(versions) != 1:
        raise OnnxError(f"model: {len(versions)} opsets of ONNX's own operators; expected one")
    return expect_opset("model", versions[0])


def _graph(graph: GraphProto, opset: int) -> BitGraph:
    if graph.sparse_initializer:
        raise OnnxError("graph: sparse initializers; expected dense ones")
    constants: dict[str, AnyArray] = {}
    types: dict[str, np.dtype[Any]] = {}
    for tensor in graph.initializer:
        _expect_new(tensor.name, "initializer", types)
        constants[tensor.name] = read_initializer(tensor)
        types[tensor.name] = constants[tensor.name].dtype
    inputs = tuple(_input(info, constants) for info in graph.input)
    for x in inputs:
        if x.name not in constants:
            _expect_new(x.name, "input", types)
            types[x.name] = x.dtype
    nodes = []
    for number, each in enumerate(graph.node):
        node = read_node(each, number, types, opset)
        _expect_new(node.output, f"{node.label}: output", types)
        types[node.output] = node.dtype
        nodes.append(node)
    outputs = [read_declaration("output", info) for info in graph.output]
    if not outputs:
        raise OnnxError("graph: no outputs; expected one at least")
    given = set()
    for x in outputs:
        if x.name in given:
            raise OnnxError(f"output {quoted(x.name)}: there twice; expected it once")
        given.add(x.name)
        if x.name not in types:
            raise OnnxError(f"output {quoted(x.name)}: nothing in the graph gives it")
        if types[x.name] != x.dtype:
            raise OnnxError(f"output {quoted(x.name)}: it is {types[x.name]}; declared as {x}")
    return BitGraph(graph.name, inputs, constants, tuple(nodes), tuple(outputs))


def _input(info: ValueInfoProto, constants: Mapping[str, AnyArray]) -> BitTensor:
    """Read an input, and check its initializer if it has one."""
    result = read_declaration("input", info)
    default = constants.get(result.name)
    if default is not None:
        if default.dtype != result.dtype:
            name = quoted(result.name)
            raise OnnxError(f"initializer {name}: {default.dtype}; declared as {result}")
        result.expect_shape(default.shape, {})
    return result


def _expect_new(name: str, what: str, names: Container[str]) -> None:
    if not name or name in names:
        raise OnnxError(f"{what} {quoted(name)}: expected a name that nothing else has")
