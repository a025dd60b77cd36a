"""The command record: what the host writes into a slot of the ring. Plain data only."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class RecordField:
    """A word of the command record."""

    name: str
    word: int
    summary: str
    bits: tuple[Bits, ...] = ()


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
        RecordField("CONTROL", 0, "what to do", _CONTROL_BITS),
        RecordField("RUN", 1, "elements in a run, the innermost loop; at least 1"),
        RecordField("A_BASE", 2, "address of A's first element"),
        RecordField("A_LAST", 3, "highest address of a byte that A touches"),
        RecordField("Y_BASE", 4, "address of Y's first element"),
        RecordField("Y_LAST", 5, "highest address of a byte that Y touches"),
        RecordField("B_BASE", 6, "address of B's first element; 0 without B"),
        RecordField("B_LAST", 7, "highest address of a byte that B touches; 0 without B"),
        RecordField(
            "A_STRIDE", 8, "bytes from an element of A to the next in a run, if STRIDED; else 0"
        ),
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
