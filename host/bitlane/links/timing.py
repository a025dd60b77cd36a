"""The adaptive size of frames and the adaptive retransmission timer.

A wrong estimate costs time only: a frame is smaller than needed, or sent once more.
"""

from typing import Final

from bitlane_rtl.abi import REPETITIONS

from .line import Line


class FrameSizer:
    """The size of frames: multiplicative increase, fast until the first loss, and decrease.

    ``room``: bytes that the board buffers.
    """

    CALM: Final = 8
    """After a loss, frames of the present size that must pass before it is doubled."""

    def __init__(self, line: Line, room: int) -> None:
        self._line = line
        self._most = line.sizes.most
        while line.frame_room(self._most) > room:
            self._most //= 2
        self.size = min(line.sizes.start, self._most)
        """Most bytes of data of a frame."""
        self.packets = REPETITIONS
        """Most packets that may be unanswered."""
        self._calm = 1
        self._passed = 0

    @property
    def noisy(self) -> bool:
        """Return whether losses have made frames smaller."""
        return self.packets < REPETITIONS

    def on_answer(self, data_bytes: int) -> None:
        """Count an answered request, which carried ``data_bytes`` in either direction."""
        if self.size == self._most:
            return
        self._passed += max(data_bytes, self._line.sizes.least)
        if self._passed >= self._calm * self.size:
            self._passed = 0
            self.size *= 2
            if self.size == self._most:
                self.packets = REPETITIONS

    def on_loss(self) -> None:
        """Halve the size: a request, or its answer, did not arrive."""
        self._passed = 0
        self._calm = self.CALM
        self.size = max(min(self._line.sizes.least, self._most), self.size // 2)
        self.packets = self._line.noisy_packets


class RetransmissionTimer:
    """The retransmission timer: the wait for an answer before a request is sent again.

    ``longest``: upper bound in seconds.
    """

    FIRST: Final = 1.0
    """Seconds before the first measurement."""

    SAFETY: Final = 2
    MOST_BACKOFF: Final = 32
    """Cap of the exponential back-off: on a noisy line a longer wait does not help."""

    MOST_PATIENCE: Final = 16
    """Cap of the factor after spurious retransmissions, which copies of answers imitate."""

    FORGET: Final = 1 / 8
    """Share of the difference by which a shorter measurement lowers the estimate; a longer one
    raises it at once."""

    def __init__(self, line: Line, longest: float) -> None:
        self._line = line
        self._longest = longest
        self._rate: float | None = None
        self._backoff = 1
        self._patience = 1

    def seconds(self, line_bytes: int) -> float:
        """Return the seconds to wait if ``line_bytes`` pass before the next answer."""
        if self._rate is None:
            wait = self.FIRST
        else:
            wait = self.SAFETY * self._rate * (line_bytes + self._line.latency_bytes)
            wait = max(self._line.least_wait, wait) * self._patience
        return min(self._longest, wait * self._backoff)

    def measured(self, seconds: float, line_bytes: int) -> None:
        """Update the estimate: ``line_bytes`` took ``seconds``, and none was sent twice."""
        rate = seconds / (line_bytes + self._line.latency_bytes)
        old = rate if self._rate is None else self._rate
        self._rate = max(rate, old + self.FORGET * (rate - old))
        # A request that was sent once shows the time of the line, whatever copies suggested.
        self._patience = max(1, self._patience // 2)

    def back_off(self) -> None:
        """Double the wait: the timer has expired."""
        self._backoff = min(2 * self._backoff, self.MOST_BACKOFF)

    def reset_backoff(self) -> None:
        """End the back-off: a request has been answered."""
        self._backoff = 1

    def spurious(self) -> None:
        """Double the wait: a request repeated after a timeout has been answered twice.

        Each later measurement halves it again.
        """
        self._patience = min(2 * self._patience, self.MOST_PATIENCE)
