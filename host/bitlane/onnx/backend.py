"""The backend that ONNX defines: models and nodes in, NumPy arrays out."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from onnx import ModelProto, NodeProto
from onnx.backend import base

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..api.default import default_device
from ..api.device import Device, open_device
from ..arguments.operands import as_array, as_unsigned, as_zeros_and_ones, little_endian
from ..arrays import Array, compute, explain
from ..arrays.elementwise import apply_typed
from ..arrays.truth import equal_typed
from ..arrays.value import Value
from ..closeable import Closeable
from ..compiler.nodes import Expression, truth_of
from ..errors import LayoutError, OnnxError, SettingError, ShapeError
from ..links.link import is_known
from .model import BitGraph, BitNode, BitTensor, Tensor, quoted
from .nodes import expect_opset, newest_opset, read_node
from .parse import read_graph


def build_outputs(graph: BitGraph, device: Device, tensors: Mapping[str, Array]) -> list[Array]:
    """Return the outputs of ``graph`` for ``tensors``, its inputs and constants. Executes nothing.

    Raises ``ShapeError`` where shapes do not broadcast, ``LayoutError`` as arrays do.
    """
    sources = [x._value for x in tensors.values()]
    nodes = {name: value.node for name, value in zip(tensors, sources, strict=True)}
    types = {name: x.dtype for name, x in tensors.items()}
    for each in graph.nodes:
        operands = [nodes[name] for name in each.inputs]
        try:
            # Nodes, not arrays: a chain of arrays takes memory and time of its length's square,
            # and a view of an array computes it.
            nodes[each.output] = _apply(each, types[each.inputs[0]], operands)
        except (ShapeError, LayoutError) as error:
            raise type(error)(f"{each.label}: {error}") from None
        types[each.output] = each.dtype
    results, taken = [], {value.node for value in sources}
    for x in graph.outputs:
        node = nodes[x.name]
        if node in taken:
            # Writing to one array must not change another.
            node = apply_typed(Op.COPY, x.dtype, node)
        taken.add(node)
        results.append(Array(Value(device, x.dtype, node, sources)))
    return results


def _apply(node: BitNode, dtype: np.dtype[Any], operands: Sequence[Expression]) -> Expression:
    """Return ``node`` of ``operands``, whose elements are of ``dtype``."""
    if node.op is None:
        return truth_of(operands[0]) if node.dtype.kind == "b" != dtype.kind else operands[0]
    if node.op is Op.COUNT_XOR:
        return equal_typed(dtype, *operands)
    return apply_typed(node.op, dtype, *operands)


Inputs: TypeAlias = Mapping[str, ArrayLike] | Sequence[ArrayLike]
"""Inputs by name, or in the order of those without an initializer; also arrays on the device."""

_DEFAULT: Final = "CPU"
"""The name of the default device in ONNX's tools."""


class PreparedGraph(base.BackendRep, Closeable):
    """A graph whose constants are on ``device``; it may be run any number of times.

    Where a device was opened for it, ``close`` and the end of a ``with`` statement close that.
    """

    def __init__(self, graph: BitGraph, device: Device, *, owned: bool = False) -> None:
        self.graph = graph
        self.device = device
        self._owned = owned
        self._constants = {name: device.asarray(x) for name, x in graph.constants.items()}

    def arrays(self, inputs: Inputs) -> list[Array]:
        """Return the outputs as arrays on the device, which are computed when they are needed.

        Raises ``OnnxError``, ``DataTypeError`` or ``ShapeError`` for other inputs than the model's;
        ``OutOfDeviceMemory`` or ``LinkError``.
        """
        lengths: dict[str, int] = {}
        given = self.graph.bind(_as_arrays(inputs), lengths)
        sent = {name: self.device.asarray(x) for name, x in given.items()}
        results = build_outputs(self.graph, self.device, self._constants | sent)
        for x, result in zip(self.graph.outputs, results, strict=True):
            x.expect_shape(result.shape, lengths)
        return results

    def run(self, inputs: Inputs, **options: object) -> tuple[Any, ...]:
        """Return the outputs as NumPy arrays, in a named tuple.

        All are computed as one job. Takes no options. Raises what `arrays` and ``Device`` do.
        """
        _expect_none(options)
        results = self.arrays(inputs)
        compute(*results)
        names = [x.name for x in self.graph.outputs]
        return base.namedtupledict("Outputs", names)(*(x.get() for x in results))

    def explain(self, inputs: Inputs) -> str:
        """Return ``bitlane.explain`` of the outputs. Raises what `arrays` does."""
        return explain(*self.arrays(inputs))

    def close(self) -> None:
        """Close the device, if it was opened for this graph. May be called again."""
        if self._owned:
            self.device.close()


