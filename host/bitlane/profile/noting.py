"""Drivers that note the commands they are given; one of them has no device behind it."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import CONTROL_BASE, REGISTERS, WORD_BYTES, Access

from ..driver.commands import Command
from ..driver.driver import Driver
from ..driver.queue import Read, Words, Write
from ..links.link import BytesLike, Link


class NotingDriver(Driver):
    """A `Driver` that keeps what it runs.

    Attributes
    ----------
    noted : list of Command
        All commands so far, in order; records that were given as words are not among them.
    """

    def __init__(self, link: Link) -> None:
        self.noted: list[Command] = []
        super().__init__(link)

    def run(
        self,
        commands: Iterable[Command | Words],
        *,
        before: Sequence[Write] = (),
        meanwhile: Sequence[Write] = (),
        reads: Sequence[Read] = (),
    ) -> list[NDArray[np.uint8]]:
        given = list(commands)
        self.noted += [each for each in given if isinstance(each, Command)]
        return super().run(given, before=before, meanwhile=meanwhile, reads=reads)


class PaperDriver(NotingDriver):
    """Notes commands for a device with these ``registers``, and executes nothing.

    What is written is dropped, and all memory reads as zeros.
    """

    def __init__(self, registers: Mapping[str, int]) -> None:
        super().__init__(_Paper(registers))

    def run(
        self,
        commands: Iterable[Command | Words],
        *,
        before: Sequence[Write] = (),
        meanwhile: Sequence[Write] = (),
        reads: Sequence[Read] = (),
    ) -> list[NDArray[np.uint8]]:
        self.noted += [each for each in commands if isinstance(each, Command)]
        return [np.zeros(size, np.uint8) for _, size in reads]


class _Paper(Link):
    """Registers that say what a device is; the state in them is that after a reset."""

    description = "paper"

    def __init__(self, registers: Mapping[str, int]) -> None:
        self._words = {
            entry.offset: registers[entry.name] if entry.reset is None else entry.reset
            for entry in REGISTERS
            if entry.access is not Access.WRITE
        }

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        if address < CONTROL_BASE:
            return np.zeros(size, np.uint8)
        first = address - CONTROL_BASE
        words = [self._words.get(x, 0) for x in range(first, first + size, WORD_BYTES)]
        return np.array(words, "<u4").view(np.uint8)

    def write(self, address: int, data: BytesLike) -> None:
        """Nothing keeps it."""

    def wait(self, timeout: float) -> bool:
        return False

    def close(self) -> None:
        """There is nothing to give back."""
