"""Records for steps that look at what a circuit refuses: one that it takes, and changes of it."""

from dataclasses import replace
from typing import Final

from bitlane_rtl.abi import BIT_OPS, RECORD, Bits, Lane, seal

from ..driver.commands import Command, Walk
from ..driver.queue import Words
from .session import Session

ELEMENTS: Final = 5
"""What a job has of them."""

SLOT: Final = 64
"""Bytes from one tensor of a job to the next."""

CONTROL: Final[dict[str, Bits]] = {bits.name: bits for bits in RECORD["CONTROL"].bits}


def plain_job(session: Session, address: int, slot: int) -> Command:
    """A job that every circuit can do: its first operation, dense, from slots 0 and 1."""
    has = session.geometry
    op = min(BIT_OPS & has.ops, key=lambda op: (op.splits_lanes, op))
    lane = min(has.lanes) if op.splits_lanes else Lane.BITS_8
    out = Lane.BITS_8 if op.counts else lane

    def walk(number: int, width: Lane) -> Walk:
        base = address + number * SLOT
        return Walk(base, base + ELEMENTS * width.bytes - 1)

    b = walk(1, lane) if op.reads_b else None
    return Command(op, lane, out, ELEMENTS, walk(0, lane), b, walk(slot, out), fence=True)


def looped(command: Command, counts: tuple[int, ...]) -> Command:
    """The same with loops outside that stay where they are."""
    jumps = (0,) * len(counts)
    return replace(
        command,
        counts=counts,
        a=replace(command.a, jumps=jumps),
        b=None if command.b is None else replace(command.b, jumps=jumps),
        y=replace(command.y, jumps=jumps),
    )


def with_word(words: Words, name: str, value: int) -> Words:
    """The same, sealed, with another ``value`` in the word ``name``."""
    changed = words.copy()
    changed[RECORD[name].word] = value % (1 << 32)
    return sealed(changed)


def with_bits(words: Words, name: str, bits: int) -> Words:
    """The same, sealed, with ``bits`` of the word ``name`` the other way round."""
    return with_word(words, name, int(words[RECORD[name].word]) ^ bits)


def with_field(words: Words, name: str, value: int) -> Words:
    """The same, sealed, with another ``value`` in the field ``name`` of CONTROL."""
    bits = CONTROL[name]
    rest = int(words[0]) & ~bits.insert((1 << bits.width) - 1)
    return with_word(words, "CONTROL", rest | bits.insert(value))


def sealed(words: Words) -> Words:
    """Return a copy of ``words`` with the right seal."""
    changed = words.copy()
    changed[0] = seal(words.tolist())
    return changed
