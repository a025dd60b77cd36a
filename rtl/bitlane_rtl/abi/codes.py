"""Codes that circuit and driver share: operations, lanes, modes, status codes. Plain data."""

from enum import IntEnum
from typing import Self

__all__ = [
    "ABI_VERSION",
    "BEATS_PER_BLOCK",
    "BIT_OPS",
    "COUNT_OPS",
    "IDENTITY",
    "LOGIC_OPS",
    "SEARCH_ENTRY_BYTES",
    "SHIFT_OPS",
    "WORD_BYTES",
    "Code",
    "Lane",
    "Mode",
    "Op",
    "Port",
    "Status",
]

IDENTITY = 0x4249544C
"""First register of every bitlane device: ``BITL`` in ASCII, most significant byte first."""

ABI_VERSION = 4
"""Changes whenever a record, a register or a code changes its meaning."""

WORD_BYTES = 4

SEARCH_ENTRY_BYTES = 2 * WORD_BYTES
"""Bytes of a result of SEARCH: the words distance and number of a row."""

BEATS_PER_BLOCK = 16
"""Bursts never cross a block of this many beats, and so never the 4 KiB of AXI4 A3.4.1."""


class Code(IntEnum):
    """A number of the contract; ``summary`` is its meaning."""

    summary: str

    def __new__(cls, value: int, summary: str = "") -> Self:
        code = int.__new__(cls, value)
        code._value_ = value
        code.summary = " ".join(summary.split())
        return code


class Op(Code):
    """An operation. The search array executes SEARCH, the bit unit all others.

    Bit 2 of a logic operation negates its result. A count counts the ones in the result of the
    logic operation that has the same two low bits.
    """

    AND = 0, "A and B"
    OR = 1, "A or B"
    XOR = 2, "A exclusive-or B"
    COPY = 3, "A"
    NAND = 4, "not (A and B)"
    NOR = 5, "not (A or B)"
    XNOR = 6, "not (A exclusive-or B)"
    NOT = 7, "not A"
    SHIFT_LEFT = 8, "each element of A, shifted by the element of B; see SATURATE"
    SHIFT_RIGHT = 9, "the same to the right; see SATURATE and ARITHMETIC"
    SEARCH = (
        11,
        """for each row of B the nearest rows of A, by how many bits differ: as many as register
        SEARCH says, in 2 words each, the distance and the row's number in A, sorted by both;
        entries that no row fills are 0xFFFFFFFF""",
    )
    COUNT_AND = 12, "how many bits of each element of (A and B) are 1, as an element of OUT_LANE"
    COUNT_OR = 13, "the same of (A or B)"
    COUNT_XOR = 14, "the same of (A exclusive-or B)"
    COUNT = 15, "the same of A"

    @property
    def reads_b(self) -> bool:
        """Whether the operation has a second operand."""
        return self not in _UNARY

    @property
    def base(self) -> "Op":
        """The operation that computes the word before it is inverted or its ones are counted.

        It is one of `BASE_OPS`. Raises ``ValueError`` for a shift and for SEARCH.
        """
        base = _BASES.get(self, self)
        if base not in BASE_OPS:
            raise ValueError(f"{self.name} has no base; expected a logic operation or a count")
        return base

    @property
    def negates(self) -> bool:
        """Whether the result is the inverse of the result of its `base`."""
        return self in LOGIC_OPS and self.base is not self

    @property
    def splits_lanes(self) -> bool:
        """Whether the result depends on the lane width; logic does not."""
        return self in SHIFT_OPS or self.counts

    @property
    def counts(self) -> bool:
        """Whether the result is a number of ones, as an element of the output's own width."""
        return self in COUNT_OPS

    @property
    def counted(self) -> "Op":
        """The logic operation whose ones are counted. Raises ``ValueError`` unless it `counts`."""
        if not self.counts:
            raise ValueError(f"{self.name} counts nothing")
        return self.base


_UNARY = frozenset({Op.COPY, Op.NOT, Op.COUNT})

BASE_OPS = (Op.AND, Op.OR, Op.XOR, Op.COPY)
"""The operations that compute a word. All other logic operations and counts begin with one."""
_BASES = {
    Op.NAND: Op.AND,
    Op.NOR: Op.OR,
    Op.XNOR: Op.XOR,
    Op.NOT: Op.COPY,
    Op.COUNT_AND: Op.AND,
    Op.COUNT_OR: Op.OR,
    Op.COUNT_XOR: Op.XOR,
    Op.COUNT: Op.COPY,
}
LOGIC_OPS = frozenset({Op.AND, Op.OR, Op.XOR, Op.COPY, Op.NAND, Op.NOR, Op.XNOR, Op.NOT})
SHIFT_OPS = frozenset({Op.SHIFT_LEFT, Op.SHIFT_RIGHT})
COUNT_OPS = frozenset({Op.COUNT_AND, Op.COUNT_OR, Op.COUNT_XOR, Op.COUNT})
BIT_OPS = LOGIC_OPS | SHIFT_OPS | COUNT_OPS
"""The operations of the bit unit: all but SEARCH."""


