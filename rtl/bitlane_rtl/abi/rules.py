"""The rules between host, commands and memory, beyond single fields, as text. Plain data only.

Each sentence is a promise of the circuit or a duty of the host. The page on registers shows them.
"""

from dataclasses import dataclass

__all__ = ["RULES", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A topic and its text: paragraphs, with an empty line between them."""

    title: str
    text: str


RULES = (
    Rule(
        "Accesses to the control window",
        """
        An access is a whole aligned word. AXI4-Lite answers a write without all four strobes, and
        any access to an address that is not a multiple of 4, with SLVERR, and it has no effect;
        a write without any strobe has no effect and is answered OKAY.

        An address that is not mapped reads 0, ignores writes, and is answered OKAY. The same holds
        for reads of the ring and of write-only registers, and for writes to read-only registers.
        Bits that belong to no field read 0 and may be written with anything.

        Reads have no side effects.
        """,
    ),
    Rule(
        "Elements and runs",
        """
        An element of A and B has 1 << LANE bytes, and an element of Y 1 << OUT_LANE, also of logic,
        although its result does not depend on the lane. RUN counts elements. Bytes are in
        little-endian order, and addresses need no alignment except where MISALIGNED says so.
        """,
    ),
    Rule(
        "TEST and NEGATE",
        """
        COUNT_XOR with TEST gives 1 for elements of A and B that differ, and 0 for equal ones; with
        TEST and NEGATE it gives 1 for equal ones.

        With Y_MODE SUM an element of Y is the number of elements of A and B, of LANE each, whose
        test is 1.
        """,
    ),
    Rule(
        "Words in use",
        """
        A record without B uses 6 words, one with B 8; both use 12 + 4 (LOOPS - 1) if LOOPS is more
        than 1 or any of the three modes is STRIDED, B_MODE also in a record without B. REPEAT and
        SUM in one loop add none.

        The seal covers the words in use of every record, also of one that is refused. An operation
        that does not exist has no B; one that this circuit lacks has B if it needs one elsewhere.
        LOOPS 0 and 7 count as 1, and loops that this circuit lacks count, up to 6.
        """,
    ),
    Rule(
        "Elements one at a time",
        """
        A mode of A or B other than DENSE, and STRIDED or REPEAT of Y, take elements one at a time.
        B_MODE is checked in an operation without B, too. The circuit must then have been built with
        LANE, and an element of LANE must not be wider than a beat: not BITS_64 on a data width of
        32. LANE is checked also if Y_MODE is the only such mode; OUT_LANE is not checked.

        A command that breaks this is refused with BAD_LANE, even if the mode itself would be
        refused with BAD_CONTROL: a SUM of A or B, a REPEAT of Y.
        """,
    ),
    Rule(
        "Alignment",
        """
        A has to be aligned if A_MODE is not DENSE, B if B_MODE is not DENSE. Y has to be aligned in
        shifts and counts always, and in logic if any of the three modes is not DENSE.

        Of a stream that has to be aligned, BASE and each STRIDE and JUMP in use must be multiples
        of its element; STRIDE also where the stream's mode is not STRIDED. Of other streams, and of
        B in an operation without B, they may be any number.
        """,
    ),
    Rule(
        "Fields that do not matter",
        """
        SATURATE matters to shifts alone, and ARITHMETIC to SHIFT_RIGHT alone; other operations
        accept and ignore them.

        LAST has to lie in the memory. Except for B and Y of a SEARCH, it is not compared with BASE
        or the bytes that the stream touches: it may be below BASE. B_BASE and B_LAST are not
        checked in an operation without B.
        """,
    ),
    Rule(
        "SEARCH",
        """
        A is a database of RUN bytes, and B a batch of queries. Both consist of contiguous rows, at
        least one each, and may start at any byte. A, B and Y are one DENSE run each; LOOPS is 1,
        LANE BITS_8 and OUT_LANE BITS_32. RUN is the length of A; BASE and LAST give the lengths of
        B and Y.

        For each row of B, in order, Y has 1 << SEARCH.NEAREST_LOG2 entries of 8 bytes, the nearest
        first: the distance, then the number of the row of A. Of rows at equal distances, those with
        lower numbers are found, and come first. Entries without a row come last; both of their
        words are 0xFFFFFFFF.
        """,
    ),
    Rule(
        "Submitting commands",
        """
        The words in use may be written in any order, and one write to DOORBELL may submit several
        commands. A DOORBELL that exceeds RETIRED by more than the slots, or is behind the one
        before it, stops the engine with BAD_DOORBELL and PORT NONE. None of the commands that it
        would submit causes any bus traffic, and their records are not checked. INDEX is RETIRED.
        INTERRUPT.PENDING is set and the completion of slot RETIRED modulo the slots is written with
        BAD_DOORBELL, also if no command is pending. Commands that were submitted before stop as
        they do with TIMEOUT. DOORBELL reads as last written, even if that was after the fault.

        The words of a slot must not change from the doorbell until its command has retired. Before
        the doorbell they may be written at any time, also while other commands run. Words that a
        command does not use may hold anything.

        The seal detects any single wrong bit outside CONTROL. Of random changes, it does not detect
        1 in 256.
        """,
    ),
    Rule(
        "Order, hazards and FENCE",
        """
        Commands start and retire in order, and overlap: the reads of one begin while earlier ones
        still read and write. A command with FENCE starts when all earlier ones have retired, and so
        after all their write responses.

        Set FENCE on a command that reads or writes a byte that an earlier one writes, or writes a
        byte that an earlier one reads, unless the host has seen that one retire, or a command
        between them has FENCE. Otherwise the values of such bytes are undefined.

        A command may work in place. One step reads elements of A and B and writes the element of Y
        that is computed from them. No step may read a byte that an earlier step of the same command
        writes; it may read bytes that the step itself or a later one writes. So Y may be exactly A
        or B, with elements of one size. A byte that a command writes twice is undefined.
        """,
    ),
    Rule(
        "When a command fails",
        """
        The first failure stops the engine: FAULT, FAULT_ADDRESS and the command's completion report
        it, INTERRUPT.PENDING is set, and RETIRED stays at the command's index, as in FAULT.INDEX.
        Every command before it has retired with OK.

        STATUS.BUSY is 1 as long as DOORBELL differs from RETIRED, and BUSY_CYCLES counts on: so
        after a fault, and after BAD_DOORBELL even if no command was pending. A host that waits for
        BUSY to become 0 must look at STATUS.FAULT, too. Only CLEAR starts the engine again.

        A command that is refused, codes BAD_SEAL to PAST_MEMORY with PORT NONE, has caused no bus
        traffic, and nothing after it was started.

        After any other fault the command has written some of its bytes, all of them right, and
        reads may have been started for it and for later ones. Later commands have written nothing
        after READ_ERROR, but may have written some of their bytes, all of them right, after
        WRITE_ERROR, TIMEOUT and PAST_MEMORY.

        FAULT_ADDRESS is the address of a burst's first beat: with READ_ERROR and WRITE_ERROR of
        the burst that was answered with an error; with PAST_MEMORY and a PORT of the burst that
        would have left the memory; with TIMEOUT of the oldest burst on PORT that has not been
        answered to its end, whether the memory has taken its request or not.

        After a fault, no burst is started. Open bursts are completed by the rules of the bus: read
        data is accepted, and the rest of a write is sent without strobes.
        """,
    ),
    Rule(
        "Waits for the memory",
        """
        An answer is due from the request of a burst until its last beat, or its response. While
        one is due and TIMEOUT is N, not 0, the memory may take N + 1 cycles from one handshake on
        any of its ports to the next: a handshake in cycle N + 1 is in time, and without one until
        cycle N + 2 the command ends with TIMEOUT. A response may arrive in cycle N + 2.

        PORT is READ_A if an answer to A is due, else READ_B if one to B is, else WRITE.
        """,
    ),
    Rule(
        "CLEAR",
        """
        CLEAR takes effect when no bus transaction is open: STATUS.DRAINED. If the memory never
        answers, CLEAR never takes effect, and only a reset helps. Wait until FAULT and DOORBELL
        read 0, and write neither DOORBELL nor the ring before that.

        FAULT, DOORBELL, RETIRED and STATUS.BUSY are 0 then. INTERRUPT, both PENDING and ENABLE,
        TIMEOUT, the counters, the completions and the words in the ring stay as they were.
        """,
    ),
    Rule(
        "On the memory's bus",
        """
        Bursts are INCR, of whole beats, of 16 beats at most, and never cross a block of 16 beats;
        AxADDR is always a multiple of the beat. Strobes select the bytes of Y. A and B are read in
        whole beats, including bytes beside the operand; MEMORY_BASE and the end of the memory are
        multiples of the beat, so none of these bytes is outside.

        The first W of a burst is valid together with its AW, and neither waits for the other: W may
        be accepted before AW, and so the data of a burst before its address.

        Identifiers are constant, so responses arrive in order (AXI4 A5.3).
        """,
    ),
)
