"""The errors of ONNX models, and how they show names that others chose."""

from ..errors import BitlaneError

__all__ = ["OnnxError", "OnnxMissingError", "quoted"]

_LONGEST = 60


class OnnxError(BitlaneError, ValueError):
    """A model that cannot be run, or inputs that are not its own. Nothing has been executed."""


class OnnxMissingError(BitlaneError, ImportError):
    """The package `onnx` is not installed."""


# Tracebacks show the name that users write.
OnnxError.__module__ = OnnxMissingError.__module__ = "bitlane.onnx"


def quoted(name: str) -> str:
    """A name as Python writes it, on one line and cut short: it may hold anything."""
    text = repr(name)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...'"
