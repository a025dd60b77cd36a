"""What holds between host, commands and memory, beyond single fields: text. Plain data only.

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
        any access to an address that is no multiple of 4, with SLVERR, and it has no effect; a
        write without any strobe asks for nothing and is answered OKAY.

        What is not mapped reads 0 and ignores writes, and is answered OKAY. So does the ring when
        it is read, a write-only register when it is read, and a read-only one when it is written.
        Bits that belong to no field read 0 and may be written with anything.

        Reading never changes anything.
        """,
    ),
    Rule(
        "Elements and runs",
        """
        An element of A and B has 1 << LANE bytes, one of Y 1 << OUT_LANE; for logic, too, whose
        result does not depend on it. RUN counts elements. Bytes are in little-endian order, and
        addresses need no alignment but what MISALIGNED says.

        A run is the innermost loop. A DENSE run reads or writes consecutive bytes; a STRIDED one
        an element at a time, `*_STRIDE` bytes apart; a REPEAT one reads one element, once, and
        uses it for the whole run. The loops outside move the start of the run.

        With Y_MODE SUM a run has RUN elements of A and B, and one of Y: the sum of their counts.
        """,
    ),
    Rule(
        "SEARCH",
        """
        A is a database of RUN bytes, B a batch of queries: rows, one behind the other, from any
        byte on. Each is one DENSE run, as is Y; LOOPS is 1, LANE BITS_8 and OUT_LANE BITS_32. RUN
        is A's; how much there is of B and Y, BASE and LAST say.

        Y has for each row of B, in their order, 1 << SEARCH.NEAREST_LOG2 entries of 8 bytes:
        distance, then number, the nearest first. Of rows of A at one distance the first ones are
        found, and stand in their order. Entries that no row fills are 0xFFFFFFFF twice, and last.
        """,
    ),
    Rule(
        "Submitting commands",
        """
        Commands are counted from 0 since reset or CLEAR; command i uses slot i modulo the slots.
        Write the words in use, in any order, then a DOORBELL above i; one doorbell may submit
        several. DOORBELL may exceed RETIRED by at most the slots, and stays or grows.

        Any other DOORBELL stops the engine with BAD_DOORBELL and PORT NONE. None of the commands
        that it would submit causes any bus traffic, and their records are not looked at. INDEX is
        RETIRED. Commands that were submitted before and have not retired are stopped, too, and
        may have written some of their bytes, all of them right. DOORBELL reads as it was written.

        The words of a slot must not change from the doorbell until its command has retired. Before
        it they may be written at any time, while other commands run, too: the circuit reads ahead,
        and again whatever was read before the last write.

        Words that a command does not use are not read and may hold anything.

        The seal finds any one wrong bit outside CONTROL, and lets 1 in 256 random damages pass.
        """,
    ),
    Rule(
        "Order, hazards and FENCE",
        """
        Commands start and retire in order, and overlap: the reads of one begin while earlier ones
        still read and write. A command with FENCE starts when all earlier ones have retired, and
        so have their write responses.

        Set FENCE on a command that reads or writes a byte that an earlier one writes, or writes a
        byte that an earlier one reads, unless that one is known to have retired or another FENCE
        stands between. Without it nothing is promised of such bytes.

        In place: a step is an element of Y and those of A and B that it is made of. No step may
        read a byte that an earlier step of the same command writes; it may read what itself or a
        later one writes. So Y may be A or B exactly, with elements of one size. What a byte holds
        that a command writes twice is undefined.
        """,
    ),
    Rule(
        "When a command fails",
        """
        The first failure stops the engine: FAULT, FAULT_ADDRESS and the command's completion tell
        it, INTERRUPT.PENDING is set, and RETIRED stays at the command's index, as in FAULT.INDEX.
        Every command before it has retired with OK.

        A command that is refused, codes BAD_SEAL to PAST_MEMORY with PORT NONE, has caused no bus
        traffic, and nothing after it was started.

        After any other fault the command has written some of its bytes, all of them right, and
        reads may have been started for it and for later ones. Later commands have written nothing
        after READ_ERROR, but may have written some of their bytes, all of them right, after
        WRITE_ERROR, TIMEOUT and PAST_MEMORY.

        Nothing new is started on the bus then. Bursts that are open end legally: reads are taken,
        the rest of a write goes out without strobes.
        """,
    ),
    Rule(
        "CLEAR",
        """
        CLEAR takes effect when no bus transaction is open: STATUS.DRAINED. With a memory that
        never answers it waits for ever, and only reset helps. Wait until FAULT and DOORBELL read
        0, and write neither DOORBELL nor the ring before that.

        FAULT, DOORBELL, RETIRED and STATUS.BUSY are 0 then, and the next command is number 0 in
        slot 0. INTERRUPT, both PENDING and ENABLE, TIMEOUT, the counters, the completions and the
        words in the ring stay as they were.
        """,
    ),
    Rule(
        "On the memory's bus",
        """
        Bursts are INCR, of whole beats, of 16 beats at most, and never cross a block of 16 beats;
        AxADDR is always a multiple of the beat. Y's bytes are chosen by strobes. Of A and B whole
        beats are read, with the bytes beside the operand; MEMORY_BASE and the end of the memory
        are multiples of the beat, so none of them lies outside.

        A burst's first W comes with its AW, and neither waits for the other: W may be taken before
        AW, and the data of a burst before its address.

        Identifiers are constant, so responses come back in order (AXI4 A5.3).
        """,
    ),
)
