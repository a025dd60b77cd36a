"""Random commands for a core, and the memory that they must leave, guard bytes included.

The commands come from the contract. `support.rtl.records` executes them, element by element.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.configuration import Configuration
from support.commands import RandomCommands
from support.rtl.records import Failure, Task, apply

_GUARD = 64
"""Guard bytes between the regions of the tensors; no command may touch them."""


@dataclass
class Outcome:
    """The memory after some commands, the number that retired, and the fault that stopped them."""

    memory: NDArray[np.uint8]
    retired: int
    fault: Failure | None


def random_commands(
    generator: random.Random, configuration: Configuration, count: int
) -> list[Task]:
    """Return commands of any kind; A, B and each Y have separate regions between guard bytes."""
    room = configuration.memory_bytes - (count + 3) * _GUARD
    share = room // (count + 2) // 16 * 16
    bases = [_GUARD + region * (share + _GUARD) for region in range(count + 2)]
    commands = RandomCommands(
        configuration=configuration,
        size=share,
        a=bases[0],
        b=bases[1],
        runs=(1, 3, 8, 21, 40),
        sums=0.3,
        fences=0.3,
    )
    return [commands.draw(generator, base) for base in bases[2:]]


def expected(
    tasks: Sequence[Task],
    before: NDArray[np.uint8],
    *,
    bad_reads: frozenset[int] = frozenset(),
    bad_writes: frozenset[int] = frozenset(),
) -> Outcome:
    """Return the outcome of ``tasks`` by the contract, in order, up to the first fault."""
    memory = before.copy()
    for number, task in enumerate(tasks):
        if failure := apply(task, memory, bad_reads, bad_writes):
            return Outcome(memory, number, failure)
    return Outcome(memory, len(tasks), None)
