"""The time and the clocks of a compiled simulation: the Python side of native/clocks.cc.

Times are integers, in femtoseconds since the beginning.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..native import InstanceHandle, native
from ..native.probe import ProbeProgram
from ..waveforms import Waves
from .deltas import Deltas

NEVER = (1 << 64) - 1
_LONGEST = 1 << 60
"""The limit of periods and phases in compiled code, in femtoseconds."""
_MOST = 32
"""The largest number of clocks in compiled code."""


EDGE = 1
"""Stopped at an edge that a process waits for: the clock has changed, the model has not stepped."""
MESSAGES = 2
"""Stopped as the model, which has stepped, has messages."""
WOKEN = 6
"""Stopped in a delta cycle: a watched signal has changed, or an edge or a message has a wait."""


class Condition(NamedTuple):
    """True if any of ``bits`` of a word is 1 or, with a program, if its value is not 0."""

    word: int = 0
    bits: int = 0
    program: ProbeProgram | None = None
    settles: bool = False
    """It needs a settled model."""


Wakers = dict[Callable[[], None], int]
"""The time at which each waker is called."""


class _Condition(ctypes.Structure):
    _fields_ = (
        ("word", ctypes.c_uint64),
        ("bits", ctypes.c_uint64),
        ("program", ctypes.c_void_p),
    )


class EdgeControl(ctypes.Structure):
    """``Edge`` of clocks.cc."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        ("target", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("conditions", ctypes.POINTER(_Condition)),
        ("settles", ctypes.c_uint64),
    )

    def stop_when(self, conditions: Sequence[Condition]) -> None:
        """Stop also when one of ``conditions`` is true; the caller holds references to them."""
        # The structure keeps the array alive.
        self.conditions = (_Condition * len(conditions))(*map(_condition, conditions))
        self.size, self.settles = len(conditions), any(x.settles for x in conditions)


def _condition(given: Condition) -> _Condition:
    return _Condition(given.word, given.bits, given.program.address if given.program else None)


