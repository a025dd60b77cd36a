"""The backend that ONNX defines: models and nodes in, NumPy arrays out."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from onnx import ModelProto, NodeProto
from onnx.backend import base

from .._typing import AnyArray
from ..api import Device, default_device, open_device
from ..arguments.operands import as_array, as_unsigned, as_zeros_and_ones, little_endian
from ..errors import OnnxError, ShapeError
from ..links import is_known
from .cut import read_graph
from .model import BitGraph, BitTensor, DeviceGroup, quoted
from .nodes import expect_opset, newest_opset, read_node
from .prepared import Inputs, PreparedGraph, expect_no_options, expect_several, load_rest

_DEFAULT: Final = "CPU"
"""The name of the default device in ONNX's tools."""


class Backend(base.Backend):
    """Models of ONNX: operators of `operators.OPERATORS` on a device, others where the user says.

    ``device``: "CPU" for the default one, or what ``bitlane.open`` takes or gives. ``rest``: the
    backend of the nodes that the device lacks, "onnxruntime" or "reference"; None refuses them.
    """

    @classmethod
    def supports_device(cls, device: str | Device) -> bool:
        """Return whether ``device`` is "CPU", a ``Device`` or a known URL; opens no device."""
        return isinstance(device, Device) or device == _DEFAULT or is_known(device)

    @classmethod
    def is_compatible(
        cls,
        model: ModelProto,
        device: str | Device = _DEFAULT,
        *,
        rest: str | None = None,
        **options: object,
    ) -> bool:
        """Return whether `prepare` takes ``model`` on ``device``."""
        try:
            read_graph(model, rest)
        except (OnnxError, ShapeError):
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(
        cls,
        model: ModelProto,
        device: str | Device = _DEFAULT,
        *,
        rest: str | None = None,
        **options: object,
    ) -> PreparedGraph:
        """Check ``model``, load what ``rest`` computes, and send constants to ``device``.

        Takes no other options. Raises ``OnnxError`` or ``SettingError`` before a device is opened,
        ``OnnxMissingError`` without the package of ``rest``, and ``LinkError``.
        """
        expect_no_options(options)
        return _prepare_on(read_graph(model, rest), device, rest)

    @classmethod
    def run_model(
        cls,
        model: ModelProto,
        inputs: Inputs,
        device: str | Device = _DEFAULT,
        *,
        rest: str | None = None,
        **options: object,
    ) -> tuple[Any, ...]:
        """Return the outputs of ``model``. Raises what `prepare` and ``PreparedGraph.run`` do."""
        with cls.prepare(model, device, rest=rest, **options) as prepared:
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
        expect_no_options(options)
        expect_several(inputs)
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
        read = read_node(node, 0, types, opset, given)
        declared = tuple(BitTensor(name, types[name], None) for name in given)
        output = BitTensor(read.output, read.dtype, None)
        group = DeviceGroup((read,), tuple(dict.fromkeys(read.inputs)), (read.output,))
        graph = BitGraph("", declared, {}, (group,), (output,))
        with _prepare_on(graph, device, None) as prepared:
            return prepared.run(given)


def _are_alike(a: AnyArray, b: AnyArray) -> bool:
    """Return whether two arrays are equal in type, shape and bits, in any byte order."""
    if little_endian(a.dtype) != little_endian(b.dtype):
        return False
    view = as_zeros_and_ones if a.dtype.kind == "b" else as_unsigned
    return np.array_equal(view(a), view(b))


def _prepare_on(graph: BitGraph, device: str | Device, rest: str | None) -> PreparedGraph:
    models = load_rest(graph, rest)
    if isinstance(device, Device):
        return PreparedGraph(graph, device, models)
    if device == _DEFAULT:
        return PreparedGraph(graph, default_device(), models)
    opened = open_device(device)
    try:
        return PreparedGraph(graph, opened, models, owned=True)
    except BaseException:
        opened.close()
        raise


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
