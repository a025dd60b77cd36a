"""The command ring seen from the host: filling it, waiting for it, and getting it going again.

Keeps the count of what is submitted and retired; everything else is the circuit's.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import Final

from bitlane_rtl.abi import RECORD_BYTES, RING_OFFSET, Port, Status
from bitlane_rtl.abi import register as find_register

from .commands import Command, encode
from .control import Control, describe, status_name
from .errors import DeviceError, DeviceTimeout, LinkError
from .link import Link

__all__ = ["DeviceFault", "Ring"]

_INDEX_MASK: Final = 0xFFFF
"""DOORBELL and RETIRED count modulo 2**16."""

_CLEAR_SECONDS: Final = 5.0
"""How long a device may take to drain its bus after CLEAR."""

_POLL_SECONDS: Final = 0.02

_STATUS: Final = find_register("STATUS")
_FAULT: Final = find_register("FAULT")
_RETIRED: Final = find_register("RETIRED")
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
    """Submits commands to the ring of ``slots`` slots and waits until they have retired."""

    def __init__(self, link: Link, control: Control, slots: int) -> None:
        self._link = link
        self._control = control
        self._slots = slots
        self._submitted = 0
        self._retired = 0
        self._cleared = True

    def run(self, commands: Iterable[Command], timeout: float) -> int:
        """Execute ``commands`` in order and return how many there were.

        ``timeout``: seconds in which at least one command must retire. Whatever is raised, no
        command is left in the device, unless the message says that CLEAR did not help.

        Raises
        ------
        DeviceFault
            The circuit refused or could not finish a command.
        DeviceTimeout
            Nothing retired in time, or the bus has not drained since an earlier error.
        """
        if not self._cleared:
            # The memory hung when an earlier job was dropped; the device and we count anew.
            self.clear()
        try:
            return self._run(iter(commands), timeout)
        except BaseException as error:
            if isinstance(error, DeviceError) or self._submitted == self._retired:
                raise
            # Interrupted, or the link failed: what is on its way must not hit later buffers.
            try:
                self.clear()
            except (DeviceError, LinkError) as second:
                error.add_note(f"and then: {second}")
            raise

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
        self._submitted = self._retired = 0
        self._cleared = True

    def _run(self, commands: Iterator[Command], timeout: float) -> int:
        first = self._submitted
        # Two batches in the ring: one is written while the device works on the other.
        batch = max(1, self._slots // 2)
        more = True
        while True:
            while more and self._slots - (self._submitted - self._retired) >= batch:
                more = self._submit(list(islice(commands, batch)))
            if self._submitted == self._retired:
                return self._submitted - first
            self._wait(first, timeout)

    def _submit(self, batch: list[Command]) -> bool:
        """Write records and ring once; whether there was anything to submit."""
        if not batch:
            return False
        last = len(batch) - 1
        for position, command in enumerate(batch):
            slot = (self._submitted + position) % self._slots
            words = encode(command, interrupt=position == last)
            self._control.write_bytes(RING_OFFSET + slot * RECORD_BYTES, words)
        self._submitted += len(batch)
        self._control.write("DOORBELL", self._submitted & _INDEX_MASK)
        return True

    def _wait(self, first: int, timeout: float) -> None:
        """Return once more commands have retired."""
        deadline = monotonic() + timeout
        before = self._retired
        while self._retired == before:
            high = self._link.wait(max(0.0, deadline - monotonic()))
            # Acknowledge first: what retires after the read below raises the interrupt again.
            if high:
                self._control.write("INTERRUPT", _ACKNOWLEDGE)
            _, _, retired, fault = self._state()
            self._retired += (retired - self._retired) & _INDEX_MASK
            if fault:
                self._raise_fault(fault, first)
            if self._retired == before and monotonic() >= deadline:
                self._raise_timeout(first, timeout)

    def _state(self) -> tuple[int, int, int, int]:
        """STATUS, DOORBELL, RETIRED and FAULT at once: they are adjacent."""
        status, doorbell, retired, fault = self._control.read_words(_STATUS.offset, _STATE_WORDS)
        return status, doorbell, retired, fault

    def _raise_fault(self, fault: int, first: int) -> None:
        code = _FAULT["CODE"].extract(fault)
        port = Port(_FAULT["PORT"].extract(fault))
        index = (_FAULT["INDEX"].extract(fault) - first) & _INDEX_MASK
        registers = self._control.registers()
        address = registers["FAULT_ADDRESS"]
        where = "" if port is Port.NONE else f" on port {port.name} at {address:#x}"
        raise DeviceFault(
            f"device: command {index} of the job stopped with {status_name(code)}{where};"
            f" {describe(registers)}{self._recover()}",
            code,
            index,
            port,
            address,
        )

    def _raise_timeout(self, first: int, timeout: float) -> None:
        registers = self._control.registers()
        raise DeviceTimeout(
            f"device: command {self._retired - first} of the job has not retired within"
            f" {timeout:g} s; {describe(registers)}{self._recover()}"
        )

    def _recover(self) -> str:
        """Clear the device while an error is on its way; what the message should add."""
        try:
            self.clear()
        except (DeviceError, LinkError) as error:
            return f"; and then: {error}"
        return ""
