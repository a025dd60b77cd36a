"""What a board would have taken for the work of a device that is a model of it."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Predicted:
    """The time of a board, of its circuit and of the line to it. No board has measured it."""

    board: str
    clock_hz: int
    line: str
    """The line for people."""
    cycles: int = 0
    """Cycles in which the circuit was busy."""
    line_seconds: float = 0.0
    """Seconds in which bits were on the line, each direction at its full rate."""

    def __sub__(self, before: Self) -> Self:
        """Return what was taken since ``before``."""
        return replace(
            self,
            cycles=self.cycles - before.cycles,
            line_seconds=self.line_seconds - before.line_seconds,
        )

    @property
    def clock(self) -> str:
        """The clock for people: ``62.5 MHz of ulx3s``."""
        return f"{self.clock_hz / 1e6:g} MHz of {self.board}"

    @property
    def circuit_seconds(self) -> float:
        """Seconds in which the circuit was busy."""
        return self.cycles / self.clock_hz

    @property
    def data(self) -> dict[str, object]:
        """The prediction for JSON."""
        return {
            "board": self.board,
            "clock_hz": self.clock_hz,
            "cycles": self.cycles,
            "circuit_seconds": self.circuit_seconds,
            "line_seconds": self.line_seconds,
        }

    def __str__(self) -> str:
        return (
            f"Predicted, not measured: {duration(self.circuit_seconds)} of circuit"
            f" ({self.cycles:,} cycles at {self.clock}),"
            f" {duration(self.line_seconds)} of {self.line}"
        )


def duration(seconds: float) -> str:
    """Return ``seconds`` with three digits and a unit: ``12.3 ms``, ``24.5 min``, ``1,389 h``."""
    unit, name = next((each for each in _UNITS if seconds >= each[0]), (1e-6, "us"))
    number = f"{seconds / unit:.3g}"
    # From 1,000 on, three digits alone would be written with an exponent.
    return f"{round(seconds / unit):,} {name}" if "e+" in number else f"{number} {name}"


_UNITS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))
