"""An elaborated circuit: ports and a plain design."""

import hashlib
import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping

from .design import PlainDesign

__all__ = ["CLOCK", "Elaborated", "digest_of"]

CLOCK = "clk"
"""Name of the clock's port in every design."""


class Elaborated(ABC):
    """The interface of a circuit to compilers. The clock is not a port: the model drives it."""

    @property
    @abstractmethod
    def input_widths(self) -> Mapping[str, int]:
        """Bits of every input, by name."""

    @property
    @abstractmethod
    def output_widths(self) -> Mapping[str, int]:
        """Bits of every output, by name."""

    @property
    def widths(self) -> dict[str, int]:
        """Bits of every input and output."""
        return {**self.input_widths, **self.output_widths}

    @property
    @abstractmethod
    def design(self) -> PlainDesign:
        """The design, with the clock and the ports by name. The caller may change it."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """A digest of the design, which may exist without the design itself."""


def digest_of(design: PlainDesign) -> str:
    """SHA-256 of a design."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content, protocol=5)
    # What is equal is written equally, whether or not it is one object.
    pickler.fast = True
    pickler.dump(design)
    return hashlib.sha256(content.getbuffer()).hexdigest()
