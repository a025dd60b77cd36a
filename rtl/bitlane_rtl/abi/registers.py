"""The control window and its registers. Plain data only."""

from dataclasses import dataclass
from enum import IntEnum

from .bits import Bits
from .codes import ABI_VERSION, IDENTITY, Port, Status

__all__ = [
    "COMPLETION",
    "COMPLETION_OFFSET",
    "CONTROL_BASE",
    "CONTROL_SIZE",
    "REGISTERS",
    "RING_OFFSET",
    "Access",
    "Register",
    "register",
]

CONTROL_BASE = 0xFFFF_0000
"""Address of the control window on a link; the device's memory starts at its own base below it."""

CONTROL_SIZE = 0x4000
COMPLETION_OFFSET = 0x1000
"""Offset of the completions: one read-only word for each ring slot, see `COMPLETION`."""

COMPLETION = (
    Bits("CODE", 0, 8, "`Status` of the command that used the slot last", Status),
    Bits("INDEX", 8, 16, "its index: commands before it since reset or CLEAR, modulo 2**16"),
)
"""Fields of a completion. A slot that no command has used since power-up reads 0."""

RING_OFFSET = 0x2000
"""Offset of the command ring, which is write-only: slot ``i`` starts ``i * RECORD_BYTES`` later."""


class Access(IntEnum):
    READ = 0
    READ_WRITE = 1
    WRITE = 2


@dataclass(frozen=True, slots=True)
class Register:
    """A 32-bit register. Reading one has no side effects.

    ``reset``: its value after reset; None if it depends on the configuration.
    """

    name: str
    offset: int
    access: Access
    summary: str
    bits: tuple[Bits, ...] = ()
    reset: int | None = 0

    def __getitem__(self, name: str) -> Bits:
        """The field called ``name``. Raises ``KeyError`` if there is none."""
        for bits in self.bits:
            if bits.name == name:
                return bits
        raise KeyError(f"register {self.name} has no field {name}")


_R, _RW, _W = Access.READ, Access.READ_WRITE, Access.WRITE

