"""What all instances do, step by step: a `Program` for many, or a testbench for one of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cppsim.model.program import Program

__all__ = ["Advance", "Look", "Repeat", "Script", "SetPort", "Until", "Values"]

Values: TypeAlias = "int | NDArray[np.integer]"
"""One number for all, or an array (instances,), within a repeat (instances, times)."""


@dataclass(frozen=True, slots=True)
class SetPort:
    port: str
    values: Values


@dataclass(frozen=True, slots=True)
class Advance:
    cycles: int


@dataclass(frozen=True, slots=True)
class Until:
    port: str
    limit: int
    name: str


@dataclass(frozen=True, slots=True)
class Look:
    port: str
    name: str


@dataclass(frozen=True, slots=True)
class Repeat:
    times: int
    body: "tuple[Item, ...]"


Item: TypeAlias = SetPort | Advance | Until | Look | Repeat


class Script:
    """Instructions in order; each method adds one, as of `Program`, with the same meaning."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def set(self, port: str, values: Values) -> "Script":
        self.items.append(SetPort(port, values))
        return self

    def step(self, cycles: int = 1) -> "Script":
        self.items.append(Advance(cycles))
        return self

    def until(self, port: str, limit: int, name: str) -> "Script":
        self.items.append(Until(port, limit, name))
        return self

    def get(self, port: str, name: str) -> "Script":
        self.items.append(Look(port, name))
        return self

    @contextmanager
    def repeat(self, times: int) -> Iterator["Script"]:
        """What is added meanwhile is done ``times`` times. Repeats do not lie in one another."""
        before, self.items = self.items, []
        try:
            yield self
        finally:
            body, self.items = tuple(self.items), before
        self.items.append(Repeat(times, body))

    def program(self) -> Program:
        """For a batch."""
        program = Program()
        _add(program, self.items)
        return program


def _add(program: Program, items: Sequence[Item]) -> None:
    for item in items:
        match item:
            case SetPort(port, values):
                program.set(port, values)
            case Advance(cycles):
                program.step(cycles)
            case Until(port, limit, name):
                program.until(port, limit, name)
            case Look(port, name):
                program.get(port, name)
            case Repeat(times, body):
                with program.repeat(times):
                    _add(program, body)
