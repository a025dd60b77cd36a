"""Links of several hosts to the boards of a simulated switch, in simulated time. No tests here."""

from collections.abc import Sequence
from threading import Condition
from typing import Any

from bitlane.links.udp_link import UdpLink
from bitlane_boards.pins import SimulatedSwitch
from support.boards.session import SILENCE

PORT = 50_000


class SwitchHosts:
    """Hosts that use a ``switch`` in a thread each: the time passes while all of them wait."""

    def __init__(self, switch: SimulatedSwitch) -> None:
        self.switch = switch
        self._changed = Condition()
        self._active = self._waiting = self._steps = 0

    def link(self, board: int) -> UdpLink:
        """Return a link to a board, with deadlines in simulated time."""
        socket: Any = _Socket(self, board)
        clock = lambda: self.switch.seconds  # noqa: E731
        return UdpLink(socket, description=f"board {board}", timeout=SILENCE, clock=clock)

    def expect(self, count: int) -> None:
        """Let the time stand still from now on, except while ``count`` threads wait."""
        with self._changed:
            self._active += count

    def leave(self) -> None:
        """The calling thread, one of those that were expected, waits no more."""
        with self._changed:
            self._active -= 1
            self._pass_time()

    def send(self, board: int, batches: Sequence[tuple[bytes | memoryview, int]]) -> None:
        with self._changed:
            for content, size in batches:
                for start in range(0, len(content), size):
                    self.switch.send(board, PORT, content[start : start + size])

    def receive(self, board: int, seconds: float) -> list[tuple[memoryview, int]]:
        with self._changed:
            end = self.switch.seconds + seconds
            while not (found := self.switch.arrived(board)) and self.switch.seconds < end:
                steps = self._steps
                self._waiting += 1
                self._pass_time()
                assert self._changed.wait_for(lambda steps=steps: self._steps != steps, 100)
        return [(memoryview(data), len(data)) for _, data in found]

    def _pass_time(self) -> None:
        """Run a step if everybody waits."""
        if self._waiting and self._waiting >= self._active:
            self.switch.step()
            self._waiting = 0
            self._steps += 1
            self._changed.notify_all()


class _Socket:
    """The part of a `DatagramSocket` that a link uses."""

    description = "simulated switch"

    def __init__(self, hosts: SwitchHosts, board: int) -> None:
        self._hosts, self._board = hosts, board

    def send(self, batches: Sequence[tuple[bytes | memoryview, int]]) -> None:
        self._hosts.send(self._board, batches)

    def receive(self, seconds: float) -> list[tuple[memoryview, int]]:
        return self._hosts.receive(self._board, seconds)

    def close(self) -> None:
        """Do nothing: the switch stays."""
