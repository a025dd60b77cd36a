"""The product's device `numpy` behind a link that tests can watch, stop and let fail.

It asserts that the driver keeps the ring's rules, and that its commands rely on nothing that the
contract leaves open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.driver import Allocation, Driver
from bitlane.links import BytesLike, Link
from bitlane_rtl.abi import (
    BEATS_PER_BLOCK,
    BIT_OPS,
    COMPLETION_OFFSET,
    CONTROL_BASE,
    CONTROL_SIZE,
    LINE_STATUS_OFFSET,
    RECORD_BYTES,
    REGISTERS,
    RING_OFFSET,
    Access,
    Lane,
    Mode,
    Op,
    Port,
    Rows,
    Status,
    register,
)
from bitlane_rtl.configuration import Configuration, Search
from bitlane_sim.numpy_device import ENDLESS, ControlWindow, Memory, PredictedCounters, Stop
from support.record import RUBBISH, Record
from support.watched import WatchedInterpreter

Bytes = NDArray[np.uint8]

_READABLE = {entry.offset: entry.name for entry in REGISTERS if entry.access is not Access.WRITE}
_OFFSETS = {entry.name: entry.offset for entry in REGISTERS}
_INDEXES = 1 << 16


@dataclass
class Fault(Exception):
    """A command that ends with another status than OK."""

    status: Status
    port: Port = Port.NONE
    address: int = 0


class _Commands(WatchedInterpreter):
    """The commands of a link, each of which is executed by ``end_of`` of the link."""

    def __init__(self, link: "ModelLink", configuration: Configuration) -> None:
        super().__init__(configuration)
        self._link = link
        self.perform = super().execute

    def execute(self, record: bytes) -> Stop | None:
        return self._link.end_of(Record.of(record))

    def access(self, name: str, first: int, end: int) -> None:
        assert end <= self._link.memory_base + self._link.memory_bytes, f"{name} passes the memory"
        self._link.access(name, first, end)


@dataclass(kw_only=True)
class ModelLink(Link):
    """A device in memory that obeys the contract, of a circuit with these parameters.

    With ``eager``, commands are executed when the doorbell rings; else one at each wait or read of
    a register by the host, so that the ring fills. ``hang_at`` is the index, from the start of the
    link, of a command that does not end before CLEAR; with ``deaf`` CLEAR does not end it either.
    """

    memory_bytes: int = 1 << 20
    memory_base: int = 0
    data_bytes: int = 8
    loops: int = 4
    length_bits: int = 24
    count_bits: int = 24
    ops: frozenset[Op] = BIT_OPS
    lanes: frozenset[Lane] = frozenset(Lane)
    modes: frozenset[Mode] = frozenset(Mode)
    read_ports: int = 2
    slots: int = 16
    rows: Rows | None = None
    search: Search | None = None

    eager: bool = True
    hang_at: int | None = None
    deaf: bool = False
    fail_reads: frozenset[int] = frozenset()
    """Addresses of bytes that answer with an error."""
    fail_writes: frozenset[int] = frozenset()
    registers: dict[str, int] = field(default_factory=dict)
    """Words that registers read as, by name, in place of the device's."""
    busy_cycles: int | None = None
    """BUSY_CYCLES, to which each command adds 123; None: a circuit without counters."""

    description = "model of the contract"

    log: list[Record] = field(default_factory=list)
    """Every record that was executed or refused."""
    traffic: list[tuple[str, int, int]] = field(default_factory=list)
    """Every call: "read" or "write", address, bytes."""
    doorbells: list[int] = field(default_factory=list)
    """Number of commands that each doorbell submitted."""
    closed: bool = False
    allocations: Mapping[Allocation, int] = field(default_factory=dict)
    """Those of the driver. While there are any, each access must stay in one of them."""

    def __post_init__(self) -> None:
        self.executed = self.doorbell = 0
        configuration = self._configuration()
        self._commands = _Commands(self, configuration)
        self._window = ControlWindow(self._commands, PredictedCounters(configuration, Memory()))
        self.memory: Bytes = self._commands.memory[: self.memory_bytes]
        # In the circuit, unused words of a slot hold rubbish: the driver must not depend on them.
        rubbish = RUBBISH.to_bytes(4, "little") * (self.slots * RECORD_BYTES // 4)
        self._window.write(RING_OFFSET, rubbish)

    def _configuration(self) -> Configuration:
        """Return the circuit; its memory may end behind the last byte that MEMORY_LAST names."""
        block = BEATS_PER_BLOCK * self.data_bytes
        return Configuration(
            data_width=8 * self.data_bytes,
            memory_base=self.memory_base,
            memory_bytes=-(-self.memory_bytes // block) * block,
            ops=self.ops,
            lanes=self.lanes,
            modes=self.modes,
            loops=self.loops,
            read_ports=self.read_ports,
            length_bits=self.length_bits,
            count_bits=self.count_bits,
            slots=self.slots,
            counters=self.busy_cycles is not None,
            rows=self.rows,
            search=self.search,
        )

    def pretend(self, executed: int) -> None:
        """Count as if another program had submitted ``executed`` commands since the last CLEAR."""
        self.doorbell = self._window._doorbell = self._window._retired = executed

    @property
    def retired(self) -> int:
        return self._window.read(_OFFSETS["RETIRED"])

    @property
    def interrupt(self) -> bool:
        """Whether the interrupt line is high."""
        return self._window.interrupt

    # --- the link -----------------------------------------------------------------------------

    @property
    def cycles(self) -> int | None:
        """Those of a simulated circuit that is always busy; None without counters."""
        return self.busy_cycles

    def read(self, address: int, size: int) -> Bytes:
        self.traffic.append(("read", address, size))
        if address < CONTROL_BASE:
            self.access("read", address, address + size)
            return self.memory[self._place(address, size)].copy()
        offset = _window_offset(address, size)
        if offset < COMPLETION_OFFSET:
            self._progress()
        words = [self._read_word(x) for x in range(offset, offset + size, 4)]
        return np.array(words, "<u4").view(np.uint8)

    def write(self, address: int, data: BytesLike) -> None:
        content = np.frombuffer(data, np.uint8)
        self.traffic.append(("write", address, content.size))
        if address < CONTROL_BASE:
            self.access("write", address, address + content.size)
            self.memory[self._place(address, content.size)] = content
            return
        offset = _window_offset(address, content.size)
        if offset >= RING_OFFSET:
            self._expect_free_slots(offset - RING_OFFSET, content.size)
            self._window.write(offset, content.tobytes())
            return
        for position, word in enumerate(content.view("<u4").tolist()):
            self._write_word(offset + 4 * position, word)

    def wait(self, timeout: float) -> bool:
        while self._progress() and not self.interrupt:
            pass
        if not self.interrupt:
            sleep(timeout)
        return self.interrupt

    def close(self) -> None:
        self.closed = True

    def access(self, name: str, first: int, end: int) -> None:
        """Assert that an access stays in one allocation, whose neighbours are so untouched."""
        inside = any(
            x.address <= first and end <= x.address + max(x.size, 1) for x in self.allocations
        )
        assert inside or not self.allocations, (
            f"{name}: bytes {first:#x} to {end - 1:#x} are in no single allocation of"
            f" {sorted((hex(x.address), x.size) for x in self.allocations)}"
        )

    def _place(self, address: int, size: int) -> slice:
        first = address - self.memory_base
        assert first >= 0, f"{address:#x} is below the memory"
        assert first + size <= self.memory_bytes, f"{size} bytes at {address:#x} pass the memory"
        return slice(first, first + size)

    # --- registers ----------------------------------------------------------------------------

    def _read_word(self, offset: int) -> int:
        if offset >= COMPLETION_OFFSET:
            assert offset < RING_OFFSET, "the ring is write-only"
            return self._window.read(offset)
        if offset == LINE_STATUS_OFFSET:
            return 0
        assert offset in _READABLE, f"{offset:#x} cannot be read"
        name = _READABLE[offset]
        if name in self.registers:
            return self.registers[name]
        word = self._window.read(offset)
        if name == "STATUS":
            bits = register("STATUS")
            word |= bits["BUSY"].insert(int(self.doorbell != self.retired))
            return word & ~bits["DRAINED"].insert(int(self.deaf))
        if name == "DOORBELL":
            return self.doorbell
        if name == "BUSY_CYCLES":
            return self.busy_cycles or 0
        return self.memory_base + self.memory_bytes - 1 if name == "MEMORY_LAST" else word

    def _write_word(self, offset: int, word: int) -> None:
        if offset == _OFFSETS["DOORBELL"]:
            self._ring(word)
            return
        if offset == _OFFSETS["CLEAR"]:
            if self.deaf or not word & 1:
                return
            if self.hang_at is not None and self.executed >= self.hang_at:
                self.hang_at = None
            self.doorbell = 0
            self._commands.forget_flights()
        self._window.write(offset, word.to_bytes(4, "little"))

    def _expect_free_slots(self, start: int, size: int) -> None:
        """Assert that no command is in the slots of bytes of the ring."""
        ahead = (self.doorbell - self.retired) % _INDEXES
        for slot in range(start // RECORD_BYTES, (start + size - 1) // RECORD_BYTES + 1):
            assert slot < self.slots, f"slot {slot} does not exist"
            assert (slot - self.retired) % self.slots >= ahead, f"slot {slot} is in use"

    # --- commands -----------------------------------------------------------------------------

    def _ring(self, word: int) -> None:
        """Submit commands up to number ``word``, or refuse to."""
        assert word < _INDEXES, f"DOORBELL has no bits for {word:#x}"
        self.doorbells.append((word - self.doorbell) % _INDEXES)
        self.doorbell = word
        if self.eager or (word - self.retired) % _INDEXES > self.slots:
            self._submit(word)

    def _progress(self) -> bool:
        """Execute a command if one is waiting; return whether one has retired."""
        before = self.retired
        if self.eager or self.doorbell == before:
            return False
        self._submit((before + 1) % _INDEXES)
        return self.retired != before

    def _submit(self, doorbell: int) -> None:
        self._window.write(_OFFSETS["DOORBELL"], doorbell.to_bytes(4, "little"))

    def hangs(self, record: Record) -> bool:
        """Return whether a command does not end before CLEAR."""
        return self.executed == self.hang_at

    def end_of(self, record: Record) -> Stop | None:
        """Execute the command in a slot; return why it stopped."""
        if self.hangs(record):
            return ENDLESS
        self.log.append(record)
        self.executed += 1
        if self.busy_cycles is not None:
            self.busy_cycles = (self.busy_cycles + 123) % (1 << 32)
        try:
            self.execute(record)
        except Fault as fault:
            return Stop(fault.status, fault.port, fault.address)
        return None

    def execute(self, record: Record) -> None:
        """Execute a record. Raises ``Fault`` where the circuit stops."""
        self._commands.fail_reads, self._commands.fail_writes = self.fail_reads, self.fail_writes
        if stop := self._commands.perform(record.content):
            raise Fault(stop.status, stop.port, stop.address)


def _window_offset(address: int, size: int) -> int:
    offset = address - CONTROL_BASE
    assert offset % 4 == 0, f"{address:#x} is not a whole word of the control window"
    assert size % 4 == 0, f"{size} bytes are not whole words of the control window"
    assert offset + size <= CONTROL_SIZE, f"{size} bytes at {address:#x} pass the window"
    return offset


@dataclass(kw_only=True)
class NotingLink(ModelLink):
    """A link to a memory without zeros at first, and a counter of cycles that is about to wrap."""

    memory_bytes: int = 1 << 16
    memory_base: int = 0x4000_0000
    busy_cycles: int | None = 0xFFFF_FFF0
    calls: list[str] = field(default_factory=list)
    """Reads and writes of the memory, and operations by their names, in order."""
    flip: int | None = None
    """If set, each command flips bit 0 of the byte at this offset from its output's start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.memory[:] = 0xA5

    def read(self, address: int, size: int) -> Bytes:
        if address < CONTROL_BASE:
            self.calls.append("read")
        return super().read(address, size)

    def write(self, address: int, data: BytesLike) -> None:
        if address < CONTROL_BASE:
            self.calls.append("write")
        super().write(address, data)

    def execute(self, record: Record) -> None:
        self.calls.append(Op(record.op).name)
        super().execute(record)
        if self.flip is not None:
            self.memory[record.word("Y_BASE") - self.memory_base + self.flip] ^= 1


class ModelDriver(Driver):
    """The driver on a `NotingLink`, which is ``model``."""

    def __init__(self, **changes: Any) -> None:
        self.model = NotingLink(**changes)
        super().__init__(self.model)
