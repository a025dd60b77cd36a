"""Runs queued commands on a simulator and measures the traffic of the buses."""

from collections.abc import Sequence
from dataclasses import dataclass

from bitlane.driver import Command, encode
from bitlane_rtl.abi import RECORD_BYTES, RING_OFFSET, WORD_BYTES, register
from cppsim.errors import SimulationError

from ..device.simulator import Simulator

_DEADLINE = 60.0
"""Seconds that a job may take."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The cost of commands. Cycles count from the write of DOORBELL.

    ``beats``: beats that each memory port carried; ``first`` and ``last``: cycles of the first and
    last beat written; ``done``: cycle of the last write response.
    """

    beats: dict[str, int]
    first: int
    last: int
    done: int

    @property
    def written(self) -> int:
        return self.beats["w"]

    @property
    def bound(self) -> int:
        """The most beats that any one memory port carried."""
        return max(self.beats.values())

    @property
    def writing(self) -> int:
        """Cycles from the first beat written to the last, both included."""
        return self.last - self.first + 1


def prepare(
    simulator: Simulator, commands: Sequence[Command], *, latency: int = 0, stall: float = 0.0
) -> None:
    """Queue ``commands``, so that only DOORBELL is missing, and forget what has been measured.

    There may be no more of them than slots in the ring. ``latency`` and ``stall``: as for the
    simulator's ``set_latency`` and ``set_stalls``. The last command raises the interrupt.
    """
    simulator.power_on()
    simulator.set_latency(latency)
    simulator.set_stalls(stall, seed=1)
    writes = []
    for slot, command in enumerate(commands):
        words = encode(command, interrupt=slot == len(commands) - 1).tolist()
        first = RING_OFFSET + slot * RECORD_BYTES
        writes += [(first + WORD_BYTES * k, word) for k, word in enumerate(words)]
    enable = register("INTERRUPT")["ENABLE"].insert(1)
    simulator.access([*writes, (register("INTERRUPT").offset, enable)], ())
    simulator.step(50)  # the first record is fetched ahead
    simulator.clear_monitor()


def check_fault(simulator: Simulator, *, came: bool) -> None:
    """Raise ``SimulationError`` unless the interrupt ``came`` and no command has failed."""
    (fault,) = simulator.access((), [register("FAULT").offset])
    if fault or not came:
        raise SimulationError(f"bench: the engine stopped with FAULT {fault:#x}")


def execute(
    simulator: Simulator, commands: Sequence[Command], *, latency: int = 0, stall: float = 0.0
) -> Traffic:
    """`prepare`, ring once, and run until the last command has retired.

    Raises ``SimulationError`` if the engine refuses one or does not finish within a minute.
    """
    prepare(simulator, commands, latency=latency, stall=stall)
    simulator.access([(register("DOORBELL").offset, len(commands))], ())
    check_fault(simulator, came=simulator.wait(_DEADLINE))
    report = simulator.monitor
    rung = report["doorbell"].last
    ports = [name for name in ("r", "r_b", "w") if name in report]
    return Traffic(
        {name: report[name].count for name in ports},
        report["w"].first - rung,
        report["w"].last - rung,
        report["b"].last - rung,
    )
