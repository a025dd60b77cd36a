"""A model file after it has been read: plain data, names resolved, DirectML's rules checked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..dml import DataType, ExecutionFlags, OperatorDesc


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A number of bytes, which are made when ``data`` is called."""

    size: int
    data: Callable[[], npt.NDArray[np.uint8]]

    @classmethod
    def of(cls, data: npt.NDArray[np.uint8]) -> "Values":
        """Wrap bytes that exist already."""
        return cls(data.size, lambda: data)


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """A buffer and its initial content.

    ``values`` are the initial values, at the buffer's start; ``content`` is its number of bytes
    (``sizeInBytes``, or the initial values), and ``size`` is ``content`` rounded up to a multiple
    of 4. ``data_type`` is UNKNOWN for values of several types. ``array``: the values are a whole
    ``.npy`` file.
    """

    name: str
    data_type: DataType
    values: Values
    content: int
    size: int
    array: bool = False

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The initial values."""
        return self.values.data()

    @property
    def elements(self) -> int:
        """Number of whole elements of the initial values."""
        return self.values.size // self.data_type.itemsize


@dataclass(frozen=True, slots=True)
class Binding:
    """A tensor bound to the bytes of a resource from ``offset`` on; ``path`` in the file."""

    resource: str
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class Dispatchable:
    """An operator. ``bindings`` are those of inputs that are OWNED_BY_DML, by tensor.

    ``graph``: it is compiled as a graph of one node.
    """

    name: str
    desc: OperatorDesc
    flags: ExecutionFlags
    bindings: dict[str, Binding]
    path: str
    tensor_paths: dict[str, str]
    graph: bool = False


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Execute an operator on the resources bound to its tensors."""

    dispatchable: str
    bindings: dict[str, Binding]
    path: str


@dataclass(frozen=True, slots=True)
class Print:
    """Print the initialised part of a resource."""

    resource: str
    verbose: bool


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a resource to a file; ``dimensions`` for arrays and images."""

    resource: str
    target: Path
    dimensions: tuple[int, ...]
    path: str


Command: TypeAlias = Dispatch | Print | WriteFile


@dataclass(frozen=True, slots=True)
class Model:
    """Everything of a model file, in its order."""

    file: str
    resources: dict[str, Resource]
    dispatchables: dict[str, Dispatchable]
    commands: tuple[Command, ...]
