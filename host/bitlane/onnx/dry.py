"""A dry run of a model: the expressions of each group for inputs of given shapes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray
from ..api import Device
from ..compiler import Expression
from ..driver import DryRunDriver, Geometry
from .build import build_group
from .inference import infer_shapes
from .model import BitGraph, DeviceGroup, Group
from .packing import PACKED_BUILDS, pack_bits, pack_group


@dataclass(frozen=True, slots=True)
class DryGroup:
    """A group, the bytes that it reads and writes, and the expressions of a group of the device."""

    number: int
    group: Group
    read: int | None
    """Bytes of its inputs; None if their shapes are known only when the model runs."""
    written: int | None
    roots: tuple[Expression, ...] | None
    """The outputs of a group of the device. None for other groups, or if shapes are unknown."""


def run_dry(
    graph: BitGraph,
    geometry: Geometry,
    shapes: Mapping[str, tuple[int, ...]],
    on_device: Iterable[str] = (),
) -> Iterator[DryGroup]:
    """Yield the groups of ``graph`` for inputs of ``shapes``.

    The expressions of a group are for a device of ``geometry``, and hold until the next one is
    taken. ``on_device``: the inputs that are on the device already.

    Raises ``ShapeError``, ``LayoutError`` or ``OutOfDeviceMemory`` as a run does.
    """
    with DryRunDriver(geometry) as driver:
        run = _DryRun(graph, Device(driver), shapes)
        run.ours.update(on_device)
        for number, group in enumerate(graph.groups, 1):
            yield run.compute(number, group)


class _DryRun:
    """The shapes and types of values so far."""

    def __init__(
        self, graph: BitGraph, device: Device, shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        self._device = device
        self._shapes = {name: x.shape for name, x in graph.constants.items()} | dict(shapes)
        self._types: dict[str, np.dtype[Any]] = {
            name: x.dtype for name, x in graph.constants.items()
        }
        self._types |= {x.name: x.dtype for x in graph.inputs}
        self.ours: set[str] = set()
        """Values that are on the device before they are read."""
        self._packed = frozenset[str]()

    def compute(self, number: int, group: Group) -> DryGroup:
        """Return ``group``, and note the shapes and types of its outputs."""
        roots, self._packed = None, frozenset()
        if not isinstance(group, DeviceGroup):
            self._shapes |= infer_shapes(group.content, self._shapes)
            self._types |= group.types
        elif self._shapes.keys() >= set(group.inputs):
            truths = {name for name in group.inputs if self._types[name].kind == "b"} - self.ours
            part, self._packed = pack_group(group, self._shapes, truths)
            arrays = {name: self._device.asarray(self._zeros(name)) for name in group.inputs}
            results = build_group(part, self._device, arrays, PACKED_BUILDS)
            self.ours.update(group.outputs)
            self._shapes |= {name: x.shape for name, x in zip(group.outputs, results, strict=True)}
            self._types |= {name: x.dtype for name, x in zip(group.outputs, results, strict=True)}
            roots = tuple([x._value.node for x in results])
        return DryGroup(number, group, self._bytes(group.inputs), self._bytes(group.outputs), roots)

    def _zeros(self, name: str) -> AnyArray:
        """Return an array like the one that is sent."""
        array = np.zeros(self._shapes[name], self._types[name])
        packed = name in self._packed
        return pack_bits(array, self._device.driver.geometry) if packed else array

    def _bytes(self, names: tuple[str, ...]) -> int | None:
        if not all(name in self._shapes and name in self._types for name in names):
            return None
        return sum(self._zeros(name).nbytes for name in names)
