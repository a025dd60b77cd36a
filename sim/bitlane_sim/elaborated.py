"""A circuit as elaboration leaves it, for whoever compiles it: ports and a netlist."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping

__all__ = ["CLOCK", "Elaborated", "digest_of"]

CLOCK = "clk"
"""Name of the clock's port in every netlist."""


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
    def netlist(self) -> str:
        """All of it as RTLIL, the top level called ``top``. May take seconds."""

    @property
    def digest(self) -> str:
        """The same for the same netlist alone; may be known without it."""
        return digest_of(self.netlist)


def digest_of(netlist: str) -> str:
    """SHA-256 of a netlist."""
    return hashlib.sha256(netlist.encode()).hexdigest()
