"""Simulated pins behind a pseudo-terminal, so that any program for serial ports can talk to them.

Must never lose a byte in either direction, and must not use the processor while nothing happens.
"""

import fcntl
import os
import select
import struct
import sys
import termios
import time
import tty

from .simulation import PinSimulation

_QUEUE_BYTES = 4096
"""Most bytes read from the terminal ahead of the line; the rest waits in the kernel."""

_HOLD_BYTES = 1 << 16
"""Answers that no client reads: with more than this the clock stands still."""

_TURN_SECONDS = 0.002
"""Time between two polls of the terminal."""

_GAP_BYTES = 2
"""Bytes that an answer has to pause before what has come of it is passed on."""

_REST_BYTES = 64
"""Times of a byte in which nothing may move before the clock stops."""


class PtyServer:
    """Serves ``simulation`` on a pseudo-terminal of its own.

    The clock runs while bytes are on their way, while the circuit is busy, and for 64 byte times
    more; then it stands until a client writes. Clients may come and go: what one has left unread
    the next one finds, as on a port that is not flushed.

    ``clock_hz`` is the circuit's. The line has the speed to which a client sets the terminal, as
    on a port; the one that nobody has set is that of the simulation.

    Attributes
    ----------
    name
        Path of the terminal, to be opened like a serial port.
    sent, received
        Bytes that went to the circuit, and that came from it.

    Raises ``OSError`` if the system has no pseudo-terminals.
    """

    def __init__(self, simulation: PinSimulation, clock_hz: float) -> None:
        self.simulation = simulation
        # Kept open, so that the terminal outlives its clients and keeps being raw.
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        os.set_blocking(self._ours, False)
        self._clock_hz = clock_hz
        self._speed: int | None = round(clock_hz / simulation.divider)
        _set_speed(self._theirs, self._speed)
        self.name = os.ttyname(self._theirs)
        self.sent = self.received = 0
        self._outgoing = bytearray()
        self._turn = 1000
        byte = round(10 * simulation.divider)
        self._gap, self._rest = _GAP_BYTES * byte, _REST_BYTES * byte
        self._quiet = False

    @property
    def resting(self) -> bool:
        """Whether the clock stands until a client writes or reads."""
        return self._quiet or len(self._outgoing) >= _HOLD_BYTES

    def warm_up(self) -> None:
        """Run until the circuit is at rest, as it is by the time that a host opens a board's port.

        A circuit that holds itself in reset after power-on would miss what came at once.
        """
        self._quiet = self.simulation.settle(self._rest, limit=100 * self._rest)
        self._outgoing += self.simulation.receive()

    def serve(self, seconds: float | None = None) -> None:
        """Serve for ``seconds``, or until an exception such as ``KeyboardInterrupt``.

        Raises ``SimulationError`` if the circuit breaks a rule.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            self._turn_once(end)

    def close(self) -> None:
        """Give the terminal back; clients see a port that is gone. The simulation stays."""
        if self._ours >= 0:
            os.close(self._ours)
            os.close(self._theirs)
            self._ours = self._theirs = -1

    def _turn_once(self, end: float | None) -> None:
        room = _QUEUE_BYTES - self.simulation.unsent
        patience: float | None = 0
        if self.resting:
            patience = None if end is None else max(0.0, end - time.monotonic())
        readable, writable, _ = select.select(
            [self._ours] if room > 0 else [],
            [self._ours] if self._outgoing else [],
            [],
            patience,
        )
        if readable:
            if not self.simulation.unsent:
                self._follow_speed()
            data = os.read(self._ours, room)
            self.simulation.send(data)
            self.sent += len(data)
            self._quiet = False
        if not self.resting:
            self._run()
        if writable or self._outgoing:
            self._pass_on()

    def _follow_speed(self) -> None:
        speed = _speed_of(self._theirs)
        if speed != self._speed and speed:
            self._speed = speed
            self.simulation.divider = max(2.0, self._clock_hz / speed)

    def _run(self) -> None:
        """Run the clock for one turn, and take what has arrived when the answer pauses."""
        started = time.monotonic()
        before = self.simulation.cycle
        paused = self.simulation.advance(self._turn, count=_QUEUE_BYTES, quiet=self._gap)
        fresh = self.simulation.receive()
        if paused and not fresh:
            self._quiet = self.simulation.advance(self._turn, count=1, quiet=self._rest)
            fresh = self.simulation.receive()
        self.received += len(fresh)
        self._outgoing += fresh
        spent = time.monotonic() - started
        if self.simulation.cycle - before >= self._turn and spent > 0:
            # Half the way each time, so that one slow turn does not count for all.
            self._turn = max(100, round(self._turn * (1 + _TURN_SECONDS / spent) / 2))

    def _pass_on(self) -> None:
        try:
            count = os.write(self._ours, self._outgoing)
        except BlockingIOError:
            return
        del self._outgoing[:count]


# Linux: struct termios2, whose speeds are numbers. Python knows none but those with names.
_GET_STATE, _SET_STATE = 0x802C542A, 0x402C542B
_STATE_BYTES, _FLAGS, _SPEEDS = 44, 8, 36
_SPEED_MASK, _ANY_SPEED = 0o010017, 0o010000


def _speed_of(terminal: int) -> int | None:
    """Return the bits a second of the open terminal, or None if they are unknown."""
    if not sys.platform.startswith("linux"):
        return int(termios.tcgetattr(terminal)[5])
    state = bytearray(_STATE_BYTES)
    try:
        fcntl.ioctl(terminal, _GET_STATE, state)
    except OSError:
        return None
    return int(struct.unpack_from("II", state, _SPEEDS)[1])


def _set_speed(terminal: int, speed: int) -> None:
    """Set the speed of the open terminal, if the system can."""
    if not sys.platform.startswith("linux"):
        return
    state = bytearray(_STATE_BYTES)
    try:
        fcntl.ioctl(terminal, _GET_STATE, state)
        (flags,) = struct.unpack_from("I", state, _FLAGS)
        struct.pack_into("I", state, _FLAGS, flags & ~_SPEED_MASK | _ANY_SPEED)
        struct.pack_into("II", state, _SPEEDS, speed, speed)
        fcntl.ioctl(terminal, _SET_STATE, state)
    except OSError:
        return
