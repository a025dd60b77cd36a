"""Prices of commands and of transfers on a link: the rule that chooses between device and host.

Estimates alone, of the time that a caller waits. A board is not compared with the simulator.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..driver import Abilities, Command
from ..links import Link
from ..lowering import beats


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one unit, that of the link."""

    command: float
    """The price of a command; sending its record is part of it."""
    beat: float
    """The price of a beat of the busiest memory port."""
    byte: float
    """The price of a byte that a transfer moves."""
    transfer: float
    """The price of a transfer beside its bytes."""
    element: float
    """The price of an element that the host selects."""
    move: float
    """The price of the search for moves at equal distances, for each move."""

    def of_host(self, transferred: Sequence[int], elements: int) -> float:
        """Return the price of transfers, of ``transferred`` bytes each, and of ``elements``."""
        bytes_moved = sum(transferred)
        return len(transferred) * self.transfer + bytes_moved * self.byte + elements * self.element

    def of_commands(self, commands: Sequence[Command], abilities: Abilities) -> float:
        """Return the price of ``commands``, which run on the device one after another."""
        return len(commands) * self.command + self.beat * sum(
            beats(command, abilities) for command in commands
        )

    def of_moves(self, moves: int, nbytes: int, abilities: Abilities) -> float:
        """Return the price of ``moves`` of ``nbytes`` in all, if one command does all of them."""
        return self.command + moves * self.move + nbytes / abilities.data_bytes * self.beat

    def most_commands(self, price: float) -> int:
        """Return how many commands ``price`` buys."""
        return int(price / self.command)


_LINE: Final = Prices(command=128, beat=0.5, byte=1, transfer=256, element=0, move=0)
"""Prices of a board, in bytes on its line.

A record has 128 bytes at most. Beats matter on a fast line only."""

_MODELLED: Final = Prices(command=27, beat=5e-4, byte=1e-4, transfer=60, element=1e-3, move=0.015)
"""Prices of the device ``numpy`` in microseconds, measured but for that of a transfer, which is
higher, so that few elements stay on the device."""

_SIMULATED: Final = replace(_MODELLED, beat=0.4)
"""Prices of a circuit that compiled code simulates, in microseconds."""

_INTERPRETED: Final = replace(_MODELLED, command=20_000, beat=1000)
"""Prices of a circuit that Python evaluates, in microseconds."""


def prices_of(link: Link | None) -> Prices:
    """Return the prices on ``link``; those of a line for a board, also if it is predicted.

    The same for None, an unknown link.
    """
    if link is None or link.remote or link.prediction is not None:
        return _LINE
    if link.slow:
        return _INTERPRETED
    if link.predicted:
        return _MODELLED
    return _LINE if link.cycles is None else _SIMULATED
