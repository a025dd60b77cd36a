"""The error of model files: where it is, what stands there, and what would be right."""

import json
from enum import Enum

from ..errors import BitlaneError

__all__ = ["Fact", "ModelFileError"]

_LONGEST = 60


class Fact(str):
    """A value of ``ModelFileError`` that describes what is there: shown without quotes."""

    __slots__ = ()


class ModelFileError(BitlaneError, ValueError):
    """A model file that cannot be read or run. Nothing has been executed.

    ``file`` as it was named; ``path`` the place in it, as ``commands[3].bindings.ATensor`` (or
    ``line 7, column 12`` of text that is no JSON); ``value`` what stands there, or a property that
    follows from it; ``expected`` what would be right.
    """

    def __init__(self, file: str, path: str, value: object, expected: str) -> None:
        super().__init__(f"{file}: {path} is {_shown(value)}; expected {expected}")
        self.file = file
        self.path = path
        self.value = value
        self.expected = expected


# Tracebacks show the name that users write.
ModelFileError.__module__ = "bitlane.model_file"


def _shown(value: object) -> str:
    """A value as JSON writes it, cut short."""
    if isinstance(value, Enum | Fact):
        return str(value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
