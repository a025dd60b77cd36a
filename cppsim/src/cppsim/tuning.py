"""Thresholds of a running simulation, which change its speed alone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """The points at which a program of `probe` takes less time, as measured.

    Attributes
    ----------
    evaluations : int
        Evaluations of one expression by Amaranth after which a program is faster, including its
        construction.
    settlings : int
        Settlings of a design for one value after which a program for that value is faster.
    steps_per_instruction : int
        Steps of a design that are settled while a program executes one instruction.
    steps_per_call : int
        Steps of a design that are settled while a short program is called.
    free_instructions : int
        Instructions that take no longer than calling anything does.
    """

    evaluations: int = 64
    settlings: int = 4096
    steps_per_instruction: int = 16
    steps_per_call: int = 2000
    free_instructions: int = 32
