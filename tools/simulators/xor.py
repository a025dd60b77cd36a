"""A XOR on a simulator, for measuring its speed."""

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np

from bitlane_rtl.abi import Op
from bitlane_sim.bench.job import Traffic, execute
from bitlane_sim.campaigns.commands import move
from bitlane_sim.device.simulator import Simulator


@dataclass(frozen=True, slots=True)
class XorRun:
    """The cost of one XOR: traffic, cycles from power-on, and seconds."""

    traffic: Traffic
    cycles: int
    seconds: float

    @property
    def rate(self) -> float:
        """Cycles a second."""
        return self.cycles / self.seconds


class Xor:
    """A XOR of ``size`` random bytes on a simulator, for measuring its speed."""

    def __init__(self, simulator: Simulator, size: int) -> None:
        self.simulator = simulator
        self._size = size
        simulator.memory[: 2 * size] = np.random.default_rng(0).integers(0, 256, 2 * size, np.uint8)

    def run(self, stall: float = 0.0, clock: Callable[[], float] = process_time) -> XorRun:
        """Execute it from power-on; ``clock`` returns seconds, by default of processor time."""
        size = self._size
        self.simulator.memory[2 * size : 3 * size] = 0
        started = clock()
        traffic = execute(self.simulator, [move(Op.XOR, size, 0, size, 2 * size)], stall=stall)
        return XorRun(traffic, self.simulator.cycles, clock() - started)

    @property
    def right(self) -> bool:
        """Whether the last run wrote the right bytes."""
        a, b, y = (self.simulator.memory[k * self._size :][: self._size] for k in range(3))
        return np.array_equal(a ^ b, y)
