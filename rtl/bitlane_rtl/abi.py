"""The contract between circuit and driver: command record, registers, codes. Plain data only.

The circuit's layouts, the driver's packing and the register page of the documentation are all
derived from this module, so that they cannot drift. Nothing here may depend on another module.

Units: addresses and sizes in bytes unless a name says otherwise; a *word* is 32 bits.
"""

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "ABI_VERSION",
    "BEATS_PER_BLOCK",
    "COMPLETION_OFFSET",
    "CONTROL_BASE",
    "CONTROL_SIZE",
    "IDENTITY",
    "LOGIC_OPS",
    "MAX_LOOPS",
    "RECORD",
    "RECORD_BYTES",
    "RECORD_SEAL",
    "RECORD_WORDS",
    "REGISTERS",
    "RING_OFFSET",
    "SHIFT_OPS",
    "WORD_BYTES",
    "Access",
    "Bits",
    "Lane",
    "Mode",
    "Op",
    "Port",
    "RecordField",
    "Register",
    "Status",
    "loop_word",
    "record_words",
    "register",
]

IDENTITY = 0x4249544C
"""First register of every bitlane device: ``BITL`` in ASCII, most significant byte first."""

ABI_VERSION = 1
"""Changes whenever a record, a register or a code changes its meaning."""

WORD_BYTES = 4

BEATS_PER_BLOCK = 16
"""Bursts never cross a block of this many beats, and so never the 4 KiB of AXI4 A3.4.1."""


class Op(IntEnum):
    """What the bit unit computes. Bit 2 of a logic operation negates its result."""

    AND = 0
    OR = 1
    XOR = 2
    COPY = 3
    NAND = 4
    NOR = 5
    XNOR = 6
    NOT = 7
    SHIFT_LEFT = 8
    SHIFT_RIGHT = 9
    COUNT = 10

    @property
    def reads_b(self) -> bool:
        """Whether the operation has a second operand."""
        return self not in (Op.COPY, Op.NOT, Op.COUNT)

    @property
    def splits_lanes(self) -> bool:
        """Whether the result depends on the lane width; logic does not."""
        return self in (Op.SHIFT_LEFT, Op.SHIFT_RIGHT, Op.COUNT)


LOGIC_OPS = frozenset({Op.AND, Op.OR, Op.XOR, Op.COPY, Op.NAND, Op.NOR, Op.XNOR, Op.NOT})
SHIFT_OPS = frozenset({Op.SHIFT_LEFT, Op.SHIFT_RIGHT})


class Lane(IntEnum):
    """Width of a lane, as the logarithm to base 2 of its bytes."""

    BITS_8 = 0
    BITS_16 = 1
    BITS_32 = 2
    BITS_64 = 3

    @property
    def bytes(self) -> int:
        return 1 << self

    @property
    def bits(self) -> int:
        return 8 << self


class Mode(IntEnum):
    """How a stream walks the elements of one run (its innermost loop)."""

    DENSE = 0
    """Consecutive bytes; the run may start at any byte."""
    STRIDED = 1
    """One element at a time, ``*_STRIDE`` bytes apart: gather on A and B, scatter on Y."""
    REPEAT = 2
    """A and B only: one element, read once a run and repeated over it."""


class Status(IntEnum):
    """How a command ended. Codes below ``READ_ERROR`` refuse it before any bus traffic."""

    OK = 0
    BAD_SEAL = 1
    """The record's bytes do not XOR to ``RECORD_SEAL``."""
    BAD_OP = 2
    """An operation that does not exist, or that this circuit was built without."""
    BAD_LANE = 3
    """A lane that this circuit lacks, or an output lane that the operation cannot give."""
    BAD_CONTROL = 4
    """A reserved bit is set, or a mode or the number of loops is out of range."""
    BAD_SIZE = 5
    """A count of zero, or a run of more bytes than the circuit can count."""
    MISALIGNED = 6
    """An address or stride that is no multiple of the element where it has to be."""
    PAST_MEMORY = 7
    """A first or last address outside the device's memory."""
    READ_ERROR = 8
    """The memory answered a read with an error (AXI4 A3.4.4: SLVERR or DECERR)."""
    WRITE_ERROR = 9
    """The memory answered a write with an error."""
    TIMEOUT = 10
    """No handshake on any port for ``TIMEOUT`` cycles while an answer was due."""


class Port(IntEnum):
    """The memory port that a fault belongs to."""

    READ_A = 0
    READ_B = 1
    WRITE = 2
    NONE = 3


@dataclass(frozen=True, slots=True)
class Bits:
    """A field of a word: ``width`` bits from bit ``low``."""

    name: str
    low: int
    width: int
    summary: str = ""

    def extract(self, word: int) -> int:
        return (word >> self.low) & ((1 << self.width) - 1)

    def insert(self, value: int) -> int:
        """Place ``value`` in an otherwise empty word. Raises ``ValueError`` if it does not fit."""
        if not 0 <= value < 1 << self.width:
            raise ValueError(f"{self.name}: {value} is outside 0 to {(1 << self.width) - 1}")
        return value << self.low


