"""The commands of a model file."""

from math import prod
from pathlib import Path

from ..files import expected_instead
from .bindings import read_bindings
from .images import IMAGE_SUFFIXES, check_image
from .model import Command, Dispatch, Dispatchable, Print, Resource, WriteFile
from .node import Node

__all__ = ["read_command"]

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
    """That the file can be created, as far as can be told without doing it."""
    if "\0" in node.text():
        raise node.error("a name without the character NUL")
    wanted = expected_instead(path)
    if wanted is not None:
        raise node.error(wanted)
