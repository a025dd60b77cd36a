"""Check a model by ONNX's own rules, and infer the types and shapes of its values."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto, checker, shape_inference

from ..errors import OnnxError
from .model import BitTensor, quoted
from .types import read_declaration


def check_model(model: ModelProto) -> None:
    """Raise ``OnnxError`` if ONNX's checker refuses ``model``."""
    try:
        checker.check_model(model)
    except (checker.ValidationError, UnicodeDecodeError) as error:
        raise OnnxError(f"model: onnx.checker: {one_line(error)}") from None


def one_line(error: BaseException) -> str:
    """Return the words of another package's error, which span lines and hold names as they are."""
    words = repr(" ".join(str(error).split()))[1:-1]
    return f"{words:.200}"


class Inference:
    """The declarations of the values of ``model``, inferred when one is first asked for."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model

        self.error: OnnxError | None = None
        """Why ONNX infers nothing, if that has been tried."""

    @cached_property
    def _infos(self) -> Mapping[str, ValueInfoProto]:
        try:
            check_model(self._model)
            graph = shape_inference.infer_shapes(self._model, check_type=True).graph
        except OnnxError as error:
            self.error = error
            return {}
        except (shape_inference.InferenceError, ValueError, RuntimeError) as error:
            self.error = OnnxError(f"model: onnx.shape_inference: {one_line(error)}")
            return {}
        return {info.name: info for info in (*graph.value_info, *graph.input, *graph.output)}

    def info(self, name: str) -> ValueInfoProto:
        """Return the declaration of a value. Raises ``OnnxError`` if ONNX infers no type."""
        info = self._infos.get(name)
        if info is None or info.type.WhichOneof("value") is None:
            raise OnnxError(
                f"value {quoted(name)}: ONNX infers no type, and it lies between two groups;"
                " expected a value_info with its type in the model"
            )
        return info

    def declaration(self, name: str) -> BitTensor | None:
        """Return the type and shape of a tensor; None if it has none that a device has."""
        if name not in self._infos:
            return None
        try:
            return read_declaration("value", self._infos[name])
        except OnnxError:
            return None

    def type_of(self, name: str) -> np.dtype[Any] | str:
        """Return the type of a tensor, or why it has none that a device has."""
        if name not in self._infos:
            return "ONNX infers no type"
        try:
            return read_declaration("value", self._infos[name]).dtype
        except OnnxError as error:
            return str(error)


def infer_shapes(
    content: bytes, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of those outputs of a model that follow from ``shapes`` of its inputs.

    ``content``: the model, as ONNX writes it.
    """
    model = ModelProto.FromString(content)
    for info in model.graph.input:
        if info.name in shapes:
            tensor = info.type.tensor_type
            tensor.ClearField("shape")
            tensor.shape.SetInParent()
            for length in shapes[info.name]:
                tensor.shape.dim.add(dim_value=length)
    for info in model.graph.output:
        if info.type.HasField("tensor_type"):
            # As inferred before, from less.
            info.type.tensor_type.ClearField("shape")
    try:
        graph = shape_inference.infer_shapes(model, data_prop=True).graph
    except (shape_inference.InferenceError, ValueError, RuntimeError):
        return {}
    found = {}
    for info in graph.output:
        tensor = info.type.tensor_type
        axes = tensor.shape.dim
        if tensor.HasField("shape") and all(axis.HasField("dim_value") for axis in axes):
            found[info.name] = tuple([int(axis.dim_value) for axis in axes])
    return found
