"""Codes that circuit and driver share: operations, lanes, modes, states of commands. Plain data."""

from enum import IntEnum

__all__ = [
    "ABI_VERSION",
    "BEATS_PER_BLOCK",
    "IDENTITY",
    "LOGIC_OPS",
    "SHIFT_OPS",
    "WORD_BYTES",
    "Lane",
    "Mode",
    "Op",
    "Port",
    "Status",
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
