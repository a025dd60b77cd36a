"""A model of ONNX as it was read: its nodes, and the reason for each that the device lacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from onnx import ModelProto, NodeProto, TensorProto

from .._typing import AnyArray
from ..errors import OnnxError, OnnxLackingError
from .inference import Inference
from .model import BitNode, BitTensor

_SHOWN: Final = 3
"""Nodes that a refusal names beside the first."""


@dataclass(frozen=True, slots=True)
class WholeNode:
    """A node, and how the device computes it if it does."""

    label: str
    proto: NodeProto
    inputs: tuple[str, ...]
    """The values that it reads, those that its subgraphs read from outside among them."""
    outputs: tuple[str, ...]
    """Without those that are left out."""
    device: BitNode | None
    reason: str = ""
    """Why the device does not compute it: a message that begins with the label."""


@dataclass(frozen=True, slots=True)
class WholeModel:
    """A model without functions, whose nodes are in order."""

    name: str
    inputs: tuple[BitTensor, ...]
    defaults: Mapping[str, AnyArray]
    """Initializers of inputs, which a caller may replace."""
    constants: Mapping[str, AnyArray]
    """The other initializers, and Constant nodes, as far as they are of a device's types."""
    tensors: Mapping[str, TensorProto]
    """All of the other initializers and Constant nodes."""
    nodes: tuple[WholeNode, ...]
    outputs: tuple[BitTensor, ...]
    inference: Inference
    proto: ModelProto
    error: OnnxError | None
    """Why ONNX's own checker refuses the model, if it does."""

    @property
    def lacking(self) -> Sequence[WholeNode]:
        """The nodes that the device does not compute."""
        return [node for node in self.nodes if node.device is None]

    def expect_valid(self) -> None:
        """Raise ``OnnxError`` if ONNX's own checker refuses the model."""
        if self.error is not None:
            raise self.error

    def expect_whole(self) -> None:
        """Raise ``OnnxLackingError`` if the device does not compute each node."""
        lacking = self.lacking
        if not lacking:
            return
        first, *others = lacking
        more = ", ".join(node.label for node in others[:_SHOWN])
        if len(others) > _SHOWN:
            more += f" and {len(others) - _SHOWN} more"
        also = f"; nor does the device have {more}" if others else ""
        raise OnnxLackingError(f"{first.reason}{also}; {OTHERWISE}")


OTHERWISE: Final = "rest='onnxruntime' or 'reference' (--rest) computes such nodes off the device"
"""The end of each refusal of nodes that another backend may compute."""
