"""Batches of packets and replies of a line, packet by packet and answer by answer."""

from collections.abc import Iterable

from bitlane.links.line import Batch, Reply
from bitlane_rtl.abi.frames import SEQUENCES

Answered = tuple[int, int, bool, bytes]
"""Number, kind, interrupt line and data of an answer."""


def packets_of(batches: Iterable[Batch]) -> list[bytes]:
    """Return all packets of ``batches``."""
    return [bytes(packet) for batch in batches for packet in batch.packets()]


def reply(sequence: int, kind: int, data: bytes = b"", *, interrupt: bool = False) -> Reply:
    """Return the reply of one answer."""
    return Reply(sequence, kind, interrupt, data, 1, (slice(0, len(data)),))


def answers_of(reply: Reply) -> list[Answered]:
    """Return each answer of ``reply``."""
    found = [bytes(reply.packet(row)[span]) for row in range(reply.packets) for span in reply.spans]
    return [
        ((reply.sequence + k) % SEQUENCES, reply.kind, reply.interrupt, data)
        for k, data in enumerate(found)
    ]
