"""Triggers other than ticks: Amaranth's, with the bits whose changes compiled code looks for."""

from collections.abc import Generator
from typing import Any

from amaranth.hdl import ShapeCastable, Signal

from ..amaranth_internals import ChangedTrigger, PyTriggerState, SampleTrigger, triggers_of
from .slots import SignalSlot

_SAMPLED = (SampleTrigger, ChangedTrigger)


class _Waker:
    """Activates a trigger at changes of a signal.

    Attributes
    ----------
    bits : tuple of int
        The bits that activate it when they rise, and when they fall.
    """

    __slots__ = ("_edge", "_trigger", "bits")

    def __init__(self, trigger: "Trigger", edge: Any, bits: tuple[int, int]) -> None:
        self.bits = bits
        self._trigger, self._edge = trigger, edge

    def __call__(self, before: int, after: int) -> bool:
        if self._edge is not None:
            rising, falling = self.bits
            if not (before ^ after) & (after & rising | ~after & falling):
                return True
        return self._trigger.happen(self._edge)


class Trigger(PyTriggerState):
    """The wait of one process for a combination of triggers."""

    _broken: bool
    _oneshot: bool
    _triggers_hit: set[Any]

    def __init__(self, engine: Any, combination: Any, pending: Any, *, oneshot: bool) -> None:
        self._wakers: list[tuple[SignalSlot, _Waker]] = []
        super().__init__(engine, combination, pending, oneshot=oneshot)

    def add_changed_waker(self, trigger: Any) -> None:
        self._add(trigger.signal, _Waker(self, None, (-1, -1)))

    def add_edge_waker(self, trigger: Any) -> None:
        bits = 1 << trigger.bit
        wanted = (bits, 0) if trigger.polarity else (0, bits)
        self._add(trigger.signal, _Waker(self, trigger, wanted))

    def _add(self, signal: Signal, waker: _Waker) -> None:
        slot = self._engine.state.add_signal_waker(signal, waker)
        if isinstance(slot, SignalSlot):
            self._wakers.append((slot, waker))

    def happen(self, edge: Any) -> bool:
        """Activate it, by an edge trigger or None; return whether it waits for more."""
        if self._broken:
            return False
        if edge is not None:
            self._triggers_hit.add(edge)
        self.activate()
        return not self._oneshot

    def compute_result(self) -> None:
        state, read = self._engine.state, self._engine.get_value
        result: list[Any] = []
        for trigger in triggers_of(self._combination):
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

    def __await__(self) -> Generator[Any, None, Any]:
        result = yield from super().__await__()
        if self._oneshot:
            # Nothing can break it any more.
            for slot, waker in self._wakers:
                slot.drop_waker(waker)
        return result
