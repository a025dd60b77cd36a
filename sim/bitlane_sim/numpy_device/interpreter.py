"""Executes one record at a time on the bytes of a memory. It knows no ring and no registers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from bitlane_rtl.abi import (
    SEARCH_ENTRY_BYTES,
    Mode,
    Op,
    Port,
    Status,
)
from bitlane_rtl.configuration import Configuration

from ..fields import Fields, Limits, refusals
from ..pages import Pages
from .command import DecodedCommand
from .operations import Elements, computation, nearest
from .walk import ADDRESSES

_PORTS = {"A": Port.READ_A, "B": Port.READ_B, "Y": Port.WRITE}

_PLANS = 1 << 12
"""Commands whose checks and views are stored, because eager calls repeat their commands."""

Plan: TypeAlias = "Callable[[], Stop | None]"
"""Executes one command; returns why it stopped."""

_BLOCK = 1 << 16
"""Elements that are computed at a time, so that results in between stay in a cache."""

_LARGE = 1 << 26
"""Elements from which on all commands are computed in parts, so that Ctrl-C is heard."""

_MOST = 1 << 40
"""Elements of a command that ends: more take NumPy hours, and a circuit, too."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of a command that did not retire: FAULT.CODE and PORT, and FAULT_ADDRESS."""

    status: Status
    port: Port = Port.NONE
    address: int = 0


ENDLESS = Stop(Status.TIMEOUT)
"""The command does not end: it is pending until CLEAR. No register shows this value."""


class Interpreter:
    """The memory of a circuit and its commands. A command that stops has written nothing."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._pages = Pages(configuration.memory_bytes)
        self.memory = self._pages.bytes
        self._limits = Limits.of(configuration)
        # No cache of functools on a method: in a cycle, a dropped device would keep its memory.
        self._plans: dict[bytes, Plan] = {}

    def forget(self, offset: int, size: int) -> None:
        """Forget ``size`` bytes of the memory: they may be anything until they are written."""
        self._pages.forget(offset, size)

    def execute(self, record: bytes) -> Stop | None:
        """Execute the command whose slot holds ``record``, 128 bytes; return why it stopped.

        Returns `ENDLESS` for a command that would take hours.
        """
        plan = self._plans.get(record)
        if plan is None:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            plan = self._plans[record] = self._new_plan(record)
        return plan()

    def _new_plan(self, record: bytes) -> Plan:
        words = np.frombuffer(record, "<u4").tolist()
        status = Status(refusals(Fields(words), self._limits))
        if status is not Status.OK:
            return partial(Stop, status)
        command = DecodedCommand(words)
        if command.op is Op.SEARCH:
            return self._search(command)
        if stop := self._stop(command, command.streams):
            return lambda: stop
        if command.steps > _MOST:
            return lambda: ENDLESS
        elements = [
            command.elements(name).view(
                self.memory, self.configuration.memory_base, command.dtype(name)
            )
            for name in command.streams
        ]
        compute = computation(command.control)
        if elements[0].size <= (_BLOCK if compute.has_steps else _LARGE):
            return partial(compute, *elements)

        def execute() -> None:
            for block in _blocks(elements):
                compute(*block)

        return execute

    def _stop(self, command: DecodedCommand, streams: str) -> Stop | None:
        """Return the fault of ``streams`` that leave the memory on their way.

        The stream that leaves in the earliest run stops the command; of equal ones, any may.
        """
        first, end = self.configuration.memory_base, self.configuration.memory_last + 1
        beat = self.configuration.data_bytes
        found = []
        for name in streams:
            if left := command.bursts(name).leaves(first, end):
                number, address = left
                by_element = command.mode(name) is Mode.STRIDED
                run = number // command.run if by_element else number
                # Blocks of bursts do not cross the end of the memory, so the burst begins there.
                address = end if first <= address < end else address
                found.append((run, address % ADDRESSES // beat * beat, name))
        if not found:
            return None
        _, address, name = min(found)
        return Stop(Status.PAST_MEMORY, _PORTS[name], address)

    def _search(self, command: DecodedCommand) -> Plan:
        search, base = self.configuration.search, self.configuration.memory_base
        assert search is not None, "refused before"
        # B and Y reach from BASE to LAST, which are in the memory.
        if stop := self._stop(command, "A"):
            return lambda: stop
        row = search.row_bits // 8
        queries_bytes = command.word("B_LAST") - command.word("B_BASE") + 1
        sizes = {
            "A": command.run,
            "B": queries_bytes,
            "Y": queries_bytes // row * search.nearest * SEARCH_ENTRY_BYTES,
        }
        a, b, y = (
            self.memory[command.word(f"{name}_BASE") - base :][:size]
            for name, size in sizes.items()
        )

        def find() -> None:
            found = nearest(a.reshape(-1, row), b.reshape(-1, row), search.nearest)
            y[:] = found.reshape(-1).view(np.uint8)

        return find


def _blocks(elements: Sequence[Elements]) -> Iterator[list[Elements]]:
    """Yield parts of the streams of some `_BLOCK` elements of A, in the order of the loops.

    A run is not split, as it may be summed.
    """
    shape = elements[0].shape
    inner = shape[-1]
    for axis in reversed(range(len(shape) - 1)):
        if inner * shape[axis] > _BLOCK:
            break
        inner *= shape[axis]
    else:
        yield list(elements)
        return
    step = max(1, _BLOCK // inner)
    for outer in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield [each[*outer, start : start + step] for each in elements]
