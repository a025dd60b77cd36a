"""Simulated boards on one switch, which one cable of a gigabit connects with the host."""

from collections import deque
from collections.abc import Sequence

from .network import SimulatedNetwork
from .phy import LINE_HZ

__all__ = ["STEP_SECONDS", "SimulatedSwitch", "SwitchPort"]

STEP_SECONDS = 5e-6
"""Simulated seconds of a step: fewer than a full frame takes."""

_OVERHEAD_BYTES = 20
"""Bytes on the line around a frame: preamble, start of frame, and the least gap."""


class _Cable:
    """One direction of the cable: frames follow each other, and each arrives when it has ended."""

    def __init__(self) -> None:
        self.free = 0.0
        """When the last frame ends."""
        self.frames: deque[tuple[float, int, bytes]] = deque()
        """Arrival, the number of the board and the frame, by arrival."""

    def send(self, now: float, number: int, frame: bytes) -> None:
        self.free = max(self.free, now) + (len(frame) + _OVERHEAD_BYTES) / LINE_HZ
        self.frames.append((self.free, number, frame))

    def arrived(self, now: float) -> list[tuple[int, bytes]]:
        """Remove and return the frames that have arrived."""
        found = []
        while self.frames and self.frames[0][0] <= now:
            found.append(self.frames.popleft()[1:])
        return found


class SimulatedSwitch:
    """Forwards whole frames between the host's cable and the ``boards``, each with its own cable.

    The time of all passes together, in steps of STEP_SECONDS; it stands still between the calls.
    A frame to a board is forwarded in the first step that begins after its arrival.

    Parameters
    ----------
    boards
        Networks of a board each, after `SimulatedNetwork.resolve`. Closed with the switch.

    Attributes
    ----------
    seconds
        Simulated time since the switch began.
    """

    def __init__(self, boards: Sequence[SimulatedNetwork]) -> None:
        self.seconds = 0.0
        self._boards = list(boards)
        self._outward, self._inward = _Cable(), _Cable()
        self._arrived: list[list[tuple[int, bytes]]] = [[] for _ in boards]

    @property
    def ports(self) -> list["SwitchPort"]:
        """The boards, each as a network for a `UdpServer`."""
        return [SwitchPort(self, n, board.port) for n, board in enumerate(self._boards)]

    @property
    def quiet(self) -> bool:
        """Whether nothing moves, at any board or on the cable."""
        cables = self._outward.frames, self._inward.frames
        waiting = any(cables) or any(self._arrived)
        return not waiting and all(board.quiet for board in self._boards)

    def send(self, number: int, port: int, data: bytes | bytearray | memoryview) -> None:
        """Send a datagram from the host's ``port`` to a board, as `SimulatedNetwork.send`."""
        frame = self._boards[number].frame_of(port, data)
        if frame:
            self._outward.send(self.seconds, number, frame)

    def unsent(self) -> int:
        """Return the bytes of frames, with gaps, that wait for the cable to the switch."""
        return round(max(0.0, self._outward.free - self.seconds) * LINE_HZ)

    def arrived(self, number: int) -> list[tuple[int, bytes]]:
        """Remove and return the datagrams that came from a board, each with the port it is for."""
        found, self._arrived[number] = self._arrived[number], []
        return found

    def step(self) -> None:
        """Let STEP_SECONDS pass."""
        for number, frame in self._outward.arrived(self.seconds):
            self._boards[number].send_frame(frame)
        ended = [
            (after, number, frame)
            for number, board in enumerate(self._boards)
            for after, frame in board.run(STEP_SECONDS)
        ]
        for after, number, frame in sorted(ended):
            self._inward.send(self.seconds + after, number, frame)
        self.seconds += STEP_SECONDS
        for number, frame in self._inward.arrived(self.seconds):
            self._arrived[number] += self._boards[number].datagrams_in([frame])

    def close(self) -> None:
        """Close the boards. May be called twice."""
        for board in self._boards:
            board.close()


class SwitchPort:
    """Board ``number`` of a ``switch``, with the part of a `SimulatedNetwork` that a server uses.

    The time of all boards passes when one of them is waited for.
    """

    def __init__(self, switch: SimulatedSwitch, number: int, port: int) -> None:
        self._switch, self._number = switch, number
        self.port = port

    @property
    def quiet(self) -> bool:
        """Whether nothing moves on the whole switch."""
        return self._switch.quiet

    @property
    def unsent(self) -> int:
        """Bytes that wait for the cable."""
        return self._switch.unsent()

    def send(self, port: int, data: bytes | bytearray | memoryview) -> None:
        """Send a datagram from the host's ``port`` to the board."""
        self._switch.send(self._number, port, data)

    def advance(self, seconds: float) -> list[tuple[int, bytes]]:
        """Return the datagrams that came, each with the port that it is for.

        Runs one step if there is none, whatever ``seconds``.
        """
        found = self._switch.arrived(self._number)
        if not found:
            self._switch.step()
            found = self._switch.arrived(self._number)
        return found
