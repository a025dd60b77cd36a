"""A circuit as elaboration leaves it, for whoever compiles it: ports and a plain design."""

import hashlib
import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping

from cppsim.netlist.design import PlainDesign

__all__ = ["CLOCK", "Elaborated", "digest_of"]

CLOCK = "clk"
"""Name of the clock's port in every design."""


class Elaborated(ABC):
    """What compilers ask of a circuit. The clock is none of its ports: evaluators drive it."""

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
        """All of it, with the ports by name and the clock's. Whoever asks may change it."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """The same for the same design alone; may be known without it."""


def digest_of(design: PlainDesign) -> str:
    """SHA-256 of a design."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content, protocol=5)
    # What is equal is written equally, whether or not it is one object.
    pickler.fast = True
    pickler.dump(design)
    return hashlib.sha256(content.getbuffer()).hexdigest()
