"""How much a frame carries and how long to wait for an answer, learnt from how the line does.

Wrong guesses cost time only: a frame is smaller, or sent once more, than needed.
"""

from typing import Final

from bitlane_rtl.abi.frames import FRAME_DATA_BYTES, REPETITIONS

from .frames import request_room


class Pace:
    """The size of frames: quickly larger until the first loss, then halved by each loss.

    ``room`` is what the board buffers.
    """

    START: Final = 64
    LEAST: Final = 32
    """Bytes of data; both are whole words, which the control window takes only."""

    CALM: Final = 8
    """After a loss a frame grows when so many of its size have passed."""

    NOISY_FRAMES: Final = 6
    """Requests in flight on a noisy line: those behind a damaged one are sent for nothing."""

    def __init__(self, room: int) -> None:
        self._most = FRAME_DATA_BYTES
        while request_room(self._most) > room:
            self._most //= 2
        self.size = min(self.START, self._most)
        """Bytes of data that a frame carries at most."""
        self.frames = REPETITIONS
        """Requests that may be unanswered."""
        self._calm = 1
        self._passed = 0

    @property
    def noisy(self) -> bool:
        """Whether frames are smaller for losses."""
        return self.frames < REPETITIONS

    def passed(self, data_bytes: int) -> None:
        """A request that carried ``data_bytes`` in either direction has been answered."""
        if self.size == self._most:
            return
        self._passed += max(data_bytes, self.LEAST)
        if self._passed >= self._calm * self.size:
            self._passed = 0
            self.size *= 2
            if self.size == self._most:
                self.frames = REPETITIONS

    def lost(self) -> None:
        """A request, or its answer, did not arrive."""
        self._passed = 0
        self._calm = self.CALM
        self.size = max(self.LEAST, self.size // 2)
        self.frames = self.NOISY_FRAMES


class Patience:
    """How long no answer may come before a request is sent again.

    ``longest``: seconds, whatever was measured.
    """

    FIRST: Final = 1.0
    """Seconds, before anything was measured."""

    LEAST: Final = 0.02
    """Seconds: above what an operating system takes to let a program run, and USB to deliver."""

    SAFETY: Final = 2
    DOUBT: Final = 32
    """Silence at most multiplies the wait by so much: on a noisy line waiting longer is no help."""

    OVERHEAD: Final = 64
    """Bytes whose time on the line stands for the time that a frame of any size takes."""

    FORGET: Final = 1 / 8
    """How much of the difference a shorter measurement takes back; a longer one counts at once."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._rate: float | None = None
        self._doubt = 1

    def seconds(self, line_bytes: int) -> float:
        """How long to wait if ``line_bytes`` must pass before the next answer has come."""
        if self._rate is None:
            wait = self.FIRST
        else:
            wait = max(self.LEAST, self.SAFETY * self._rate * (line_bytes + self.OVERHEAD))
        return min(self._longest, wait * self._doubt)

    def measured(self, seconds: float, line_bytes: int) -> None:
        """Requests and answers of ``line_bytes`` took ``seconds``; none was sent twice."""
        rate = seconds / (line_bytes + self.OVERHEAD)
        old = rate if self._rate is None else self._rate
        self._rate = max(rate, old + self.FORGET * (rate - old))

    def in_vain(self) -> None:
        """That time has passed and nothing came."""
        self._doubt = min(2 * self._doubt, self.DOUBT)

    def moved(self) -> None:
        """A request has been answered."""
        self._doubt = 1

    def hasty(self) -> None:
        """What was sent again for the silence alone has been answered twice."""
        if self._rate is not None:
            self._rate *= 2
