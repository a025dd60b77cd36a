"""A model that is ready to run: constants on the device, other models with their backend."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from onnx.backend import base

from ..api import Device
from ..arguments.operands import as_array
from ..arrays import Array, explain
from ..arrays.elementwise import expect_on
from ..closeable import Closeable
from ..compiler import Expression
from ..compiler import explain as explain_nodes
from ..errors import OnnxError, SettingError
from ..text import printable
from .build import build_group
from .dry import run_dry
from .model import BitGraph, DeviceGroup, Group, RestGroup, Tensor, quoted
from .packing import PACKED_BUILDS, find_packable, pack_group
from .picture import draw_groups
from .rest import RestModel, plain
from .values import RunValues, Weights

Inputs: TypeAlias = Mapping[str, ArrayLike] | Sequence[ArrayLike]
"""Inputs by name, or in the order of those without an initializer; also arrays on the device."""


def load_rest(graph: BitGraph, rest: str | None) -> list[RestModel]:
    """Return the models that ``rest`` computes, loaded. Raises ``OnnxError``."""
    groups = [group for group in graph.groups if isinstance(group, RestGroup)]
    if not groups:
        return []
    assert rest is not None, "nothing is cut without one"
    return [RestModel(group, rest) for group in groups]


class PreparedGraph(base.BackendRep, Closeable):
    """A graph whose constants are on ``device``; it may be run any number of times.

    ``models`` are those of the groups that another backend computes, in order. Where a device was
    opened for it, ``close`` and the end of a ``with`` statement close that.
    """

    def __init__(
        self,
        graph: BitGraph,
        device: Device,
        models: Sequence[RestModel] = (),
        *,
        owned: bool = False,
    ) -> None:
        self.graph = graph
        self.device = device
        self._owned = owned
        self._models = {id(model.group): model for model in models}
        self._rest = models[0].rest if models else None
        self._made = {name for group in graph.groups for name in group.outputs}
        own = [group for group in graph.groups if isinstance(group, DeviceGroup)]
        self._packable = {id(group): find_packable(group) for group in own}
        self._weights = Weights(device, graph.constants)
        for group in own:
            for name in group.inputs:
                if name in self._weights and name not in self._packable[id(group)]:
                    self._weights.array(name)

    def arrays(self, inputs: Inputs) -> list[Array]:
        """Return the outputs as arrays on the device, which are computed when they are needed.

        Groups in front of another backend's are computed at once, and its results are sent to the
        device. Raises ``OnnxError``, ``DataTypeError`` or ``ShapeError`` for other inputs than the
        model's; ``OtherDeviceError`` for an array on another device; ``OutOfDeviceMemory`` or
        ``LinkError``.
        """
        values = self.compute(inputs)
        return [
            values.array(x.name) if x.name in self._made else values.array(x.name).copy()
            for x in self.graph.outputs
        ]

    def compute(self, inputs: Inputs) -> RunValues:
        """Return all values of a run. Those of the last groups of the device are pending.

        Raises as `arrays` does.
        """
        lengths: dict[str, int] = {}
        given = self._bind(inputs, lengths)
        values = RunValues(self.device, self._weights, given)
        for group in self.graph.groups:
            self._compute_group(group, values)
        for x in self.graph.outputs:
            x.expect_shape(values.shape(x.name), lengths)
        return values

    def _bind(self, inputs: Inputs, lengths: dict[str, int]) -> dict[str, Tensor]:
        """Return the arrays of the inputs by name.

        Raises as ``BitGraph.bind``, and ``OtherDeviceError``.
        """
        given = self.graph.bind(_as_arrays(inputs), lengths)
        for name, x in given.items():
            if isinstance(x, Array):
                expect_on(self.device, f"input {quoted(name)}", x._value)
        return given

    def _compute_group(self, group: Group, values: RunValues) -> None:
        """Compute ``group``, whose inputs are in ``values``; add its outputs there."""
        if isinstance(group, RestGroup):
            given = {name: values.host(name) for name in group.inputs}
            values.add_host(self._models[id(group)].run(given))
            return
        part, packed = group, frozenset[str]()
        if self._packable[id(group)]:
            shapes = {name: values.shape(name) for name in group.inputs}
            truths = {name for name in group.inputs if values.is_truth_on_host(name)}
            part, packed = pack_group(group, shapes, truths)
        arrays = {
            name: values.packed(name) if name in packed else values.array(name)
            for name in group.inputs
        }
        results = build_group(part, self.device, arrays, PACKED_BUILDS)
        values.add_arrays(dict(zip(group.outputs, results, strict=True)))

    def run(self, inputs: Inputs, **options: object) -> tuple[Any, ...]:
        """Return the outputs as NumPy arrays, in a named tuple.

        All outputs of a group are computed as one job. Takes no options. Raises what `arrays` and
        ``Device`` do.
        """
        expect_no_options(options)
        values = self.compute(inputs)
        names = [x.name for x in self.graph.outputs]
        results: list[Any] = [
            values.host(name) if name in self._made else np.array(plain(values.host(name)))
            for name in names
        ]
        return base.namedtupledict("Outputs", names)(*results)

    def explain(self, inputs: Inputs) -> str:
        """Return the passes of each group, and the reason of each node that is not the device's.

        Without other nodes it is ``bitlane.explain`` of the outputs. Executes nothing. Raises what
        `arrays` does.
        """
        if not self._models:
            return explain(*self.arrays(inputs))
        given = self._bind(inputs, {})
        shapes = {name: tuple(x.shape) for name, x in given.items()}
        driver = self.device.driver
        abilities = driver.geometry.abilities

        def show(roots: Sequence[Expression]) -> str:
            return explain_nodes(abilities, roots, driver.link)

        ours = [name for name, x in given.items() if isinstance(x, Array)]
        groups = run_dry(self.graph, driver.geometry, shapes, ours)
        return draw_groups(groups, self._rest, show)

    def close(self) -> None:
        """Close the device, if it was opened for this graph. May be called again."""
        if self._owned:
            self.device.close()


def expect_several(inputs: Inputs) -> None:
    """Raise ``OnnxError`` if ``inputs`` is a single array, or is not iterable."""
    if isinstance(inputs, Array | np.ndarray):
        raise OnnxError("inputs: one array; expected a list of arrays, or arrays by name")
    if not isinstance(inputs, Iterable):
        given = printable(f"{inputs!r:.40}")
        raise OnnxError(f"inputs: {given}; expected a list of arrays, or arrays by name")


def _as_arrays(inputs: Inputs) -> Mapping[str, Tensor] | Sequence[Tensor]:
    def as_tensor(x: ArrayLike) -> Tensor:
        return x if isinstance(x, Array) else as_array("inputs", x)

    expect_several(inputs)
    if isinstance(inputs, Mapping):
        return {name: as_tensor(x) for name, x in inputs.items()}
    return [as_tensor(x) for x in inputs]


def expect_no_options(options: Mapping[str, object]) -> None:
    """Raise ``SettingError`` for options that are not known."""
    if options:
        raise SettingError(f"options: {', '.join(options)}; expected none")