# --- The command record ---------------------------------------------------------------------

MAX_LOOPS = 6
"""The most nested loops that a record has room for; a circuit may have fewer."""

RECORD_WORDS = 32
RECORD_BYTES = RECORD_WORDS * WORD_BYTES

RECORD_SEAL = 0xA5
"""What all bytes of the words that a command uses XOR to; the host sets ``CONTROL.SEAL`` so."""


@dataclass(frozen=True, slots=True)
class RecordField:
    """A word of the command record."""

    name: str
    word: int
    summary: str
    bits: tuple[Bits, ...] = ()


_CONTROL_BITS = (
    Bits("OP", 0, 4, "operation (`Op`)"),
    Bits("LANE", 4, 2, "lane of A and B (`Lane`)"),
    Bits("OUT_LANE", 6, 2, "lane of Y; equals LANE except for COUNT, which gives 8 or 32 bits"),
    Bits("A_MODE", 8, 2, "how A walks a run (`Mode`)"),
    Bits("B_MODE", 10, 2, "how B walks a run; DENSE if the operation has no B"),
    Bits("Y_MODE", 12, 2, "how Y walks a run; never REPEAT"),
    Bits("LOOPS", 14, 3, "nested loops in use, the run included: 1 to the circuit's loops"),
    Bits("SATURATE", 17, 1, "shift counts of the lane width or more give the fill; else they wrap"),
    Bits("ARITHMETIC", 18, 1, "SHIFT_RIGHT fills with the sign bit; else with 0"),
    Bits("FENCE", 19, 1, "start only once every earlier command has retired"),
    Bits("INTERRUPT", 20, 1, "raise the interrupt when this command retires"),
    Bits("SEAL", 24, 8, "makes the bytes of the words in use XOR to RECORD_SEAL"),
)


def loop_word(loop: int) -> int:
    """First of the four words of nested loop ``loop``, 1 to ``MAX_LOOPS - 1`` (0 is the run)."""
    if not 1 <= loop < MAX_LOOPS:
        raise ValueError(f"loop {loop} is outside 1 to {MAX_LOOPS - 1}")
    return 12 + 4 * (loop - 1)


def _record() -> dict[str, RecordField]:
    fields = [
        RecordField("CONTROL", 0, "what to do", _CONTROL_BITS),
        RecordField("RUN", 1, "elements in a run, the innermost loop; at least 1"),
        RecordField("A_BASE", 2, "address of A's first element"),
        RecordField("A_LAST", 3, "highest address of a byte that A touches"),
        RecordField("Y_BASE", 4, "address of Y's first element"),
        RecordField("Y_LAST", 5, "highest address of a byte that Y touches"),
        RecordField("B_BASE", 6, "address of B's first element; 0 without B"),
        RecordField("B_LAST", 7, "highest address of a byte that B touches; 0 without B"),
        RecordField("A_STRIDE", 8, "bytes from an element of A to the next in a run, if STRIDED"),
        RecordField("Y_STRIDE", 9, "the same for Y"),
        RecordField("B_STRIDE", 10, "the same for B"),
        RecordField("RESERVED", 11, "0"),
    ]
    for loop in range(1, MAX_LOOPS):
        word = loop_word(loop)
        fields += [
            RecordField(f"COUNT_{loop}", word, f"iterations of loop {loop}; at least 1"),
            RecordField(
                f"A_JUMP_{loop}",
                word + 1,
                f"bytes from the last address of A that loop {loop - 1} generates to the first"
                f" of the next iteration of loop {loop}",
            ),
            RecordField(f"Y_JUMP_{loop}", word + 2, "the same for Y"),
            RecordField(f"B_JUMP_{loop}", word + 3, "the same for B"),
        ]
    return {field.name: field for field in fields}


RECORD = _record()
"""The words of a command record by name, in order. Strides and jumps are signed, modulo 2**32.

A stream's addresses: a DENSE or REPEAT stream generates one address a run, its start; a STRIDED
one generates ``RUN`` addresses a run, ``STRIDE`` apart. When loop ``k`` advances, all loops inside
it have just finished, and ``JUMP_k`` is added to the last address generated. With byte steps
``step_k`` of loop ``k`` this is

    JUMP_k = step_k - sum(step_i * (count_i - 1) for i < k)

where the run (``i = 0``) takes part only if the stream is STRIDED.
"""


def record_words(op: Op, loops: int, modes: tuple[Mode, Mode, Mode]) -> int:
    """How many leading words of a record a command uses: the circuit reads and seals only these.

    6 for a dense command without B, 8 for a dense one with B, else up to its last loop. Of an
    operation that does not exist the circuit reads as many as of one without B.
    """
    if loops > 1 or Mode.STRIDED in modes:
        return 12 + 4 * (loops - 1)
    return 8 if op.reads_b else 6


