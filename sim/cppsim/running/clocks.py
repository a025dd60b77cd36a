"""Time, and the clocks of a compiled simulation: native/clocks.cc as Python sees it.

Times are whole femtoseconds since the beginning.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from ..native.library import ModelHandle, native
from ..native.probe import ProbeProgram
from ..native.waves import Waves

__all__ = ["EDGE", "NEVER", "SLICE", "TIME", "TOLD", "Clocks", "Condition", "EdgeControl"]

NEVER = (1 << 64) - 1
_LONGEST = 1 << 60
"""Of a period or phase of which the compiled code can keep count."""
_MOST = 32
"""Clocks in one simulation of which it can."""


EDGE = 1
"""A leap ends at edges somebody waits for; clocks show it, the model has yet to be stepped."""
TOLD = 2
"""A leap ends as the model, which has been stepped, has something to tell."""
TIME = 3
"""A leap ends at its limit, or where wakers have been called."""
SLICE = 4
"""A leap ends as Python may want to hear of signals."""


class Condition(NamedTuple):
    """Met where a word has one of some bits or, if there is a program, where that gives not 0."""

    word: int = 0
    bits: int = 0
    program: ProbeProgram | None = None


class Recorder(Protocol):
    """A waveform file that is sampled at the end of each time step.

    Attributes
    ----------
    native : Waves
        The signals that compiled code samples by itself.
    attended : bool
        Python has to sample further signals.
    """

    native: Waves

    @property
    def attended(self) -> bool: ...

    def sample(self, now: int) -> None: ...


Wakers = dict[Callable[[], None], int]
"""When each is to be called."""


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

    def watch(self, conditions: Sequence[Condition], *, settles: bool) -> None:
        """Wake somebody also when one of ``conditions``, which are to be kept alive, is met."""
        # The structure keeps the array alive.
        self.conditions = (_Condition * len(conditions))(*map(_condition, conditions))
        self.size, self.settles = len(conditions), settles


def _condition(given: Condition) -> _Condition:
    return _Condition(given.word, given.bits, given.program.address if given.program else None)


class _Clock(ctypes.Structure):
    _fields_ = (
        ("word", ctypes.c_uint64),
        ("quiet", ctypes.c_uint64),
        ("shadow", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
        ("half", ctypes.c_uint64),
        ("edges", ctypes.POINTER(EdgeControl) * 2),
    )


class _Control(ctypes.Structure):
    _fields_ = (
        ("model", ctypes.POINTER(ModelHandle)),
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
    )


class Clocks:
    """The time, what is to happen at which, and clocks whose signals are words of a model.

    It stands for the timeline of Amaranth's simulator, and is the process of all its clocks.

    Attributes
    ----------
    slots : list
        The state of each clock's signal.
    control : ctypes.Structure
        What it shares with the compiled code, whose times are counted from ``_epoch``.
    woken : bool
        Wakers were called when the time last changed.
    leap : callable
        On to where Python has something to do; gives the reason. After all but ``EDGE`` and
        ``TOLD`` `land` is to be called.
    waves : list
        Sampled before the time changes.
    attended : bool
        Not all of them by compiled code alone.
    """

    critical = False

    def __init__(self, model: ModelHandle) -> None:
        self.slots: list[Any] = []
        self.wakers: Wakers = {}
        self._clocks = (_Clock * _MOST)()
        self._phases: list[int] = []
        self._epoch = 0
        self._deadline: int | None = None
        self.control = _Control(ctypes.pointer(model), self._clocks)
        leap = native().clocks_leap
        leap.argtypes, leap.restype = (ctypes.c_void_p,), ctypes.c_int
        self.leap = partial(leap, ctypes.addressof(self.control))
        self._found: dict[int, list[Any]] = {}
        self.waves: Sequence[Recorder] = ()
        self.attended = False
        self.reset()

    def reset(self) -> None:
        """Back to the beginning."""
        control = self.control
        control.now = control.due = control.reached = 0
        for clock, phase in zip(self._clocks, self._phases, strict=False):
            clock.next = phase
        self._begin(0)
        self.wakers.clear()
        self.woken = False
        self._plan()

    def add(self, slot: Any, *, phase: int, period: int) -> bool:
        """Let a signal change at ``phase``, then twice a ``period``; False if this cannot."""
        half = period // 2
        if len(self.slots) == _MOST or not 0 < half < _LONGEST or not 0 <= phase < _LONGEST:
            return False
        place = slot.as_clock()
        if place is None:
            return False
        number = len(self.slots)
        self._clocks[number] = _Clock(*place, phase, half)
        slot.clock = number
        self.slots.append(slot)
        self._phases.append(phase)
        self.control.size = number + 1
        return True

    def record(self, waves: Sequence[Recorder]) -> None:
        """From now on sample these."""
        self.waves, self.attended = waves, any(x.attended for x in waves)
        handles = [x.native.handle for x in waves]
        # The structure keeps the array alive.
        self.control.waves = (ctypes.c_void_p * len(waves))(*handles)
        self.control.waves_size = len(waves)
        self._begin(self._epoch)

    def resume(self, now: int, edges: Sequence[int], wakers: Wakers, *, begun: bool) -> None:
        """Go on from ``now``, with ``edges`` that say when each clock changes next.

        Those of now come first if the simulation has ``begun``, else after testbenches.
        """
        self.wakers.update(wakers)
        self._epoch = now
        for clock, edge in zip(self._clocks, edges, strict=False):
            clock.next = edge - now
        self.control.due = begun and now in edges
        self._plan()

    def listen(self, number: int, level: int, edge: EdgeControl) -> None:
        """Count changes of a clock to ``level`` in ``edge``, and stop where it says."""
        self._clocks[number].edges[level] = ctypes.pointer(edge)
        self._found.clear()

    # --- as the timeline ----------------------------------------------------------------------

    @property
    def now(self) -> int:
        return self._epoch + int(self.control.now)

    def set_waker(self, interval: int, waker: Callable[[], None]) -> None:
        self.wakers[waker] = self.now + interval
        self._plan()

    def advance(self) -> bool:
        """On to when something happens next; whether there is anything.

        Raises what is wrong with waveforms, and goes nowhere then.
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
        """Call the wakers of now."""
        now = self.now
        called = [waker for waker, time in self.wakers.items() if time == now]
        for waker in called:
            del self.wakers[waker]
            waker()
        self.woken = bool(called)
        self._plan()

    def _count_from(self, now: int) -> None:
        """It is ``now``, from which time is counted."""
        passed = now - self._epoch
        for clock in self._clocks[: self.control.size]:
            clock.next -= passed
        self.control.now = 0
        self._begin(now)
        self._plan()

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        for waves in self.waves:
            waves.native.count_from(epoch)

    def _plan(self) -> None:
        """Tell the compiled code of wakers and of the limit."""
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
        """Change the clocks whose time it is."""
        now = self.control.now
        for clock, slot in zip(self._clocks, self.slots, strict=False):
            if clock.next == now:
                clock.next = now + clock.half
                slot.update(not slot.curr)

    # --- many steps at once -------------------------------------------------------------------

    def until(self, deadline: int | None) -> None:
        """Let leaps end at ``deadline``, before what happens there; once the time changes, at 0."""
        if deadline != self._deadline:
            self._deadline = deadline
            self._plan()

    def land(self) -> None:
        """Call the wakers of now, to which compiled code has leapt.

        Raises what was wrong with waveforms on the way.
        """
        for waves in self.waves:
            waves.native.check()
        if self.wakers:
            self.awaken()
        if self.control.now > _LONGEST:
            self._count_from(self.now)

    def reached(self) -> list[Any]:
        """The edges whose waits are over."""
        places = self.control.reached
        found = self._found.get(places)
        if found is None:
            found = self._found[places] = [
                self.slots[place // 2].edges[place % 2]
                for place in range(2 * len(self.slots))
                if places >> place & 1
            ]
        return found