REGISTERS = (
    Register("IDENTITY", 0x00, _R, "the letters BITL", reset=IDENTITY),
    Register("VERSION", 0x04, _R, "the version of this contract", reset=ABI_VERSION),
    Register(
        "CAPABILITIES",
        0x08,
        _R,
        "what the circuit was built with",
        (
            Bits("OPS", 0, 16, "bit `op` is 1 if the operation exists"),
            Bits("LANES", 16, 4, "bit `lane` is 1 if shifts and counts have that lane"),
            Bits("MODES", 20, 4, "bit `mode` is 1 if runs can be walked that way"),
            Bits("READ_PORTS", 24, 2, "read ports to memory, 1 or 2"),
            Bits("COUNTERS", 26, 1, "1 if the counters exist; else they read 0"),
        ),
        None,
    ),
    Register(
        "GEOMETRY",
        0x0C,
        _R,
        "the sizes that the circuit was built with",
        (
            Bits("DATA_BYTES_LOG2", 0, 4, "log2 of the bytes in a beat"),
            Bits("LOOPS", 4, 4, "most nested loops of a command, the run included"),
            Bits("SLOTS_LOG2", 8, 4, "log2 of the slots in the command ring"),
            Bits("ROWS_LOG2", 12, 4, "log2 of the bytes of a row of all banks; 0: no rows"),
            Bits("LENGTH_BITS", 16, 6, "a run has fewer than 2**LENGTH_BITS bytes on A, B and Y"),
            Bits("WORD_BYTES_LOG2", 22, 2, "log2 of the bytes in a word of memory with rows"),
            Bits("COUNT_BITS", 24, 6, "COUNT_k is less than 2**COUNT_BITS"),
            Bits("BANKS_LOG2", 30, 2, "log2 of its banks, to which blocks of 16 beats go in turn"),
        ),
        None,
    ),
    Register("MEMORY_BASE", 0x10, _R, "first byte that commands may touch", reset=None),
    Register("MEMORY_LAST", 0x14, _R, "last byte that commands may touch", reset=None),
    Register(
        "STATUS",
        0x18,
        _R,
        "state of the engine",
        (
            Bits(
                "BUSY",
                0,
                1,
                "DOORBELL differs from RETIRED: a command is pending, or the engine has stopped",
            ),
            Bits("FAULT", 1, 1, "the engine has stopped; see FAULT"),
            Bits("DRAINED", 2, 1, "no bus transaction is open; CLEAR takes effect at once"),
        ),
        0b100,
    ),
    Register(
        "DOORBELL",
        0x1C,
        _RW,
        "commands submitted since reset or CLEAR, modulo 2**16; writing it starts them",
        (
            Bits(
                "COUNT",
                0,
                16,
                "may exceed RETIRED by at most the slots of the ring, and never goes back; else"
                " BAD_DOORBELL",
            ),
        ),
    ),
    Register(
        "RETIRED",
        0x20,
        _R,
        "commands retired with OK since reset or CLEAR, modulo 2**16",
        (Bits("COUNT", 0, 16, "index of the next command to retire, or of the one that failed"),),
    ),
    Register(
        "FAULT",
        0x24,
        _R,
        "why the engine stopped; 0 while it has not",
        (
            Bits("CODE", 0, 8, "`Status`", Status),
            Bits("PORT", 8, 2, "`Port`", Port),
            Bits("INDEX", 16, 16, "index of the command: commands before it since reset or CLEAR"),
        ),
    ),
    Register(
        "FAULT_ADDRESS",
        0x28,
        _R,
        "address of the first beat of the burst that failed; 0 if no burst did",
    ),
    Register(
        "CLEAR",
        0x2C,
        _W,
        "writing 1 drops every command that has not retired and, once the bus is drained, makes"
        " the engine start afresh: FAULT, DOORBELL and RETIRED become 0",
        (Bits("CLEAR", 0, 1, ""),),
    ),
    Register(
        "TIMEOUT",
        0x30,
        _RW,
        "longest wait for the memory in cycles, see Waits for the memory; 0: no limit",
        reset=1 << 20,
    ),
    Register(
        "INTERRUPT",
        0x34,
        _RW,
        "the interrupt line is PENDING and ENABLE",
        (
            Bits("ENABLE", 0, 1, "PENDING raises the interrupt line"),
            Bits(
                "PENDING",
                1,
                1,
                "set by a fault or a command with INTERRUPT; writing 1 clears",
                clears=True,
            ),
        ),
    ),
    Register(
        "SEARCH",
        0x38,
        _R,
        "the search array that the circuit was built with; 0 without one",
        (
            Bits("UNITS", 0, 16, "rows of A that are compared at a time"),
            Bits("ROW_BYTES_LOG2", 16, 4, "log2 of the bytes in a row of A and B"),
            Bits("QUERIES_LOG2", 20, 4, "log2 of the most rows that B can have"),
            Bits("NEAREST_LOG2", 24, 4, "log2 of the rows of A that are found for each of B"),
        ),
        None,
    ),
    Register(
        "COUNTERS_CLEAR",
        0x3C,
        _W,
        "writing 1 sets all counters to 0",
        (Bits("CLEAR", 0, 1, ""),),
    ),
    Register("BUSY_CYCLES", 0x40, _R, "cycles with STATUS.BUSY, also of a stopped engine"),
    Register("A_BEATS", 0x44, _R, "beats that read port A delivered"),
    Register("A_STALLS", 0x48, _R, "cycles in which A had reads open and no beat came"),
    Register("B_BEATS", 0x4C, _R, "the same for B"),
    Register("B_STALLS", 0x50, _R, "the same for B"),
    Register("Y_BEATS", 0x54, _R, "beats written"),
    Register("Y_STALLS", 0x58, _R, "cycles in which a beat waited for the write port"),
)

_BY_NAME = {entry.name: entry for entry in REGISTERS}


def register(name: str) -> Register:
    """The register called ``name``. Raises ``KeyError`` if there is none."""
    return _BY_NAME[name]