class Lane(Code):
    """Width of a lane, as the logarithm to base 2 of its bytes."""

    BITS_8 = 0, "elements of 1 byte"
    BITS_16 = 1, "elements of 2 bytes"
    BITS_32 = 2, "elements of 4 bytes"
    BITS_64 = 3, "elements of 8 bytes"

    @property
    def bytes(self) -> int:
        return 1 << self

    @property
    def bits(self) -> int:
        return 8 << self


class Mode(Code):
    """The way a stream walks the elements of one run (its innermost loop)."""

    DENSE = 0, "each element behind the one before it; the run may start at any byte"
    STRIDED = (
        1,
        """one element at a time, `*_STRIDE` bytes from the one before it: gather on A and B,
        scatter on Y""",
    )
    REPEAT = 2, "A and B only: one element, read once a run and used for every element of Y"
    SUM = (
        3,
        """Y only, of counts: one element of 32 bits a run, the sum of its counts modulo 2**32,
        which depends on LANE only with TEST""",
    )


class Status(Code):
    """The end of a command. A refused command has the lowest of the codes that apply."""

    OK = 0, "executed; all of Y has been written and answered"
    BAD_SEAL = 1, "the bytes of the words in use do not XOR to RECORD_SEAL"
    BAD_OP = 2, "an operation that CAPABILITIES.OPS lacks"
    BAD_LANE = (
        3,
        """OUT_LANE is not LANE, or of a count neither BITS_8 nor BITS_32, or of a SUM of counts
        not BITS_32; of a SEARCH, LANE is not BITS_8 or OUT_LANE not BITS_32; a shift or count with
        a LANE that the circuit was built without; or elements one at a time with such a LANE, or
        wider than a beat: see Elements one at a time""",
    )
    BAD_CONTROL = (
        4,
        """a bit of CONTROL that belongs to no field, or RESERVED in use, is not 0; a mode that
        CAPABILITIES.MODES lacks; REPEAT for Y; SUM for A or B; TEST, or SUM for Y, of an operation
        that does not count; NEGATE without TEST; a B_MODE other than DENSE without B; LOOPS is 0 or
        above GEOMETRY.LOOPS; of a SEARCH, LOOPS is not 1 or a mode not DENSE""",
    )
    BAD_SIZE = (
        5,
        """RUN or a COUNT in use is 0; a COUNT in use is 2**GEOMETRY.COUNT_BITS or more; or RUN
        elements of the wider of LANE and OUT_LANE, of LANE for a SUM or a SEARCH, have
        2**GEOMETRY.LENGTH_BITS bytes or more. Of a SEARCH: RUN, or B from BASE to LAST, is not
        whole rows; B has no row, or more than SEARCH.QUERIES_LOG2 says; or Y is not what its rows
        give""",
    )
    MISALIGNED = (
        6,
        """BASE, or a STRIDE or JUMP in use, of a stream that has to be aligned is not a multiple
        of the stream's element: see Alignment. Or Y_BASE of a SEARCH is not a multiple of 8""",
    )
    PAST_MEMORY = (
        7,
        """BASE or LAST of a stream of the operation is outside MEMORY_BASE to MEMORY_LAST:
        refused, PORT is NONE. Or both are inside, but a stride or jump leads outside: stopped
        before the first burst that would leave the memory; PORT is the port of that burst""",
    )
    READ_ERROR = 8, "the memory answered a read with SLVERR or DECERR (AXI4 A3.4.4)"
    WRITE_ERROR = 9, "the memory answered a write with SLVERR or DECERR"
    TIMEOUT = (
        10,
        """no handshake on any memory port for longer than TIMEOUT allows while an answer was due:
        see Waits for the memory""",
    )
    BAD_DOORBELL = (
        11,
        """DOORBELL was written with a number that exceeds RETIRED by more than the slots, or that
        is behind the number before it: see Submitting commands""",
    )


class Port(Code):
    """The memory port of a fault."""

    READ_A = 0, "reads of A"
    READ_B = 1, "reads of B, even if they share A's port"
    WRITE = 2, "writes"
    NONE = 3, "no port: the command was refused, or the DOORBELL was"
