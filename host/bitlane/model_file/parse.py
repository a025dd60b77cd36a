"""Reads a model file of DxDispatch and checks all that can be checked without a device."""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, cast

from ..arguments.operands import MOST_AXES
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
from ..dml.rules import broken_rules
from ..errors import Fact, ModelFileError
from ..files import expected_instead
from .images import IMAGE_SUFFIXES, check_image
from .json_text import parse_json
from .model import Binding, Command, Dispatch, Dispatchable, Model, Print, Resource, WriteFile
from .node import Node
from .problems import Problems, Things
from .resources import read_data_type, read_resource

_FIELDS = ("name", "elementOffset", "elementCount", "elementStride", "elementSizeInBytes")


def read_bindings(
    node: Node, tensors: Sequence[str], resources: Mapping[str, Resource], what: str
) -> dict[str, Binding]:
    """Return a binding for each of ``tensors``. Raises ``ModelFileError``, also for any other.

    ``what`` describes the tensors in the error.
    """
    known = ", ".join(tensors) or "none here"
    problems = Problems()
    for name, member in node.members().items():
        with problems.part():
            if name not in tensors:
                raise member.error(f"nothing: only {what} are bound ({known})")
    expected = f"a resource: {what} are {known}"
    bindings = {}
    for name in tensors:
        with problems.part():
            bindings[name] = _binding(node.required(name, expected), resources)
    problems.expect_none()
    return bindings


def _binding(node: Node, resources: Mapping[str, Resource]) -> Binding:
    """A name, an object, or a list of one of these: every tensor takes one resource."""
    if isinstance(node.value, list):
        items = node.items()
        if len(items) != 1:
            raise node.error(f"one resource, not {len(items)}")
        node = items[0]
    if isinstance(node.value, str):
        return Binding(node.named("a resource", resources).name, 0, node.path)
    node.only("a binding", *_FIELDS)
    resource = node.required("name").named("a resource", resources)
    # The guide calls the field elementStride, DxDispatch's parser elementSizeInBytes.
    stride = node.number("elementStride", "elementSizeInBytes")
    if not stride and resource.data_type:
        stride = resource.data_type.itemsize
    first = node.number("elementOffset")
    if first and not stride:
        missing = node.child("elementStride", Fact("missing"))
        raise missing.error(
            f"the bytes of an element: {resource.name} holds values of several types"
        )
    count = node.optional("elementCount")
    # DxDispatch binds the rest of the resource whatever the count; it is checked, not used.
    last = first + node.number("elementCount")
    if count is not None and last * stride > resource.size:
        raise count.error(
            f"elements inside the {resource.size} bytes of {resource.name}:"
            f" {last} elements of {stride} bytes are {last * stride}"
        )
    return Binding(resource.name, first * stride, node.path)


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
    problems = Problems()
    with problems.part():
        desc, tensor_paths = _read_desc(node, kind, desc_class, level)
    with problems.part():
        flags = node.flags("executionFlags", ExecutionFlags, "DML_EXECUTION_FLAG_")
    with problems.part():
        is_graph = _is_graph(node)
    problems.expect_none()
    bindings = _owned_bindings(node, desc, resources)
    return Dispatchable(name, desc, flags, bindings, node.path, tensor_paths, is_graph)


def _read_desc(
    node: Node, kind: Node, desc_class: type[OperatorDesc], level: FeatureLevel
) -> tuple[OperatorDesc, dict[str, str]]:
    """Return the description of an operator, and the path of each tensor's fields."""
    problems = Problems()
    fields, tensor_names = _desc_fields(node), _tensor_names(desc_class)
    if fields.path != node.path:
        with problems.part():
            node.only("an operator", *_OWN_FIELDS, "desc", "Desc")
        own: tuple[str, ...] = ()
    else:
        own = _OWN_FIELDS
    with problems.part():
        fields.only(kind.text(), *tensor_names, *own)
    tensors, tensor_paths = [], {}
    for tensor_name in tensor_names:
        with problems.part():
            tensor, tensor_paths[tensor_name] = _tensor(fields.required(tensor_name))
            tensors.append(tensor)
    problems.expect_none()
    desc = cast(Any, desc_class)(*tensors)
    for error in broken_rules(desc, level):
        with problems.part():
            raise dml_error(error, node.file, tensor_paths, kind.path) from error
    problems.expect_none()
    return desc, tensor_paths


def dml_error(
    error: DmlError, file: str, tensor_paths: dict[str, str], otherwise: str
) -> ModelFileError:
    """Return an error of DirectML with its path in the file; ``otherwise`` if not of a tensor."""
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
    """Return the node with the fields of the C structure: ``desc``, ``Desc`` or ``node``."""
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
    """Return a tensor, plain or wrapped in ``Type`` and ``Desc``, and the path of its fields."""
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
    # DirectML's rules check the values; here each must be a UINT of C.
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
    """Return the bindings at initialization: exactly of the tensors that DML owns."""
    owned = [name for name, tensor in desc.inputs if tensor.owned]
    given = node.optional("bindings")
    if given is None:
        if not owned:
            return {}
        expected = f"bindings of {', '.join(owned)}, which are OWNED_BY_DML"
        raise node.child("bindings", Fact("missing")).error(expected)
    return read_bindings(given, owned, resources, "inputs that are OWNED_BY_DML")


