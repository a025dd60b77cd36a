"""A device with a planted fault, and faults for it. No tests here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitlane.links import BytesLike
from bitlane_rtl.abi import (
    BIT_OPS,
    COMPLETION_OFFSET,
    CONTROL_BASE,
    LOGIC_OPS,
    RECORD,
    Lane,
    Mode,
    Op,
    Status,
    register,
)
from support.host.model_link import Bytes, Fault, ModelLink
from support.record import Record
from support.rtl.records import reseal

FEW = frozenset({Op.COPY, Op.NOT, Op.XOR, Op.COUNT})
"""Operations of a device in a test of other checks than those of operations."""


@dataclass(kw_only=True)
class FaultyLink(ModelLink):
    """A device with a fault, which the given functions plant."""

    memory_bytes: int = 1 << 14
    meant: Callable[[int], int] = lambda address: address
    """Return the address that the memory sees."""
    sent: Callable[[int, BytesLike], BytesLike] = lambda address, data: data
    """Return the content that arrives of a write."""
    written: Callable[[Bytes, range], object] = lambda memory, where: None
    """Called with the memory and the addresses after each write."""
    got: Callable[[int, Bytes], object] = lambda address, data: None
    """Called with the address and the content of each read, which it may change."""
    before: Callable[[Record], Record] = lambda record: record
    """Return the record that is executed in place of a record."""
    after: Callable[[Record, Bytes], object] = lambda record, memory: None
    """Called with each record that was executed, and the memory."""
    lax: Callable[[Record, Fault, Bytes], Fault | None] = lambda record, fault, memory: fault
    """Return the fault that a refused record ends with, if any."""
    hung: Op | None = None
    """An operation that never ends."""

    def read(self, address: int, size: int) -> Bytes:
        data = super().read(self.meant(address), size)
        self.got(address, data)
        return data

    def write(self, address: int, data: BytesLike) -> None:
        super().write(self.meant(address), self.sent(address, data))
        self.written(self.memory, range(address, address + np.frombuffer(data, np.uint8).size))

    def execute(self, record: Record) -> None:
        record = self.before(record)
        try:
            super().execute(record)
        except Fault as fault:
            if (found := self.lax(record, fault, self.memory)) is not None:
                raise found from fault
        else:
            self.after(record, self.memory)

    def hangs(self, record: Record) -> bool:
        return record.op == self.hung


def stuck(memory: Bytes, where: range) -> None:
    memory[0x2345] |= 0x10


def coupled(memory: Bytes, where: range) -> None:
    """Clear a byte if 0xFF is written to another one."""
    if 0x1000 in where and memory[0x1000] == 0xFF:
        memory[0x3000] = 0


def two_lines(memory: Bytes, where: range) -> None:
    """Hold data lines 3 and 12 of a 16-bit memory at 1 in a block."""
    memory[0x2300:0x2380:2] |= 0x08
    memory[0x2301:0x2380:2] |= 0x10


def without_line_12(address: int) -> int:
    return address if address >= CONTROL_BASE else address & ~0x1000


def forgetful(address: int, data: BytesLike) -> BytesLike:
    """Lose a bit of a register."""
    if address == CONTROL_BASE + register("TIMEOUT").offset:
        return np.frombuffer(data, "<u4") & np.uint32(0x7FFF_FFFF)
    return data


def lossy(address: int, data: Bytes) -> None:
    """Let long reads end with zeros, as if the last frame were lost."""
    if data.size > 6000:
        data[-100:] = 0


def reticent(offset: int, mask: int) -> dict[str, Any]:
    """Return a fault: bits of a register are read as 0."""

    def got(address: int, data: Bytes) -> None:
        if address >= CONTROL_BASE:
            at = address - CONTROL_BASE + np.arange(0, data.size, 4)
            data.view("<u4")[np.minimum(at, COMPLETION_OFFSET) == offset] &= mask

    return {"got": got}


def blind(name: str) -> dict[str, Any]:
    """Return a fault: bit 30 of a word of records is read as 0."""

    def before(record: Record) -> Record:
        words = list(record.words)
        if record.uses(name) and record.word(name) >> 30 & 1:
            words[RECORD[name].word] ^= 1 << 30
            words[0] ^= 1 << 30  # The seal fits again.
        return Record(words)

    return {"before": before}


def sticky() -> dict[str, Any]:
    """Return a fault: the logic of the last command is repeated if no FENCE is in between."""
    last = Op.COUNT

    def before(record: Record) -> Record:
        nonlocal last
        op, last = last, Op(record.op) if record.op in BIT_OPS else Op.COUNT
        repeats = not record.control["FENCE"] and {op, last} <= LOGIC_OPS
        if not repeats or op.reads_b is not last.reads_b:
            return record
        return Record(reseal([record.words[0] ^ record.op ^ op, *record.words[1:]], record.used))

    return {"before": before}


def spoil(
    op: Op, name: str = "Y_BASE", offset: int = 0, mask: int = 1, *, sums: bool = False
) -> dict[str, Any]:
    """Return a fault of ``op``: the byte ``offset`` from where a record has ``name`` is wrong.

    With ``sums``, it is one of sums alone, and the circuit has all counts.
    """

    def after(record: Record, memory: Bytes) -> None:
        if record.op == op and (record.control["Y_MODE"] == Mode.SUM or not sums):
            memory[record.word(name) + offset] ^= mask

    counts = {each for each in BIT_OPS if each.counts} if sums else set[Op]()
    return {"after": after, "ops": frozenset(FEW | counts | {op} & BIT_OPS)}


def forget_full_counts(record: Record, memory: Bytes) -> None:
    """Replace counts of 64 in bytes by 0, as a counter of six bits does."""
    lanes = record.control["LANE"], record.control["OUT_LANE"]
    if record.op == Op.COUNT and lanes == (Lane.BITS_64, Lane.BITS_8):
        y = memory[record.word("Y_BASE") : record.word("Y_LAST") + 1]
        y[y == 64] = 0


def no_iteration(record: Record, fault: Fault, memory: Bytes) -> Fault | None:
    """Execute a loop of no iteration."""
    return fault if fault.status is not Status.BAD_SIZE or record.word("RUN") == 0 else None


def eager(record: Record, fault: Fault, memory: Bytes) -> Fault:
    """Execute a part of the command behind a refused one, too."""
    memory[(record.word("Y_BASE") + 64) % memory.size] ^= 1
    return fault
