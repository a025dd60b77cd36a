"""Statistics of a link."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Statistics of a link since it was opened."""

    sent_bytes: int = 0
    received_bytes: int = 0
    requests: int = 0
    repeated: int = 0
    """Retransmissions."""
    answers: int = 0
    """Frames that arrived undamaged."""
    damaged: int = 0
