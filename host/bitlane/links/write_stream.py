"""A long write is encoded as one stream of packets, and the host expects each answer's bytes."""

from dataclasses import dataclass
from typing import Final

from .line import Batch
from .pending import Pending

STREAM_PACKETS: Final = 171
"""Most packets of a stream: 240 KiB, which the processor's cache holds, and whole rounds of the 19
that a board buffers."""


@dataclass(slots=True)
class WriteStream:
    """The progress of the packets ``ahead``, up to ``window`` of which may be unanswered.

    ``answers``: the bytes of all answers, in order, if each request is executed.
    """

    ahead: Pending
    window: int
    answers: bytes
    sent: int = 0
    """Packets that have been sent, and that have been answered."""
    answered: int = 0

    @property
    def answer_bytes(self) -> int:
        """Return the bytes of the answers to a packet."""
        return len(self.answers) // self.ahead.packets

    @property
    def received_bytes(self) -> int:
        """Return the bytes of the answers so far."""
        return self.answered * self.answer_bytes

    @property
    def complete(self) -> bool:
        """Return whether every packet has been answered."""
        return self.answered == self.ahead.packets

    def batch(self) -> Batch | None:
        """Return the packets that the window lets be sent now; they count as sent."""
        end = min(self.answered + self.window, self.ahead.packets)
        if end == self.sent:
            return None
        content, size = self.ahead.batch
        packets = memoryview(content)[self.sent * size : end * size]
        self.sent = end
        return Batch(packets, size)

    def take(self, arrived: list[Batch]) -> tuple[int, list[Batch]]:
        """Take the answers that are the next ones, byte for byte.

        Returns the number of packets that they answer, and all batches from the first one with
        anything else.
        """
        step, before = self.answer_bytes, self.answered
        for index, (content, size) in enumerate(arrived):
            packets, rest = divmod(len(content), step)
            start, end = self.answered * step, self.sent * step
            if size != step or rest or not self.answers.startswith(content, start, end):
                return self.answered - before, arrived[index:]
            self.answered += packets
        return self.answered - before, []
