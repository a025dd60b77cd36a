"""Bindings of a model file: which resource a tensor is bound to, and from which byte on."""

from collections.abc import Sequence

from .errors import Fact, ModelFileError
from .model import Binding, Resource
from .node import Node

__all__ = ["read_bindings"]

_UINT64_LAST = 2**64 - 1
_FIELDS = ("name", "elementOffset", "elementCount", "elementStride", "elementSizeInBytes")


def read_bindings(
    node: Node, tensors: Sequence[str], resources: dict[str, Resource], what: str
) -> dict[str, Binding]:
    """A binding for each of ``tensors``, and for nothing else. Raises ``ModelFileError``.

    ``what`` says what the tensors are, for the error.
    """
    members = node.members()
    known = ", ".join(tensors) or "none here"
    for name, member in members.items():
        if name not in tensors:
            raise member.error(f"nothing: only {what} are bound ({known})")
    for name in tensors:
        if name not in members:
            raise ModelFileError(
                node.file, f"{node.path}.{name}", Fact("missing"), f"a resource: {what} are {known}"
            )
    return {name: _binding(members[name], resources) for name in tensors}


def _binding(node: Node, resources: dict[str, Resource]) -> Binding:
    """A name, an object, or a list of one of these: every tensor takes one resource."""
    if isinstance(node.value, list):
        items = node.items()
        if len(items) != 1:
            raise node.error(f"one resource, not {len(items)}")
        node = items[0]
    if isinstance(node.value, str):
        return Binding(_resource(node, resources).name, 0, node.path)
    node.only("a binding", *_FIELDS)
    resource = _resource(node.required("name"), resources)
    stride = _stride(node, resource)
    offset = node.optional("elementOffset")
    count = node.optional("elementCount")
    first = offset.integer(0, _UINT64_LAST) if offset is not None else 0
    if first and not stride:
        raise ModelFileError(
            node.file,
            f"{node.path}.elementStride",
            Fact("missing"),
            f"the bytes of an element: {resource.name} holds values of several types",
        )
    if count is not None:
        # DxDispatch binds the rest of the resource whatever the count; it is checked, not used.
        number = count.integer(0, _UINT64_LAST)
        if (first + number) * stride > resource.size:
            raise count.error(
                f"elements inside the {resource.size} bytes of {resource.name}:"
                f" {first + number} elements of {stride} bytes are {(first + number) * stride}"
            )
    return Binding(resource.name, first * stride, node.path)


def _resource(node: Node, resources: dict[str, Resource]) -> Resource:
    name = node.text()
    if name not in resources:
        raise node.error(f"a resource: {', '.join(resources) or 'there are none'}")
    return resources[name]


def _stride(node: Node, resource: Resource) -> int:
    """Bytes of the elements that an offset counts: as given, or as the resource was initialised."""
    # The guide calls the field elementStride, DxDispatch's parser elementSizeInBytes.
    given = node.optional("elementStride", "elementSizeInBytes")
    size = 0 if given is None else given.integer(0, _UINT64_LAST)
    if size:
        return size
    return resource.data_type.itemsize if resource.data_type else 0
