"""Bindings of a model file: which resource a tensor is bound to, and from which byte on."""

from collections.abc import Mapping, Sequence

from .errors import Fact
from .model import Binding, Resource
from .node import Node

__all__ = ["read_bindings"]

_FIELDS = ("name", "elementOffset", "elementCount", "elementStride", "elementSizeInBytes")


def read_bindings(
    node: Node, tensors: Sequence[str], resources: Mapping[str, Resource], what: str
) -> dict[str, Binding]:
    """A binding for each of ``tensors``, and for nothing else. Raises ``ModelFileError``.

    ``what`` says what the tensors are, for the error.
    """
    known = ", ".join(tensors) or "none here"
    for name, member in node.members().items():
        if name not in tensors:
            raise member.error(f"nothing: only {what} are bound ({known})")
    expected = f"a resource: {what} are {known}"
    return {name: _binding(node.required(name, expected), resources) for name in tensors}


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