class _Clock(ctypes.Structure):
    _fields_ = (
        ("word", ctypes.c_uint64),
        ("quiet", ctypes.c_uint64),
        ("previous", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
        ("half", ctypes.c_uint64),
        ("edges", ctypes.POINTER(EdgeControl) * 2),
    )


class _Control(ctypes.Structure):
    _fields_ = (
        ("model", ctypes.POINTER(InstanceHandle)),
        ("deltas", ctypes.c_void_p),
        ("clocks", ctypes.POINTER(_Clock)),
        ("size", ctypes.c_uint64),
        ("now", ctypes.c_uint64),
        ("due", ctypes.c_uint64),
        ("wake", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
        ("answer", ctypes.c_uint64),
        ("settled", ctypes.c_uint64),
        ("reached", ctypes.c_uint64),
        ("waves", ctypes.POINTER(ctypes.c_void_p)),
        ("waves_size", ctypes.c_uint64),
        ("take_sample", ctypes.c_void_p),
    )


class Clocks:
    """The time, the wakers, and the clocks whose signals are words of a model.

    Replaces the timeline of Amaranth's simulator, and its processes of these clocks.

    Attributes
    ----------
    slots : list
        The slot of each clock's signal.
    control : ctypes.Structure
        The fields shared with compiled code; its times are relative to ``_epoch``.
    edges : dict
        Lists of edges, by the ``reached`` of compiled code; `reached` adds one.
    woken : bool
        Wakers were called when the time last changed.
    fast_forward : callable
        Runs compiled code up to the next event for Python, and returns the reason. `land` must
        follow unless that is `EDGE`, `MESSAGES` or `WOKEN`.
    waves : list
        The waveform files, sampled before the time changes.
    attended : bool
        At least one of them has signals that Python samples.
    """

    critical = False

    def __init__(self, model: InstanceHandle, deltas: Deltas) -> None:
        self.slots: list[Any] = []
        self.wakers: Wakers = {}
        self._clocks = (_Clock * _MOST)()
        self._phases: list[int] = []
        self._epoch = 0
        self._deadline: int | None = None
        self._deltas = deltas
        address = ctypes.addressof(deltas.control)
        self.control = _Control(ctypes.pointer(model), address, self._clocks)
        advance = native().clocks_fast_forward
        advance.argtypes, advance.restype = (ctypes.c_void_p,), ctypes.c_int
        self.fast_forward = partial(advance, ctypes.addressof(self.control))
        self.edges: dict[int, list[Any]] = {}
        self.waves: Sequence[Waves] = ()
        self.attended = False
        self.reset()

    def reset(self) -> None:
        """Return to time 0."""
        control = self.control
        control.now = control.due = control.reached = 0
        for clock, phase in zip(self._clocks, self._phases, strict=False):
            clock.next = phase
        self._begin(0)
        self.wakers.clear()
        self.woken = False
        self._plan()

    def add(self, slot: Any, *, phase: int, period: int) -> bool:
        """Toggle a signal at ``phase``, then twice a ``period``; return False if unsupported."""
        half = period // 2
        if len(self.slots) == _MOST or not 0 < half < _LONGEST or not 0 <= phase < _LONGEST:
            return False
        layout = slot.as_clock()
        if layout is None:
            return False
        number = len(self.slots)
        self._clocks[number] = _Clock(*layout, phase, half)
        slot.clock = number
        self.slots.append(slot)
        self._phases.append(phase)
        self.control.size = number + 1
        return True

    def record(self, waves: Sequence[Waves]) -> None:
        """Sample these waveform files from now on."""
        self.waves, self.attended = waves, any(x.attended for x in waves)
        handles = [x.handle for x in waves]
        # The structure keeps the array alive.
        self.control.waves = (ctypes.c_void_p * len(waves))(*handles)
        self.control.waves_size = len(waves)
        if waves:
            self.control.take_sample = waves[0].take
        self._begin(self._epoch)

    def listen(self, number: int, level: int, edge: EdgeControl) -> None:
        """Count a clock's changes to ``level`` in ``edge``, and stop where ``edge`` says."""
        self._clocks[number].edges[level] = ctypes.pointer(edge)
        self.edges.clear()

    # --- as the timeline ----------------------------------------------------------------------

    @property
    def now(self) -> int:
        return self._epoch + int(self.control.now)

    def set_waker(self, interval: int, waker: Callable[[], None]) -> None:
        self.wakers[waker] = self.now + interval
        self._plan()

    def advance(self) -> bool:
        """Advance to the next event; return whether there is one.

        Raises the errors of waveform files, without advancing.
        """
        for waves in self.waves:
            waves.sample(self.now)
        times = list(self.wakers.values())
        times += [self._epoch + clock.next for clock in self._clocks[: self.control.size]]
        if not times:
            return False
        self._count_from(min(times))
        self.awaken()
        self.control.due = any(clock.next == 0 for clock in self._clocks[: self.control.size])
        return True

    def awaken(self) -> None:
        """Call the wakers whose time has come."""
        now = self.now
        called = [waker for waker, time in self.wakers.items() if time == now]
        for waker in called:
            del self.wakers[waker]
            waker()
        self.woken = bool(called)
        self._plan()

    def _count_from(self, now: int) -> None:
        """Make ``now`` the origin of the compiled code's times."""
        passed = now - self._epoch
        for clock in self._clocks[: self.control.size]:
            clock.next -= passed
        self.control.now = 0
        self._begin(now)
        self._plan()

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        for waves in self.waves:
            waves.count_from(epoch)

    def _plan(self) -> None:
        """Pass the next waker and the limit to compiled code."""
        wake = min(self.wakers.values()) - self._epoch if self.wakers else NEVER
        limit = NEVER if self._deadline is None else max(self._deadline - self._epoch, 0)
        self.control.wake, self.control.limit = min(wake, NEVER), min(limit, NEVER)

    # --- as the process -----------------------------------------------------------------------

    @property
    def runnable(self) -> bool:
        return bool(self.control.due)

    @runnable.setter
    def runnable(self, value: bool) -> None:
        self.control.due = value

    def run(self) -> None:
        """Toggle the clocks that change now."""
        now = self.control.now
        for clock, slot in zip(self._clocks, self.slots, strict=False):
            if clock.next == now:
                clock.next = now + clock.half
                slot.update(not slot.curr)

    # --- many steps at once -------------------------------------------------------------------

    def until(self, deadline: int | None) -> None:
        """Stop compiled code before the events of ``deadline``; 0: after one change of time."""
        if deadline != self._deadline:
            self._deadline = deadline
            self._plan()

    def land(self) -> None:
        """Call the wakers of the time at which compiled code has stopped.

        Raises the errors of waveform files.
        """
        for waves in self.waves:
            waves.check()
        if self.wakers:
            self.awaken()
        if self.control.now > _LONGEST:
            self._count_from(self.now)

    def reached(self) -> list[Any]:
        """Return the edges at which compiled code has stopped; add them to `edges`."""
        reached = self.control.reached
        found = self.edges[reached] = [
            self.slots[number // 2].edges[number % 2]
            for number in range(2 * len(self.slots))
            if reached >> number & 1
        ]
        return found