_COMMANDS = {name.lower(): name for name in ("dispatch", "print", "writeFile")}


def read_command(
    node: Node, resources: dict[str, Resource], dispatchables: dict[str, Dispatchable]
) -> Command:
    """A command whose names all exist. Raises ``ModelFileError``."""
    kind = node.required("type")
    name = _COMMANDS.get(kind.text().lower())
    if name is None:
        raise kind.error(f"one of {', '.join(_COMMANDS.values())}")
    if name == "dispatch":
        return _dispatch(node, resources, dispatchables)
    resource = node.required("resource").named("a resource", resources)
    if name == "print":
        return _print(node, resource)
    return _write_file(node, resource)


def _dispatch(
    node: Node, resources: dict[str, Resource], dispatchables: dict[str, Dispatchable]
) -> Dispatch:
    # threadGroupCount is for shaders; DirectML's operators ignore it.
    node.only("a dispatch", "type", "dispatchable", "bindings", "threadGroupCount")
    dispatchable = node.required("dispatchable").named("a dispatchable", dispatchables)
    desc = dispatchable.desc
    free = [name for name, tensor in (*desc.inputs, *desc.outputs) if not tensor.owned]
    bindings = node.required("bindings")
    bound = read_bindings(bindings, free, resources, f"tensors of {desc.operator_type}")
    return Dispatch(dispatchable.name, bound, bindings.path)


def _print(node: Node, resource: Resource) -> Print:
    node.only("a print", "type", "resource", "verbose")
    verbose = node.optional("verbose")
    _expect_one_type(node, resource)
    return Print(resource.name, verbose is not None and verbose.boolean())


def _write_file(node: Node, resource: Resource) -> WriteFile:
    node.only("a writeFile", "type", "resource", "targetPath", "dimensions")
    target = node.required("targetPath")
    path = Path(target.text())
    given = node.optional("dimensions")
    dimensions = tuple(given.integers(1)) if given is not None else ()
    if given is not None and len(dimensions) > MOST_AXES:
        raise given.error(f"at most {MOST_AXES} dimensions")
    suffix = path.suffix.lower()
    if suffix == ".npy" or suffix in IMAGE_SUFFIXES:
        _expect_one_type(node, resource)
        itemsize = resource.data_type.itemsize
        counts = sorted({resource.elements, resource.content // itemsize})
        dimensions = dimensions or (counts[-1],)
        if given is not None and prod(dimensions) not in counts:
            numbers = " or ".join(map(str, counts))
            raise given.error(f"dimensions of {numbers} elements, which {resource.name} has")
    elif suffix not in (".bin", ".dat"):
        suffixes = ", ".join([".npy", ".bin", ".dat", *sorted(IMAGE_SUFFIXES)])
        raise target.error(f"a name that ends with one of {suffixes}")
    if suffix in IMAGE_SUFFIXES:
        check_image(target, resource.data_type, dimensions, suffix)
    _check_target(target, path)
    return WriteFile(resource.name, path, dimensions, target.path)


def _expect_one_type(node: Node, resource: Resource) -> None:
    if not resource.data_type:
        expected = "a resource of one data type; this one has values of several"
        raise node.required("resource").error(expected)


def _check_target(node: Node, path: Path) -> None:
    """Raise ``ModelFileError`` if the file cannot be created, without creating it."""
    if "\0" in node.text():
        raise node.error("a name without the character NUL")
    wanted = expected_instead(path)
    if wanted is not None:
        raise node.error(wanted)


def load_model(path: str | Path, feature_level: FeatureLevel = FeatureLevel.LEVEL_4_1) -> Model:
    """The model in the file ``path``, with the files that it names read.

    Every operator follows DirectML's rules at ``feature_level``, and every name exists. Raises
    ``ModelFileError``; ``OSError`` if ``path`` itself cannot be read.
    """
    model, problems = read_model(path, feature_level)
    problems.expect_none()
    return model


def read_model(path: str | Path, feature_level: FeatureLevel) -> tuple[Model, Problems]:
    """Return what is sound in the model in the file ``path``, and the errors of the rest.

    Raises ``ModelFileError`` if it is not a model at all, and as `load_model` does.
    """
    path = Path(path)
    file = str(path)
    root = Node(file, "", parse_json(_text(path), file))
    if not isinstance(root.value, dict):
        raise ModelFileError(file, "the file", root.value, "an object")
    problems = Problems()
    with problems.part():
        root.only("a model", "$schema", "resources", "dispatchables", "commands")
    resources, dispatchables = Things[Resource](), Things[Dispatchable]()
    for name, node in root.required("resources").members().items():
        with resources.part(name, problems):
            resources[name] = read_resource(name, node, path.parent)
    for name, node in root.required("dispatchables").members().items():
        with dispatchables.part(name, problems):
            dispatchables[name] = read_dispatchable(name, node, resources, feature_level)
    commands = []
    for node in root.required("commands").items():
        with problems.part():
            commands.append(read_command(node, resources, dispatchables))
    return Model(file, resources, dispatchables, tuple(commands)), problems


def _text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix.lower() == ".onnx":
        expected = "a model file of DxDispatch (bitlane run takes both)"
        raise ModelFileError(str(path), "the file", Fact("an ONNX model"), expected)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelFileError(
            str(path), f"line {line}", Fact(f"the byte {data[error.start]:#04x}"), "text in UTF-8"
        ) from None
