"""`bitlane bench`: the circuit measured in clock cycles, and the simulators in seconds."""

from .command import add_bench

__all__ = ["add_bench"]
