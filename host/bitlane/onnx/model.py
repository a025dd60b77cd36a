"""A model that has been checked, and cut into groups. Needs no `onnx`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .._typing import AnyArray
from ..arguments.operands import little_endian
from ..arrays import Array
from ..errors import DataTypeError, OnnxError, ShapeError
from ..text import printable

_LONGEST = 60


def quoted(name: str) -> str:
    """Return a name as Python writes it, on one line and cut short: it may hold anything."""
    text = repr(name)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...'"


Dimension: TypeAlias = int | str | None
"""The length of an axis: a number, a name with one length in all shapes, or any length."""

Tensor: TypeAlias = AnyArray | Array
"""Elements on the host or on a device."""


HostValue: TypeAlias = AnyArray | list[Any] | None
"""A value on the host: an array, a sequence of ONNX's, or an optional one that has no value."""


@dataclass(frozen=True, slots=True)
class BitTensor:
    """An input or output as the model declares it. Without ``shape`` it has any."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[Dimension, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return str(self.dtype)
        axes = ", ".join("?" if axis is None else printable(str(axis)[:20]) for axis in self.shape)
        return f"{self.dtype} of shape ({axes}{',' if len(self.shape) == 1 else ''})"

    def expect_shape(self, shape: tuple[int, ...], lengths: dict[str, int]) -> None:
        """Raise ``ShapeError`` for another shape; store the lengths of names in ``lengths``."""
        declared = shape if self.shape is None else self.shape
        fits = len(declared) == len(shape)
        for axis, length in zip(declared, shape, strict=False):
            known = lengths.setdefault(axis, length) if isinstance(axis, str) else axis
            fits = fits and known in (None, length)
        if not fits:
            # An axis too many has no length.
            names = (axis for axis in declared if isinstance(axis, str) and axis in lengths)
            named = {axis: lengths[axis] for axis in names}
            where = "".join(f", {quoted(axis)} being {length}" for axis, length in named.items())
            raise ShapeError(f"{quoted(self.name)}: shape {shape}; expected {self}{where}")


Settings: TypeAlias = Mapping[str, Any]
"""Attributes of a node by name, and its inputs that have to be constants, as NumPy arrays."""


@dataclass(frozen=True, slots=True)
class BitNode:
    """A node that the device computes from ``inputs``."""

    label: str
    """The node in messages: ``node 'name' (Xor)``."""
    operator: str
    inputs: tuple[str, ...]
    output: str
    dtype: np.dtype[Any]
    """The type of the output."""
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Connected nodes that the device computes as one plan, each after those that it reads."""

    nodes: tuple[BitNode, ...]
    inputs: tuple[str, ...]
    """Values from outside, constants among them."""
    outputs: tuple[str, ...]
    """Values that other groups read, or the caller."""


@dataclass(frozen=True, slots=True)
class RestGroup:
    """Nodes that another backend computes, as a model of their own."""

    reasons: tuple[str, ...]
    """The label of each node, and why the device does not compute it."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    content: bytes
    """The model, as ONNX writes it."""
    types: Mapping[str, np.dtype[Any]]
    """The types of those ``outputs`` that are tensors of a device's types."""


Group: TypeAlias = DeviceGroup | RestGroup


@dataclass(frozen=True, slots=True)
class BitGraph:
    """A model that has been checked, in groups in an order in which they can be computed."""

    name: str
    inputs: tuple[BitTensor, ...]
    constants: Mapping[str, AnyArray]
    """ONNX's initializers and constants. One of an input is the default of that input."""
    groups: tuple[Group, ...]
    outputs: tuple[BitTensor, ...]

    def bind(
        self, given: Mapping[str, Tensor] | Sequence[Tensor], lengths: dict[str, int]
    ) -> dict[str, Tensor]:
        """Return the arrays of the inputs by name, checked against the declared types and shapes.

        ``given``: by name, or in the order of the inputs without an initializer. ``lengths``
        receives the lengths of named axes.

        Raises ``OnnxError``, ``DataTypeError`` or ``ShapeError``.
        """
        wanted = [x for x in self.inputs if x.name not in self.constants]
        if not isinstance(given, Mapping):
            if len(given) != len(wanted):
                names = ", ".join(quoted(x.name) for x in wanted)
                raise OnnxError(f"inputs: {len(given)}; expected {len(wanted)}: {names or 'none'}")
            given = {x.name: value for x, value in zip(wanted, given, strict=True)}
        declared = {x.name: x for x in self.inputs}
        for name in given:
            if name not in declared:
                names = ", ".join(map(quoted, declared)) or "none at all"
                raise OnnxError(f"input {quoted(name)}: the model has none; expected {names}")
        for x in wanted:
            if x.name not in given:
                raise OnnxError(f"input {quoted(x.name)}: nothing given; expected {x}")
        for name, value in given.items():
            if little_endian(value.dtype) != little_endian(declared[name].dtype):
                raise DataTypeError(
                    f"input {quoted(name)}: {value.dtype}; expected {declared[name]}"
                )
            declared[name].expect_shape(value.shape, lengths)
        return dict(given)
