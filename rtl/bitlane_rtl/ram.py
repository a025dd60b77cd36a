"""RAMs with a write port, an asynchronous read port and an output register behind it."""

from typing import Any

from amaranth.hdl import Signal
from amaranth.lib.memory import Memory

__all__ = ["Ram"]


class Ram:
    """A RAM that synthesis can map to block RAM or to LUT RAM.

    The owner adds ``memory`` as a submodule, drives the ports, and adds ``load()`` to the ``sync``
    domain, in the cycles in which ``output`` shall take the word at the read address. The owner
    ensures that no word is used which was read in the cycle of a write to its address.

    Parameters
    ----------
    width, depth
        Bits of a word, and words. All words are 0 at power-up.
    granularity
        Bits that each bit of ``write.en`` enables; None for the whole word.
    style
        Value of the attribute ``ram_style``: ``block`` or ``distributed``. With None synthesis
        chooses.
    output
        Name of the output register.
    """

    def __init__(
        self,
        width: int,
        depth: int,
        *,
        granularity: int | None = None,
        style: str | None = None,
        output: str = "ram_output",
    ) -> None:
        # Without `no_rw_check` Yosys adds logic for reads and writes that collide. It honours the
        # attribute only where it merges an asynchronous read port and a register itself; a
        # synchronous read port costs 42 LUT4 and 80 flip-flops more (36 bits, depth 64, ECP5).
        attributes = {"no_rw_check": "1"}
        if style is not None:
            attributes["ram_style"] = style
        self.memory: Any = Memory(shape=width, depth=depth, init=[], attrs=attributes)
        self.write = self.memory.write_port(granularity=granularity)
        self.read = self.memory.read_port(domain="comb")
        """The asynchronous read port, for an owner that needs its data in the same cycle."""
        self.output = Signal(width, name=output, reset_less=True)

    def load(self) -> Any:
        """Return the statement that loads ``output`` from the read port."""
        return self.output.eq(self.read.data)
