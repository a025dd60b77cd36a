"""The attributes and inputs of a node, for the function that reads its operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from .._typing import AnyArray
from ..errors import OnnxLackingError
from .model import Settings, quoted

_NONE: Final[Settings] = MappingProxyType({})


class Reading(NamedTuple):
    """The operands of a node, the type of its output, and other inputs of its expression."""

    inputs: tuple[str, ...]
    dtype: np.dtype[Any]
    settings: Settings = _NONE


@dataclass(frozen=True, slots=True)
class Given:
    """A node whose attributes and types fit its schema."""

    label: str
    inputs: tuple[str, ...]
    """An optional input that is left out is an empty name."""
    types: tuple[np.dtype[Any] | None, ...]
    """The type of each input, None for one that is left out."""
    attributes: Mapping[str, Any]
    constants: Mapping[str, AnyArray] = field(default_factory=dict)
    """The values that are the same in each run."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the first input, which no operator of a device leaves out."""
        first = self.types[0]
        assert first is not None
        return first

    def has(self, number: int) -> bool:
        """Return whether input ``number`` is not left out."""
        return number < len(self.inputs) and bool(self.inputs[number])

    def constant(self, number: int, name: str) -> AnyArray:
        """Return the value of input ``number``, which the schema calls ``name``.

        Raises ``OnnxLackingError`` if the model computes the value, or reads it as an input.
        """
        given = self.inputs[number]
        if given not in self.constants:
            raise OnnxLackingError(
                f"{self.label}: {name}, {quoted(given)}, is computed, or an input of the model;"
                " expected an initializer or a Constant, as the plan depends on it"
            )
        return self.constants[given]

    def integers(self, number: int, name: str) -> tuple[int, ...]:
        """Return the integers of input ``number``, of one axis. Raises ``OnnxLackingError``."""
        array = self.constant(number, name)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise OnnxLackingError(
                f"{self.label}: {name} of {array.dtype} and shape {array.shape}; expected integers"
                " along one axis"
            )
        return tuple(map(int, array))
