"""The cost of each part of the demo, from the circuit's counters, and the table of all parts."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitlane._typing import AnyArray
from bitlane.api import Device

ReadRegister = Callable[[str], int]

_COUNTERS = ("BUSY_CYCLES", "A_BEATS", "B_BEATS", "Y_BEATS")


@dataclass(frozen=True)
class Cost:
    """Cost of a part: beats over all ports, cycles with a command at work, and seconds.

    ``bound`` is the fewest cycles that any circuit would need: the beats of the busiest port,
    which takes one a cycle, summed over the laps.
    """

    name: str
    beats: int = 0
    bound: int = 0
    cycles: int = 0
    seconds: float = 0.0

    @property
    def beats_per_cycle(self) -> float:
        """Beats a cycle of the busiest port, at most 1; 0 if nothing ran."""
        return self.bound / self.cycles if self.cycles else 0.0

    def plus(self, other: "Cost") -> "Cost":
        return Cost(
            self.name,
            self.beats + other.beats,
            self.bound + other.bound,
            self.cycles + other.cycles,
            self.seconds + other.seconds,
        )


class Meter:
    """Collects the cost of named parts. ``read`` gives a register's value by its name."""

    def __init__(self, read: ReadRegister) -> None:
        self._read = read
        self._before = self._counters()
        self._part = Cost("")
        self.costs: list[Cost] = []

    def _counters(self) -> list[int]:
        return [self._read(counter) for counter in _COUNTERS]

    def lap(self) -> None:
        """Add the counts since the last lap: after each operation, as the busiest port varies."""
        now = self._counters()
        # The counters wrap; a lap stays far below 2**32 cycles.
        cycles, *beats = (
            (after - before) % 2**32 for after, before in zip(now, self._before, strict=True)
        )
        self._before = now
        self._part = self._part.plus(Cost("", sum(beats), max(beats), cycles))

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure the block; nothing is recorded if it raises."""
        self._before = self._counters()
        self._part = Cost(name)
        start = time.monotonic()
        yield
        self.lap()
        self.costs.append(self._part.plus(Cost("", seconds=time.monotonic() - start)))

    @property
    def total(self) -> Cost:
        total = Cost("all")
        for cost in self.costs:
            total = total.plus(cost)
        return total


class MeteredDevice:
    """The methods of a device that the demo calls, each followed by a lap of ``meter``."""

    def __init__(self, device: Device, meter: Meter) -> None:
        self._device = device
        self._meter = meter

    def bit_xor(self, a: AnyArray, b: AnyArray, /, *, out: AnyArray | None = None) -> AnyArray:
        """``Device.bit_xor``."""
        result = self._device.bit_xor(a, b, out=out)
        self._meter.lap()
        return result

    def search(
        self, queries: AnyArray, database: AnyArray, k: int, /
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """``Device.search``."""
        distances, indices = self._device.search(queries, database, k)
        self._meter.lap()
        return distances, indices


def table(costs: Sequence[Cost], beat_bytes: int) -> list[str]:
    """A line for each cost: bytes over the memory ports, cycles, beats per cycle, seconds."""
    lines = [f"  {'':10}{'bytes moved':>14}{'cycles':>13}{'beats/cycle':>13}{'seconds':>9}"]
    lines += [
        f"  {cost.name:10}{cost.beats * beat_bytes:14,}{cost.cycles:13,}"
        f"{cost.beats_per_cycle:13.3f}{cost.seconds:9.1f}"
        for cost in costs
    ]
    return lines
