"""The command ring seen from the host: filling it, waiting for it, and getting it going again.

Keeps the count of what is submitted and retired; everything else is the circuit's.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from time import monotonic
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import CONTROL_BASE, RECORD_BYTES, RING_OFFSET, Port, Status
from bitlane_rtl.abi import register as find_register

from ..errors import DeviceError, DeviceTimeout, LinkError
from ..links.link import BytesLike, Link
from .commands import Command, encode
from .control import Control, describe, status_name

__all__ = ["DeviceFault", "Ring", "Words", "Write"]

Words: TypeAlias = NDArray[np.uint32]
"""A record as the circuit reads it."""

Write: TypeAlias = "tuple[int, BytesLike]"
"""An address and what to write there."""

_INDEX_MASK: Final = 0xFFFF
"""DOORBELL and RETIRED count modulo 2**16."""

_CLEAR_SECONDS: Final = 5.0
"""How long a device may take to drain its bus after CLEAR."""

_POLL_SECONDS: Final = 0.02

_STATUS: Final = find_register("STATUS")
_DOORBELL: Final = find_register("DOORBELL")
_FAULT: Final = find_register("FAULT")
_INTERRUPT: Final = find_register("INTERRUPT")
_STATE_WORDS: Final = (_FAULT.offset - _STATUS.offset) // 4 + 1
_ACKNOWLEDGE: Final = _INTERRUPT["ENABLE"].insert(1) | _INTERRUPT["PENDING"].insert(1)


class DeviceFault(DeviceError):
    """The device stopped at a command.

    ``code`` is an ``abi.Status`` where the contract has it; ``index`` counts the commands of the
    job before the one that failed; ``port`` and ``address`` say where, if memory was involved.
    """

    def __init__(self, message: str, code: int, index: int, port: Port, address: int) -> None:
        super().__init__(message)
        self.code = Status(code) if code in Status.__members__.values() else code
        self.index = index
        self.port = port
        self.address = address


class Ring:
    """Submits jobs, which are commands in order, to a ring of ``slots``, and waits for them.

    ``run`` does all of it. In parts: ``stage`` gives the writes that put a job's first commands in
    the ring, ``start`` the one that starts them, and ``finish`` submits the rest and waits. While
    a job runs, the next one may be staged, if ``ready``.
    """

    state: Final = (CONTROL_BASE + _STATUS.offset, _STATE_WORDS * 4)
    """Address and size of what ``observe`` takes."""

    def __init__(self, link: Link, control: Control, slots: int) -> None:
        self._link = link
        self._control = control
        self._slots = slots
        # Two batches in the ring: one is written while the device works on the other.
        self._batch = max(1, slots // 2)
        self._submitted = 0
        self._retired = 0
        self._cleared = True
        # Written to the ring and not submitted.
        self._staged = 0
        # Commands of the job at hand that are not in the ring yet; None if there are no more.
        self._rest: Iterator[Command | Words] | None = None
        # Of the job that runs: how many commands went before it.
        self._first = 0
        self._new = False

    def run(self, commands: Iterable[Command | Words], timeout: float) -> None:
        """Execute ``commands`` in order. Words of a record are submitted as they are.

        ``timeout``: seconds in which at least one command must retire. Whatever is raised, no
        command is left in the device, unless the message says that CLEAR did not help.

        Raises
        ------
        DeviceFault
            The circuit refused or could not finish a command.
        DeviceTimeout
            Nothing retired in time, or the bus has not drained since an earlier error.
        """
        self.recover()
        try:
            writes = self.stage(commands)
            if writes:
                self._submit(writes)
                self.finish(timeout)
        except BaseException as error:
            self.drop(error)
            raise

    @property
    def ready(self) -> bool:
        """Whether a job may be staged: the one before is all in the ring, and leaves room."""
        outstanding = self._submitted + self._staged - self._retired
        return self._rest is None and self._slots - outstanding >= self._batch

    def stage(self, commands: Iterable[Command | Words]) -> list[Write]:
        """The writes that put the first of ``commands`` in the ring; to be done before ``start``.

        Nothing is written if there are no commands.
        """
        self._rest = iter(commands)
        self._new = True
        return self._records()

    def start(self) -> Write:
        """The write that starts what is staged."""
        if self._new:
            self._first = self._submitted
            self._new = False
        self._submitted += self._staged
        self._staged = 0
        count = self._submitted & _INDEX_MASK
        return CONTROL_BASE + _DOORBELL.offset, count.to_bytes(4, "little")

    def observe(self, state: NDArray[np.uint8]) -> None:
        """Take note of what was read from ``state`` after ``start``. Raises ``DeviceFault``."""
        _, _, retired, fault = np.frombuffer(state, "<u4").tolist()
        self._note(retired, fault)

    def finish(self, timeout: float) -> None:
        """Submit what is left of the job that was started, and return when all has retired.

        Raises as ``run`` does.
        """
        while True:
            while not self._new and self._rest is not None and self._room >= self._batch:
                self._submit(self._records())
            if self._submitted == self._retired:
                return
            self._wait(timeout)

    def recover(self) -> None:
        """Clear a device that did not drain its bus when an earlier job was dropped.

        Raises ``DeviceTimeout`` if it still does not.
        """
        if not self._cleared:
            # The device and we count anew.
            self.clear()

    def drop(self, error: BaseException) -> None:
        """Leave no command in the device after ``error``, which is on its way to the caller."""
        self._staged = 0
        self._rest = None
        self._new = False
        if self._submitted == self._retired or not self._cleared:
            return
        # Interrupted, or the link failed: what is on its way must not hit later buffers.
        try:
            self.clear()
        except (DeviceError, LinkError) as second:
            error.add_note(f"and then: {second}")

    def clear(self) -> None:
        """Drop every command that has not retired, and start afresh.

        Raises ``DeviceTimeout`` if the device's bus does not drain.
        """
        self._cleared = False
        self._control.write("CLEAR", 1)
        deadline = monotonic() + _CLEAR_SECONDS
        while True:
            self._control.write("INTERRUPT", _ACKNOWLEDGE)
            status, doorbell, retired, fault = self._state()
            if not (_STATUS["BUSY"].extract(status) or doorbell or retired or fault):
                break
            if monotonic() > deadline:
                raise DeviceTimeout(
                    f"device: CLEAR has had no effect for {_CLEAR_SECONDS:g} s;"
                    f" {describe(self._control.registers())}; reset the device"
                )
            self._link.wait(_POLL_SECONDS)
        self._submitted = self._retired = self._first = self._staged = 0
        self._cleared = True

    def _submit(self, writes: list[Write]) -> None:
        """Do ``writes``, which put records in the ring, and start these."""
        writes.append(self.start())
        if self._link.remote:
            # All in one round trip: writes to the control window keep their order.
            self.observe(self._link.exchange(writes, [self.state])[0])
            return
        for address, words in writes:
            self._link.write(address, words)

    @property
    def _room(self) -> int:
        return self._slots - (self._submitted + self._staged - self._retired)

    def _records(self) -> list[Write]:
        """The next batch of the job at hand as writes; from then on it counts as staged."""
        assert self._rest is not None
        batch = list(islice(self._rest, self._batch))
        following = next(self._rest, None) if len(batch) == self._batch else None
        self._rest = None if following is None else chain((following,), self._rest)
        last = len(batch) - 1
        writes: list[Write] = []
        for position, command in enumerate(batch):
            slot = (self._submitted + self._staged + position) % self._slots
            if isinstance(command, Command):
                words = encode(command, interrupt=position == last)
            else:
                words = command
            writes.append((CONTROL_BASE + RING_OFFSET + slot * RECORD_BYTES, words))
        self._staged += len(batch)
        return writes

    def _wait(self, timeout: float) -> None:
        """Return once more commands have retired."""
        deadline = monotonic() + timeout
        before = self._retired
        while self._retired == before:
            high = self._link.wait(max(0.0, deadline - monotonic()))
            # Acknowledge first: what retires after the read below raises the interrupt again.
            if high:
                self._control.write("INTERRUPT", _ACKNOWLEDGE)
            _, _, retired, fault = self._state()
            self._note(retired, fault)
            if self._retired == before and monotonic() >= deadline:
                self._raise_timeout(timeout)

    def _note(self, retired: int, fault: int) -> None:
        self._retired += (retired - self._retired) & _INDEX_MASK
        if fault:
            self._raise_fault(fault)

    def _state(self) -> tuple[int, int, int, int]:
        """STATUS, DOORBELL, RETIRED and FAULT at once: they are adjacent."""
        status, doorbell, retired, fault = self._control.read_words(_STATUS.offset, _STATE_WORDS)
        return status, doorbell, retired, fault

    def _raise_fault(self, fault: int) -> None:
        code = _FAULT["CODE"].extract(fault)
        port = Port(_FAULT["PORT"].extract(fault))
        index = (_FAULT["INDEX"].extract(fault) - self._first) & _INDEX_MASK
        registers = self._control.registers()
        address = registers["FAULT_ADDRESS"]
        where = "" if port is Port.NONE else f" on port {port.name} at {address:#x}"
        raise DeviceFault(
            f"device: command {index} of the job stopped with {status_name(code)}{where};"
            f" {describe(registers)}{self._help()}",
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
        """Clear the device while an error is on its way; what the message should add."""
        try:
            self.clear()
        except (DeviceError, LinkError) as error:
            return f"; and then: {error}"
        return ""