class Backend(base.Backend):
    """The operators And, Or, Xor, Not, Equal, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot,
    BitShift and BitCast, and graphs of them, on a device.

    ``device``: "CPU" for the default one, or what ``bitlane.open`` takes or gives.
    """

    @classmethod
    def supports_device(cls, device: str | Device) -> bool:
        """Return whether ``device`` is "CPU", a ``Device`` or a known URL; opens no device."""
        return isinstance(device, Device) or device == _DEFAULT or is_known(device)

    @classmethod
    def is_compatible(
        cls, model: ModelProto, device: str | Device = _DEFAULT, **options: object
    ) -> bool:
        """Return whether `prepare` takes ``model`` on ``device``."""
        try:
            read_graph(model)
        except (OnnxError, ShapeError):
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(
        cls, model: ModelProto, device: str | Device = _DEFAULT, **options: object
    ) -> PreparedGraph:
        """Check ``model`` and send its constants to ``device``.

        Takes no options. Raises ``OnnxError`` before a device is opened, and ``LinkError``.
        """
        _expect_none(options)
        return _prepare_on(read_graph(model), device)

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Inputs, device: str | Device = _DEFAULT, **options: object
    ) -> tuple[Any, ...]:
        """Return the outputs of ``model``. Raises what `prepare` and ``PreparedGraph.run`` do."""
        with cls.prepare(model, device, **options) as prepared:
            return prepared.run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Inputs,
        device: str | Device = _DEFAULT,
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **options: object,
    ) -> tuple[Any, ...]:
        """Return the output of one node for ``inputs``, in order; ``outputs_info`` is not needed.

        The one option is ``opset_version``, the newest without it. Raises as `run_model` does.
        """
        opset = expect_opset("opset_version", options.pop("opset_version", newest_opset()))
        _expect_none(options)
        arrays = [as_array("inputs", x) for x in inputs]
        if len(arrays) != len(node.input):
            raise OnnxError(f"inputs: {len(arrays)}; expected {len(node.input)}")
        given: dict[str, AnyArray] = {}
        for name, x in zip(node.input, arrays, strict=True):
            if not _are_alike(given.setdefault(name, x), x):
                raise OnnxError(
                    f"input {quoted(name)}: two arrays that differ; expected one, or the same twice"
                )
        types = {name: x.dtype.newbyteorder("=") for name, x in given.items()}
        read = read_node(node, 0, types, opset)
        declared = tuple(BitTensor(name, types[name], None) for name in given)
        output = BitTensor(read.output, read.dtype, None)
        with _prepare_on(BitGraph("", declared, {}, (read,), (output,)), device) as prepared:
            return prepared.run(given)


def _are_alike(a: AnyArray, b: AnyArray) -> bool:
    """Return whether two arrays are equal in type, shape and bits, in any byte order."""
    if little_endian(a.dtype) != little_endian(b.dtype):
        return False
    view = as_zeros_and_ones if a.dtype.kind == "b" else as_unsigned
    return np.array_equal(view(a), view(b))


def _as_arrays(inputs: Inputs) -> Mapping[str, Tensor] | Sequence[Tensor]:
    if isinstance(inputs, Array | np.ndarray):
        raise OnnxError("inputs: one array; expected a list of arrays, or arrays by name")

    def as_tensor(x: ArrayLike) -> Tensor:
        return x if isinstance(x, Array) else as_array("inputs", x)

    if isinstance(inputs, Mapping):
        return {name: as_tensor(x) for name, x in inputs.items()}
    return [as_tensor(x) for x in inputs]


def _prepare_on(graph: BitGraph, device: str | Device) -> PreparedGraph:
    if isinstance(device, Device):
        return PreparedGraph(graph, device)
    if device == _DEFAULT:
        return PreparedGraph(graph, default_device())
    opened = open_device(device)
    try:
        return PreparedGraph(graph, opened, owned=True)
    except BaseException:
        opened.close()
        raise


def _expect_none(options: Mapping[str, Any]) -> None:
    if options:
        raise SettingError(f"options: {', '.join(options)}; expected none")


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
