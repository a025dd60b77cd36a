"""Triggers other than ticks: Amaranth's, with the bits whose changes compiled code looks for."""

from collections.abc import Generator
from typing import Any

from amaranth.hdl import ShapeCastable, Signal

from ..amaranth_internals import ChangedTrigger, PyTriggerState, SampleTrigger, is_broken
from .slots import SignalSlot

_SAMPLED = (SampleTrigger, ChangedTrigger)


class _Waker:
    """Activates a trigger at changes of a signal.

    Attributes
    ----------
    rising, falling : int
        The bits whose changes activate it.
    """

    def __init__(self, state: "Trigger", trigger: Any, rising: int, falling: int) -> None:
        self.rising, self.falling = rising, falling
        self._state, self._trigger = state, trigger

    def __call__(self, before: int, after: int) -> bool:
        state = self._state
        if is_broken(state):
            return False
        hit = (after & self.rising) | (~after & self.falling)
        if not (before ^ after) & hit:
            return True
        state.hit(self._trigger)
        return not state.once


class Trigger(PyTriggerState):
    """The wait of one process for a combination of triggers.

    Attributes
    ----------
    once : bool
        The first activation ends it.
    """

    def __init__(self, engine: Any, combination: Any, pending: Any, *, oneshot: bool) -> None:
        self.once = oneshot
        self._wakers: list[tuple[SignalSlot, _Waker]] = []
        super().__init__(engine, combination, pending, oneshot=oneshot)

    def add_changed_waker(self, trigger: Any) -> None:
        self._add(trigger.signal, _Waker(self, None, -1, -1))

    def add_edge_waker(self, trigger: Any) -> None:
        bits = 1 << trigger.bit
        rising, falling = (bits, 0) if trigger.polarity else (0, bits)
        self._add(trigger.signal, _Waker(self, trigger, rising, falling))

    def _add(self, signal: Signal, waker: _Waker) -> None:
        slot = self._engine.state.add_signal_waker(signal, waker)
        if isinstance(slot, SignalSlot):
            self._wakers.append((slot, waker))

    def compute_result(self) -> None:
        state, read = self._engine.state, self._engine.get_value
        result: list[Any] = []
        for trigger in self._combination._triggers:
            if not isinstance(trigger, _SAMPLED):
                result.append(trigger in self._triggers_hit)
                continue
            value = trigger.value
            if type(value) is Signal:
                found = state.slots[state.get_signal(value)].curr
            else:
                found = read(value)
            shape = trigger.shape
            result.append(shape.from_bits(found) if isinstance(shape, ShapeCastable) else found)
        self._result = tuple(result)

    def hit(self, trigger: Any) -> None:
        """Activate it; ``trigger`` is an edge that has happened, or None."""
        if trigger is not None:
            self._triggers_hit.add(trigger)
        self.activate()

    def __await__(self) -> Generator[Any, None, Any]:
        result = yield from super().__await__()
        if self.once:
            # Nothing can break it any more.
            for slot, waker in self._wakers:
                slot.drop_waker(waker)
        return result