# --- Registers ------------------------------------------------------------------------------

CONTROL_BASE = 0xFFFF_0000
"""Where a link shows the control window; the device's memory starts at its own base below it."""

CONTROL_SIZE = 0x4000
COMPLETION_OFFSET = 0x1000
"""One word a ring slot: ``Status`` in bits 7:0, the command's index modulo 2**16 above it."""

RING_OFFSET = 0x2000
"""Slot ``i`` of the command ring starts ``i * RECORD_BYTES`` bytes further. Write-only."""


class Access(IntEnum):
    READ = 0
    READ_WRITE = 1
    WRITE = 2


@dataclass(frozen=True, slots=True)
class Register:
    """A 32-bit register. Reading one has no side effects."""

    name: str
    offset: int
    access: Access
    summary: str
    bits: tuple[Bits, ...] = ()

    def __getitem__(self, name: str) -> Bits:
        """The field called ``name``. Raises ``KeyError`` if there is none."""
        for bits in self.bits:
            if bits.name == name:
                return bits
        raise KeyError(f"register {self.name} has no field {name}")


_R, _RW, _W = Access.READ, Access.READ_WRITE, Access.WRITE

REGISTERS = (
    Register("IDENTITY", 0x00, _R, "`IDENTITY`: the letters BITL"),
    Register("VERSION", 0x04, _R, "`ABI_VERSION`"),
    Register(
        "CAPABILITIES",
        0x08,
        _R,
        "what the circuit was built with",
        (
            Bits("OPS", 0, 16, "bit `op` is 1 if the operation exists"),
            Bits("LANES", 16, 4, "bit `lane` is 1 if shifts and counts have that lane"),
            Bits("MODES", 20, 3, "bit `mode` is 1 if runs can be walked that way"),
            Bits("READ_PORTS", 24, 2, "read ports to memory, 1 or 2"),
            Bits("COUNTERS", 26, 1, "1 if the counters exist; else they read 0"),
        ),
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
            Bits("LENGTH_BITS", 16, 6, "a run has fewer than 2**LENGTH_BITS bytes on A, B and Y"),
            Bits("COUNT_BITS", 24, 6, "COUNT_k is less than 2**COUNT_BITS"),
        ),
    ),
    Register("MEMORY_BASE", 0x10, _R, "first byte that commands may touch"),
    Register("MEMORY_LAST", 0x14, _R, "last byte that commands may touch"),
    Register(
        "STATUS",
        0x18,
        _R,
        "state of the engine",
        (
            Bits("BUSY", 0, 1, "a command has been submitted and not retired"),
            Bits("FAULT", 1, 1, "the engine has stopped; see FAULT"),
            Bits("DRAINED", 2, 1, "no bus transaction is open; CLEAR takes effect at once"),
        ),
    ),
    Register(
        "DOORBELL",
        0x1C,
        _RW,
        "commands submitted since reset or CLEAR, modulo 2**16; writing it starts them",
        (Bits("COUNT", 0, 16, "may exceed RETIRED by at most the slots of the ring"),),
    ),
    Register(
        "RETIRED",
        0x20,
        _R,
        "commands retired with OK since reset or CLEAR, modulo 2**16",
        (Bits("COUNT", 0, 16, ""),),
    ),
    Register(
        "FAULT",
        0x24,
        _R,
        "why the engine stopped; 0 while it has not",
        (
            Bits("CODE", 0, 8, "`Status`"),
            Bits("PORT", 8, 2, "`Port`"),
            Bits("INDEX", 16, 16, "index of the command: commands before it since reset or CLEAR"),
        ),
    ),
    Register("FAULT_ADDRESS", 0x28, _R, "address of the beat or burst that failed; 0 if none"),
    Register(
        "CLEAR",
        0x2C,
        _W,
        "writing 1 drops every command that has not retired and, once the bus is drained, makes"
        " the engine start afresh: FAULT, DOORBELL and RETIRED become 0",
        (Bits("CLEAR", 0, 1, ""),),
    ),
    Register("TIMEOUT", 0x30, _RW, "longest wait for the memory in cycles; 0: no limit"),
    Register(
        "INTERRUPT",
        0x34,
        _RW,
        "the interrupt line is PENDING and ENABLE",
        (
            Bits("ENABLE", 0, 1, ""),
            Bits("PENDING", 1, 1, "set by a fault or a command with INTERRUPT; writing 1 clears"),
        ),
    ),
    Register(
        "COUNTERS_CLEAR",
        0x3C,
        _W,
        "writing 1 sets all counters to 0",
        (Bits("CLEAR", 0, 1, ""),),
    ),
    Register("BUSY_CYCLES", 0x40, _R, "cycles with STATUS.BUSY"),
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
