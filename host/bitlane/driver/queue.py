"""The queue of commands seen from the host: filling it, waiting for it, and emptying it.

Counts submitted and retired commands; the circuit keeps all other state. Does not interpret
commands.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import CONTROL_BASE, RECORD_BYTES, RING_OFFSET, WORD_BYTES, Port, Status
from bitlane_rtl.abi import register as find_register

from ..errors import DeviceError, DeviceFault, DeviceTimeout, LinkError
from ..links import BytesLike, Link
from .commands import Command, encode
from .control import Control, describe, status_name

Words: TypeAlias = NDArray[np.uint32]
"""A record as the circuit reads it."""

Write: TypeAlias = "tuple[int, BytesLike]"
"""An address and what to write there."""

Read: TypeAlias = "tuple[int, int]"
"""An address and how many bytes to read there."""

_INDEX_MASK: Final = 0xFFFF
"""DOORBELL and RETIRED count modulo 2**16."""

CLEAR_SECONDS: Final = 5.0
"""Time within which a device must drain its bus after CLEAR."""

_POLL_SECONDS: Final = 0.02

_STATUS: Final = find_register("STATUS")
_FAULT: Final = find_register("FAULT")
_INTERRUPT: Final = find_register("INTERRUPT")

_STATE: Final[Read] = (CONTROL_BASE + _STATUS.offset, _FAULT.offset - _STATUS.offset + WORD_BYTES)
"""STATUS, DOORBELL, RETIRED and FAULT at once: they are adjacent."""

_ACKNOWLEDGE: Final[Write] = (
    CONTROL_BASE + _INTERRUPT.offset,
    (_INTERRUPT["ENABLE"].insert(1) | _INTERRUPT["PENDING"].insert(1)).to_bytes(
        WORD_BYTES, "little"
    ),
)
_DOORBELL: Final = CONTROL_BASE + find_register("DOORBELL").offset
_RING: Final = CONTROL_BASE + RING_OFFSET


class CommandQueue:
    """Executes runs of commands, in order, through the device's ring of ``slots``.

    The first commands of a run are in the ring when their data are on the device; the rest follow
    as slots become free. Between two calls no command is in the device.
    """

    def __init__(self, link: Link, control: Control, slots: int) -> None:
        self._link = link
        self._control = control
        self._slots = slots
        # Two batches in the ring: one is written while the device works on the other.
        self._batch = max(1, slots // 2)
        self._submitted = 0
        self._retired = 0
        # Commands submitted before the present run.
        self._first = 0
        self._cleared = True

    def run(
        self,
        commands: Iterable[Command | Words],
        timeout: float,
        *,
        before: Sequence[Write] = (),
        meanwhile: Sequence[Write] = (),
        reads: Sequence[Read] = (),
    ) -> list[NDArray[np.uint8]]:
        """Execute ``commands`` in order; when all is done, return the data of ``reads``.

        Words of a record are submitted as they are. ``before`` is written first. ``meanwhile`` is
        written and ``reads`` are read while the device works: they must overlap neither the
        operands and results of the commands nor each other. On a line the first commands go with
        all of this in one round trip. ``timeout``: seconds in which at least one command must
        retire. After any error, no command is left in the device, unless the message says that
        CLEAR did not help.

        Raises
        ------
        DeviceFault
            The circuit refused or could not finish a command.
        DeviceTimeout
            Nothing retired in time, or the bus has not drained since an earlier error.
        """
        if not self._cleared:
            # It did not drain when an earlier run was dropped. Both sides count from 0 again.
            self.clear()
        batches = self._batches(commands)
        self._first = self._submitted
        try:
            records = self._submit(batches)
            results = self._exchange([*before, *records, *meanwhile], reads)
            while True:
                if records := self._submit(batches):
                    self._exchange(records, ())
                elif self._submitted != self._retired:
                    self._wait(timeout)
                else:
                    return results
        except BaseException as error:
            self._drop(error)
            raise

    def clear(self) -> None:
        """Drop every command that has not retired, and reset the counts.

        Raises ``DeviceTimeout`` if the device's bus does not drain.
        """
        self._cleared = False
        self._control.write("CLEAR", 1)
        deadline = monotonic() + CLEAR_SECONDS
        while True:
            status, doorbell, retired, fault = np.frombuffer(self._look(), "<u4").tolist()
            if not (_STATUS["BUSY"].extract(status) or doorbell or retired or fault):
                break
            if monotonic() > deadline:
                raise DeviceTimeout(
                    f"device: CLEAR has had no effect for {CLEAR_SECONDS:g} s;"
                    f" {describe(self._control.registers())}; reset the device"
                )
            self._link.wait(_POLL_SECONDS)
        self._submitted = self._retired = self._first = 0
        self._cleared = True

    def _drop(self, error: BaseException) -> None:
        """Leave no command in the device after ``error``, which is on its way to the caller."""
        if self._submitted == self._retired or not self._cleared:
            return
        # Interrupted, or the link failed: writes in flight must not hit later buffers.
        try:
            self.clear()
        except (DeviceError, LinkError) as second:
            error.add_note(f"and then: {second}")

    def _batches(self, commands: Iterable[Command | Words]) -> Iterator[list[Words]]:
        """Yield batches of half a ring each; the last record of each raises the interrupt."""
        rest = iter(commands)
        while batch := list(islice(rest, self._batch)):
            last = len(batch) - 1
            yield [
                encode(x, interrupt=number == last) if isinstance(x, Command) else x
                for number, x in enumerate(batch)
            ]

    def _submit(self, batches: Iterator[list[Words]]) -> list[Write]:
        """Return the writes that submit as many batches as fit into the ring.

        They count as submitted from now on, so that they are dropped if the writing fails.
        """
        writes: list[Write] = []
        while self._slots - (self._submitted - self._retired) >= self._batch:
            batch = next(batches, None)
            if batch is None:
                break
            for record in batch:
                slot = self._submitted % self._slots
                writes.append((_RING + slot * RECORD_BYTES, record))
                self._submitted += 1
            count = self._submitted & _INDEX_MASK
            writes.append((_DOORBELL, count.to_bytes(WORD_BYTES, "little")))
        return writes

    def _exchange(self, writes: Sequence[Write], reads: Sequence[Read]) -> list[NDArray[np.uint8]]:
        """Do ``writes`` and ``reads``; on a line, count what has retired in the same round trip."""
        if not writes and not reads:
            return []
        if not self._link.remote or self._submitted == self._retired:
            return self._link.exchange(writes, reads)
        *results, state = self._link.exchange(writes, (*reads, _STATE))
        self._note(state)
        return results

    def _look(self) -> NDArray[np.uint8]:
        """Acknowledge the interrupt, which the next command raises again; read the state."""
        return self._link.exchange((_ACKNOWLEDGE,), (_STATE,))[0]

    def _wait(self, timeout: float) -> None:
        """Return once more commands have retired."""
        deadline = monotonic() + timeout
        before = self._retired
        while self._retired == before:
            self._link.wait(max(0.0, deadline - monotonic()))
            self._note(self._look())
            if self._retired == before and monotonic() >= deadline:
                self._raise_timeout(timeout)

    def _note(self, state: NDArray[np.uint8]) -> None:
        """Count the commands that have retired. Raises ``DeviceFault`` and ``LinkError``."""
        _, _, retired, fault = np.frombuffer(state, "<u4").tolist()
        more = (retired - self._retired) & _INDEX_MASK
        if more > self._submitted - self._retired and not fault:
            # Another program's CLEAR, too: its count would pass for commands that have ended.
            raise LinkError(
                f"device: RETIRED is {retired}; expected {self._retired & _INDEX_MASK} to"
                f" {self._submitted & _INDEX_MASK}, because no other command was submitted; let no"
                " other program use the device"
            )
        self._retired += more
        if fault:
            self._raise_fault(fault)

    def _raise_fault(self, fault: int) -> None:
        code = _FAULT["CODE"].extract(fault)
        port = Port(_FAULT["PORT"].extract(fault))
        index = (_FAULT["INDEX"].extract(fault) - self._first) & _INDEX_MASK
        registers = self._control.registers()
        address = registers["FAULT_ADDRESS"]
        where = "" if port is Port.NONE else f" on port {port.name} at {address:#x}"
        what = f"command {index} of the job stopped with {status_name(code)}{where}"
        if code == Status.BAD_DOORBELL:
            what = (
                f"a DOORBELL was refused with {status_name(code)}: it was more than {self._slots}"
                " above RETIRED, or behind the one before; let no other program use the device"
            )
        raise DeviceFault(
            f"device: {what}; {describe(registers)}{self._help()}",
            code,
            index,
            port,
            address,
        )

    def _raise_timeout(self, timeout: float) -> None:
        registers = self._control.registers()
        raise DeviceTimeout(
            f"device: command {self._retired - self._first} of the job has not retired within"
            f" {timeout:g} s; {describe(registers)}{self._help()}"
        )

    def _help(self) -> str:
        """Clear the device while an error propagates; return text to add to its message."""
        try:
            self.clear()
        except (DeviceError, LinkError) as error:
            return f"; and then: {error}"
        return ""
