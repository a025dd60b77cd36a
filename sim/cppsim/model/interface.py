"""What every evaluator of a circuit offers; knows no simulator, and nothing of bitlane."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cppsim.errors import SimulationError

__all__ = [
    "Batch",
    "Clock",
    "Drive",
    "Evaluator",
    "Get",
    "Item",
    "Prepared",
    "RunUntil",
    "Set",
    "SimulationError",
]


@dataclass(frozen=True, slots=True)
class Set:
    """Drive an input."""

    port: str
    value: int


@dataclass(frozen=True, slots=True)
class Drive:
    """Drive an input with the next of the values that a prepared batch is given."""

    port: str


@dataclass(frozen=True, slots=True)
class Get:
    """Read a port; its value joins the results of the batch."""

    port: str


@dataclass(frozen=True, slots=True)
class Clock:
    """Clock the circuit."""

    cycles: int = 1


@dataclass(frozen=True, slots=True)
class RunUntil:
    """Clock the circuit until an edge at which ``condition`` is high, that edge included."""

    condition: str
    limit: int


Batch = Sequence[Set | Get | Clock | RunUntil]
"""Work that an evaluator does in one call, in order."""

Item = Drive | Set | Get | Clock | RunUntil
"""Of a batch that is prepared."""

Prepared = Callable[[Sequence[int]], list[int]]
"""A batch that is run with new values for its ``Drive``s, in their order; what ``run`` returns."""


class Evaluator(ABC):
    """Runs a circuit with one clock, and serves its storage ports.

    Values are unsigned integers of the port's width. A value that is set is seen by the next clock
    edge and by the next ``get``; ``get`` gives what a probe would show between two edges.
    """

    name: str
    """Which evaluator this is, in a word."""

    widths: Mapping[str, int]
    """Bits of every top-level port, by name."""

    slow: bool = False
    """Whether Python evaluates the circuit, some thousand clock cycles a second."""

    @property
    def description(self) -> str:
        """``name``, and what is not as usual about it, for people."""
        return self.name

    @property
    @abstractmethod
    def cycles(self) -> int:
        """Clock edges since the beginning or the last ``reset``."""

    @abstractmethod
    def set(self, port: str, value: int) -> None:
        """Drive an input. Raises ``KeyError`` for an unknown port, ``ValueError`` for a value
        that is too wide or a port that is no input."""

    @abstractmethod
    def get(self, port: str) -> int:
        """Value of a port now. Raises ``KeyError`` for an unknown port."""

    @abstractmethod
    def step(self, cycles: int = 1) -> None:
        """Clock the circuit ``cycles`` times. Raises ``SimulationError``."""

    @abstractmethod
    def run_until(self, condition: str, limit: int) -> bool:
        """Clock until an edge at which port ``condition`` was not 0, that edge included.

        Returns whether it came within ``limit`` edges. Raises ``SimulationError``.
        """

    @abstractmethod
    def run(self, batch: Batch) -> list[int]:
        """Do all of ``batch``; returns the values of its ``Get``s.

        Raises ``SimulationError`` when a ``RunUntil`` meets its limit, and stops there.
        """

    def prepare(self, batch: Sequence[Item]) -> Prepared:
        """``batch`` for many runs until ``close``, with other values each.

        Ports that are driven have 64 bits at most, and the values fit them.
        """

        def run(values: Sequence[int]) -> list[int]:
            given = iter(values)
            return self.run(
                [Set(x.port, next(given)) if isinstance(x, Drive) else x for x in batch]
            )

        return run

    @abstractmethod
    def reset(self) -> None:
        """Return to the state at power-on: inputs 0, cycles 0. Storage keeps its bytes."""

    @abstractmethod
    def close(self) -> None:
        """Free what the evaluator holds, and finish its waveform file. May be called twice."""
