"""Reads the file of an ONNX model: that file and no other, whatever stands in it."""

from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from .errors import OnnxError

__all__ = ["load"]


def load(path: str | Path) -> ModelProto:
    """The model in the file ``path``, unchecked, and without data that it keeps elsewhere.

    Raises ``OnnxError`` for a file that is none, ``OSError`` for one that cannot be read.
    """
    try:
        model: ModelProto = ModelProto.FromString(Path(path).read_bytes())
    except DecodeError:
        raise OnnxError(f"{path}: not ONNX's format, or cut off; expected an ONNX model") from None
    return model
