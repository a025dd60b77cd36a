"""Drivers that record the commands they run: on a device, or as a dry run without one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import CONTROL_BASE, MAX_LOOPS

from ..links import BytesLike, Link
from .commands import Command
from .driver import Driver
from .geometry import Geometry
from .queue import CommandQueue, Read, Words, Write

LARGEST_GEOMETRY: Final = Geometry(
    data_bytes=8,
    loops=MAX_LOOPS,
    slots=32,
    length_bits=32,
    count_bits=32,
    memory_base=0,
    memory_last=CONTROL_BASE - 1,
)
"""A circuit with all operations, and all the memory that there are addresses for."""


@dataclass(frozen=True, slots=True)
class LabelledCommands:
    """Commands in order, and the label under which they were run; empty without one."""

    label: str
    commands: list[Command]


class RecordingDriver(Driver):
    """A driver that records the commands it runs.

    Attributes
    ----------
    recorded : list of LabelledCommands
        All commands so far, in order. Groups without commands are left out, groups without a
        label that follow each other are one, and records that were passed as words are missing.
    """

    def __init__(self, link: Link) -> None:
        self.recorded: list[LabelledCommands] = []
        super().__init__(link)

    @property
    def commands(self) -> list[Command]:
        """All recorded commands, without their labels."""
        return [command for group in self.recorded for command in group.commands]

    def run(
        self,
        commands: Iterable[Command | Words],
        *,
        before: Sequence[Write] = (),
        meanwhile: Sequence[Write] = (),
        reads: Sequence[Read] = (),
    ) -> list[NDArray[np.uint8]]:
        commands = list(commands)
        self._record("", [each for each in commands if isinstance(each, Command)])
        return super().run(commands, before=before, meanwhile=meanwhile, reads=reads)

    def run_labelled(self, groups: Iterable[tuple[str, Iterable[Command]]]) -> None:
        commands: list[Command] = []
        for label, group in groups:
            start = len(commands)
            commands += group
            self._record(label, commands[start:])
        super().run(commands)

    def _record(self, label: str, commands: list[Command]) -> None:
        if not commands:
            return
        if not label and self.recorded and not self.recorded[-1].label:
            self.recorded[-1].commands.extend(commands)
        else:
            self.recorded.append(LabelledCommands(label, commands))


class DryRunDriver(RecordingDriver):
    """Records the commands for a circuit of ``geometry``, and executes nothing.

    Writes are dropped, and all memory reads as zeros.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._circuit = geometry
        super().__init__(_NoDevice())

    def _connect(self) -> tuple[Geometry, CommandQueue]:
        return self._circuit, _NoQueue(self.link, self._control, self._circuit.slots)


class _NoQueue(CommandQueue):
    """Drops all commands, and returns zeros for all reads."""

    def run(
        self,
        commands: Iterable[Command | Words],
        timeout: float,
        *,
        before: Sequence[Write] = (),
        meanwhile: Sequence[Write] = (),
        reads: Sequence[Read] = (),
    ) -> list[NDArray[np.uint8]]:
        return [np.zeros(size, np.uint8) for _, size in reads]


class _NoDevice(Link):
    """Drops all writes; memory and registers read as zeros."""

    description = "dry run"

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        return np.zeros(size, np.uint8)

    def write(self, address: int, data: BytesLike) -> None:
        """Drop the data."""

    def wait(self, timeout: float) -> bool:
        return False

    def close(self) -> None:
        """Do nothing."""
