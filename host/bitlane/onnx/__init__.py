"""ONNX models of bit operators on a device: the backend that `onnx` defines.

For example::

    import bitlane.onnx, onnx
    with bitlane.onnx.prepare(onnx.load("model.onnx"), "sim") as prepared:
        (y,) = prepared.run([a, b])

Reads and checks models; opens no file but the path of `load`. Needs the package `onnx`.
"""

from ..errors import OnnxError, OnnxLackingError, OnnxMissingError
from ..installation import how_to_install

try:
    from .backend import (
        Backend,
        is_compatible,
        prepare,
        run_model,
        run_node,
        supports_device,
    )
    from .parse import load
    from .prepared import PreparedGraph
except ModuleNotFoundError as error:
    if (error.name or "").startswith("bitlane"):
        raise
    raise OnnxMissingError(
        f"bitlane.onnx needs the Python package {error.name}, which is not installed:"
        f" {how_to_install('onnx')} brings it"
    ) from error

__all__ = [
    "Backend",
    "OnnxError",
    "OnnxLackingError",
    "OnnxMissingError",
    "PreparedGraph",
    "is_compatible",
    "load",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
