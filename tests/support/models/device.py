"""A device that obeys the contract, behind a link, for tests of the driver.

`abi` describes registers, ring, completions and interrupt; `models.record` executes the commands.
The model asserts that the driver keeps the ring's rules.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import sleep

import numpy as np

from bitlane.driver.allocator import Allocation
from bitlane.links.link import BytesLike, Link
from bitlane_rtl.abi import (
    ABI_VERSION,
    COMPLETION,
    COMPLETION_OFFSET,
    CONTROL_BASE,
    CONTROL_SIZE,
    IDENTITY,
    RECORD_BYTES,
    REGISTERS,
    RING_OFFSET,
    Access,
    Port,
    Status,
    register,
)
from bitlane_rtl.abi.rows import Rows
from support.models.record import Bytes, Fault, Interpreter, Record

_ENTRIES = {entry.offset: entry for entry in REGISTERS}


@dataclass(kw_only=True)
class ModelLink(Interpreter, Link):
    """A device in memory that obeys the contract.

    With ``eager``, commands are executed when the doorbell rings; else one at each wait or read of
    a register by the host, so that the ring fills. ``hang_at`` is the index, from the start of the
    link, of a command that does not end before CLEAR; with ``deaf`` CLEAR does not end it either.
    """

    slots: int = 16
    eager: bool = True
    hang_at: int | None = None
    deaf: bool = False
    identity: int = IDENTITY
    version: int = ABI_VERSION
    cycles: int | None = None
    """BUSY_CYCLES, to which each command adds 123; None: a circuit without counters."""
    rows: Rows | None = None
    """Row layout of the memory (SDRAM banks and rows), or None for a flat memory."""

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
        super().__post_init__()
        self.window: Bytes = np.zeros(CONTROL_SIZE, np.uint8)
        # In the circuit, unused words of a slot hold rubbish: the driver must not depend on them.
        self.window[RING_OFFSET:] = 0xEE
        self.executed = 0
        self.timeout = 0
        self.pending = self.enable = False
        self._restart()

    def _restart(self) -> None:
        self.doorbell = self.retired = 0
        self.fault: tuple[Status, Port, int, int] | None = None
        self.total_submitted = self.total_retired = 0
        self.forget_flights()

    # --- the link -----------------------------------------------------------------------------

    def read(self, address: int, size: int) -> Bytes:
        self.traffic.append(("read", address, size))
        if address < CONTROL_BASE:
            self.access("read", address, address + size)
            return self.memory[self._place(address, size)].copy()
        offset = self._window_offset(address, size)
        if offset < COMPLETION_OFFSET:
            self._progress()
            words = [self._read_word(x) for x in range(offset, offset + size, 4)]
            return np.array(words, "<u4").view(np.uint8)
        assert offset + size <= RING_OFFSET, "the ring is write-only"
        return self.window[offset : offset + size].copy()

    def write(self, address: int, data: BytesLike) -> None:
        content = np.frombuffer(data, np.uint8)
        self.traffic.append(("write", address, content.size))
        if address < CONTROL_BASE:
            self.access("write", address, address + content.size)
            self.memory[self._place(address, content.size)] = content
            return
        offset = self._window_offset(address, content.size)
        if offset >= RING_OFFSET:
            self._write_ring(offset, content)
            return
        for position, word in enumerate(content.view("<u4").tolist()):
            self._write_word(offset + 4 * position, word)

    def wait(self, timeout: float) -> bool:
        while self._progress() and not (self.pending and self.enable):
            pass
        if not (self.pending and self.enable):
            sleep(timeout)
        return self.pending and self.enable

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

    @staticmethod
    def _window_offset(address: int, size: int) -> int:
        offset = address - CONTROL_BASE
        assert offset % 4 == 0, f"{address:#x} is no whole word of the control window"
        assert size % 4 == 0, f"{size} bytes are not whole words of the control window"
        assert offset + size <= CONTROL_SIZE, f"{size} bytes at {address:#x} pass the window"
        return offset

    # --- registers ----------------------------------------------------------------------------

    def _read_word(self, offset: int) -> int:
        entry = _ENTRIES[offset]
        assert entry.access is not Access.WRITE, f"{entry.name} is write-only"
        word = self._words.get(entry.name)
        return word() if word else 0

    @cached_property
    def _words(self) -> dict[str, Callable[[], int]]:
        """The reads of registers that do not read as 0, by name."""

        def bits(entry: str, **values: int) -> int:
            register_of = register(entry)
            return sum(register_of[name].insert(int(value)) for name, value in values.items())

        def fault_word() -> int:
            status, port, index, _ = self.fault or (Status.OK, Port(0), 0, 0)
            return bits("FAULT", CODE=status, PORT=port, INDEX=index % (1 << 16))

        return {
            "IDENTITY": lambda: self.identity,
            "VERSION": lambda: self.version,
            "CAPABILITIES": lambda: bits(
                "CAPABILITIES",
                OPS=sum(1 << op for op in self.ops),
                LANES=sum(1 << lane for lane in self.lanes),
                MODES=sum(1 << mode for mode in self.modes),
                READ_PORTS=self.read_ports,
                COUNTERS=self.cycles is not None,
            ),
            "GEOMETRY": lambda: bits(
                "GEOMETRY",
                DATA_BYTES_LOG2=self.data_bytes.bit_length() - 1,
                LOOPS=self.loops,
                SLOTS_LOG2=self.slots.bit_length() - 1,
                LENGTH_BITS=self.length_bits,
                COUNT_BITS=self.count_bits,
                ROWS_LOG2=self.rows.size_log2 if self.rows else 0,
                BANKS_LOG2=self.rows.banks_log2 if self.rows else 0,
                WORD_BYTES_LOG2=self.rows.word_bytes_log2 if self.rows else 0,
            ),
            "SEARCH": lambda: (
                bits(
                    "SEARCH",
                    UNITS=self.search.units,
                    ROW_BYTES_LOG2=(self.search.row_bits // 8).bit_length() - 1,
                    QUERIES_LOG2=self.search.queries.bit_length() - 1,
                    NEAREST_LOG2=self.search.nearest.bit_length() - 1,
                )
                if self.search
                else 0
            ),
            "MEMORY_BASE": lambda: self.memory_base,
            "MEMORY_LAST": lambda: self.memory_base + self.memory_bytes - 1,
            "STATUS": lambda: bits(
                "STATUS",
                BUSY=self.doorbell != self.retired,
                FAULT=self.fault is not None,
                DRAINED=not self.deaf,
            ),
            "DOORBELL": lambda: self.doorbell,
            "RETIRED": lambda: self.retired,
            "FAULT": fault_word,
            "FAULT_ADDRESS": lambda: self.fault[3] if self.fault else 0,
            "TIMEOUT": lambda: self.timeout,
            "INTERRUPT": lambda: bits("INTERRUPT", ENABLE=self.enable, PENDING=self.pending),
            "BUSY_CYCLES": lambda: self.cycles or 0,
        }

    def _write_word(self, offset: int, word: int) -> None:
        if offset == register("DOORBELL").offset:
            assert word < 1 << 16, f"DOORBELL has no bits for {word:#x}"
            self._ring(word)
        elif offset == register("CLEAR").offset and word & 1 and not self.deaf:
            if self.hang_at is not None and self.executed >= self.hang_at:
                self.hang_at = None
            self._restart()
        elif offset == register("INTERRUPT").offset:
            self.enable = bool(word & 1)
            self.pending = self.pending and not word & 2
        elif offset == register("TIMEOUT").offset:
            self.timeout = word

    def _write_ring(self, offset: int, content: Bytes) -> None:
        first, last = offset - RING_OFFSET, offset - RING_OFFSET + content.size - 1
        for slot in range(first // RECORD_BYTES, last // RECORD_BYTES + 1):
            assert slot < self.slots, f"slot {slot} does not exist"
            taken = (slot - self.total_retired) % self.slots
            assert taken >= self.total_submitted - self.total_retired, f"slot {slot} is in use"
        self.window[offset : offset + content.size] = content

    # --- commands -----------------------------------------------------------------------------

    def _ring(self, word: int) -> None:
        """Submit commands up to number ``word``, or refuse to."""
        before, ahead = ((x - self.retired) % (1 << 16) for x in (self.doorbell, word))
        self.doorbell = word
        self.doorbells.append(ahead - before)
        if not before <= ahead <= self.slots:
            if not self.fault:
                self._stop(Status.BAD_DOORBELL, Port.NONE, 0)
            return
        self.total_submitted += ahead - before
        while self.eager and self._progress():
            pass

    def _stop(self, status: Status, port: Port, address: int) -> None:
        """Stop at the first command that has not retired."""
        index = self.total_retired
        self.fault = (status, port, index, address)
        self.pending = True
        self._complete(status, index)

    def _complete(self, status: Status, index: int) -> None:
        """Write the completion of the command ``index``."""
        completion = COMPLETION_OFFSET + index % self.slots * 4
        word = status | index % (1 << COMPLETION[1].width) << COMPLETION[1].low
        self.window[completion : completion + 4] = np.array([word], "<u4").view(np.uint8)

    def _progress(self) -> bool:
        """Execute a command if one is waiting; return whether one has retired."""
        if self.fault or self.doorbell == self.retired or self.executed == self.hang_at:
            return False
        index = self.total_retired
        start = RING_OFFSET + index % self.slots * RECORD_BYTES
        record = Record(self.window[start : start + RECORD_BYTES].view("<u4").tolist())
        self.log.append(record)
        self.executed += 1
        if self.cycles is not None:
            self.cycles = (self.cycles + 123) % (1 << 32)
        try:
            self.execute(record)
        except Fault as fault:
            self._stop(fault.status, fault.port, fault.address)
            return False
        self.total_retired += 1
        self.retired = self.total_retired % (1 << 16)
        self.pending = self.pending or bool(record.control["INTERRUPT"])
        self._complete(Status.OK, index)
        return True
