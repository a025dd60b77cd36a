"""The command record: what the host writes into a slot of the ring. Plain data only."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from .bits import Bits
from .codes import WORD_BYTES, Lane, Mode, Op

__all__ = [
    "MAX_LOOPS",
    "RECORD",
    "RECORD_BYTES",
    "RECORD_SEAL",
    "RECORD_WORDS",
    "STREAMS",
    "RecordField",
    "WordKind",
    "loop_word",
    "record_words",
    "seal",
]

STREAMS = ("A", "Y", "B")
"""The streams of a command, in the order of their words in a record."""

MAX_LOOPS = 6
"""The most nested loops that a record has room for; a circuit may have fewer."""

RECORD_WORDS = 32
RECORD_BYTES = RECORD_WORDS * WORD_BYTES

RECORD_SEAL = 0xA5
"""The XOR of all bytes of the words that a command uses; the host sets ``CONTROL.SEAL`` for it."""


class WordKind(Enum):
    """The kind of a word of the record, whatever its stream and its loop."""

    CONTROL = "CONTROL"
    RUN = "RUN"
    BASE = "BASE"
    LAST = "LAST"
    STRIDE = "STRIDE"
    RESERVED = "RESERVED"
    COUNT = "COUNT"
    JUMP = "JUMP"


@dataclass(frozen=True, slots=True)
class RecordField:
    """A word of the command record.

    ``stream``: the one of `STREAMS` that it belongs to, or empty. ``loop``: the number of its loop,
    from 1 on, or 0.
    """

    kind: WordKind
    word: int
    summary: str
    stream: str = ""
    loop: int = 0
    bits: tuple[Bits, ...] = ()

    @property
    def name(self) -> str:
        """Its name: stream, kind and loop, as in ``A_JUMP_1``."""
        parts = (self.stream, self.kind.value, str(self.loop or ""))
        return "_".join(part for part in parts if part)


_CONTROL_BITS = (
    Bits("OP", 0, 4, "operation (`Op`)", Op),
    Bits("LANE", 4, 2, "lane of A and B (`Lane`)", Lane),
    Bits(
        "OUT_LANE",
        6,
        2,
        "lane of Y; LANE but for counts (8 or 32 bits, a SUM 32), SEARCH (32)",
        Lane,
    ),
    Bits("A_MODE", 8, 2, "how A walks a run (`Mode`); never SUM", Mode),
    Bits(
        "B_MODE", 10, 2, "how B walks a run; never SUM, and DENSE if the operation has no B", Mode
    ),
    Bits("Y_MODE", 12, 2, "how Y walks a run; never REPEAT", Mode),
    Bits("LOOPS", 14, 3, "nested loops in use, the run included: 1 to the circuit's loops"),
    Bits("SATURATE", 17, 1, "shift counts of the lane width or more give the fill; else they wrap"),
    Bits("ARITHMETIC", 18, 1, "SHIFT_RIGHT fills with the sign bit; else with 0"),
    Bits("FENCE", 19, 1, "start only once every earlier command has retired"),
    Bits("INTERRUPT", 20, 1, "raise the interrupt when this command retires"),
    Bits("TEST", 21, 1, "counts only: a count becomes 1 if it is not 0; see TEST and NEGATE"),
    Bits("NEGATE", 22, 1, "TEST only: a count becomes 1 if it is 0, and 0 if it is not"),
    Bits("SEAL", 24, 8, "makes the bytes of the words in use XOR to RECORD_SEAL"),
)


def loop_word(loop: int) -> int:
    """Return the first of the four words of loop ``loop``, 1 to ``MAX_LOOPS - 1``.

    Loop 0 is the run, which has no such words. Raises ``ValueError`` for any other number.
    """
    if not 1 <= loop < MAX_LOOPS:
        raise ValueError(f"loop {loop} is outside 1 to {MAX_LOOPS - 1}")
    return 12 + 4 * (loop - 1)


def _record() -> dict[str, RecordField]:
    fields = [
        RecordField(WordKind.CONTROL, 0, "what to do", bits=_CONTROL_BITS),
        RecordField(WordKind.RUN, 1, "elements in a run, the innermost loop; at least 1"),
        RecordField(WordKind.BASE, 2, "address of A's first element", "A"),
        RecordField(WordKind.LAST, 3, "highest address of a byte that A touches", "A"),
        RecordField(WordKind.BASE, 4, "address of Y's first element", "Y"),
        RecordField(WordKind.LAST, 5, "highest address of a byte that Y touches", "Y"),
        RecordField(WordKind.BASE, 6, "address of B's first element; 0 without B", "B"),
        RecordField(WordKind.LAST, 7, "highest address of a byte that B touches; 0 without B", "B"),
        RecordField(
            WordKind.STRIDE,
            8,
            "bytes from an element of A to the next in a run, if STRIDED; else 0",
            "A",
        ),
        RecordField(WordKind.STRIDE, 9, "the same for Y", "Y"),
        RecordField(WordKind.STRIDE, 10, "the same for B", "B"),
        RecordField(WordKind.RESERVED, 11, "0"),
    ]
    for loop in range(1, MAX_LOOPS):
        word = loop_word(loop)
        jump = (
            f"bytes from the last address of A that loop {loop - 1} generates to the first"
            f" of the next iteration of loop {loop}"
        )
        fields += [
            RecordField(WordKind.COUNT, word, f"iterations of loop {loop}; at least 1", loop=loop),
            RecordField(WordKind.JUMP, word + 1, jump, "A", loop),
            RecordField(WordKind.JUMP, word + 2, "the same for Y", "Y", loop),
            RecordField(WordKind.JUMP, word + 3, "the same for B", "B", loop),
        ]
    return {field.name: field for field in fields}


RECORD = _record()
"""The words of a command record by name, in order. Strides and jumps are signed, modulo 2**32.

A stream's addresses: a DENSE, REPEAT or SUM stream generates one address a run, its start; a
STRIDED one generates ``RUN`` addresses a run, ``STRIDE`` apart. When loop ``k`` advances, all loops
inside it have just finished, and ``JUMP_k`` is added to the last address generated. With byte steps
``step_k`` of loop ``k`` this is

    JUMP_k = step_k - sum(step_i * (count_i - 1) for i < k)

where the run (``i = 0``) takes part only if the stream is STRIDED.
"""


_SEAL = next(bits for bits in _CONTROL_BITS if bits.name == "SEAL")
_READS_B = frozenset(op for op in Op if op.reads_b)


def record_words(op: int, loops: int, modes: tuple[int, int, int]) -> int:
    """Return the number of leading words of a record that a command uses.

    The circuit reads and seals only these words: 6 for a dense command without B, 8 for a dense one
    with B, else all up to its last loop, even if the circuit lacks that loop. The result is defined
    for any fields of CONTROL: an operation that does not exist has no B, and numbers of loops that
    no record has room for, 0 and 7, count as 1.
    """
    if not 1 <= loops <= MAX_LOOPS:
        loops = 1
    if loops > 1 or Mode.STRIDED in modes:
        return 12 + 4 * (loops - 1)
    return 8 if op in _READS_B else 6


def seal(words: Sequence[int]) -> int:
    """Return the word CONTROL of a record with the right SEAL.

    ``words`` are the words in use. The first one is CONTROL; its SEAL is ignored.
    """
    control = words[0] & (1 << _SEAL.low) - 1
    total = control
    for word in words[1:]:
        total ^= word
    total ^= total >> 16
    total ^= total >> 8
    return control | _SEAL.insert((total ^ RECORD_SEAL) & 0xFF)
