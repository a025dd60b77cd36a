"""Edges of signals, and who waits for them; those of clocks are also known to compiled code."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Signal

from .clocks import NEVER, Condition, EdgeControl
from .slots import SignalSlot

if TYPE_CHECKING:
    from .waits import Wait

__all__ = ["Edge"]


class Edge:
    """A change of a signal of one bit to one level, and who waits for it.

    Attributes
    ----------
    control : EdgeControl
        What compiled code needs to know of it.
    waits : dict
        Who waits, in the order in which they began.
    """

    def __init__(self, engine: Any, signal: Signal, level: int) -> None:
        self.signal, self.level = signal, level
        self.control = EdgeControl(target=NEVER)
        self.waits: dict[Wait, None] = {}
        self._engine, self._active_triggers = engine, engine.active_triggers
        self._attached = self._clocked = False
        self._target = NEVER
        self._watched: tuple[Condition, ...] = ()

    def reset(self) -> None:
        """Nobody waits any longer."""
        self.waits.clear()
        self.plan()

    def forget(self) -> None:
        """The engine's state is another one."""
        self._attached = self._clocked = False
        for wait in self.waits:
            wait.tick.forget()
        if self.waits:
            self._attach()
            self.plan()

    def expect(self, wait: "Wait") -> None:
        """``wait`` is to be told."""
        self.waits[wait] = None
        if not self._attached:
            self._attach()
        if wait.target < self._target:
            self._target = self.control.target = wait.target
        if wait.conditions:
            self.plan()

    def drop(self, wait: "Wait") -> None:
        """``wait`` has ended."""
        self.waits.pop(wait, None)
        self.plan()

    def happen(self) -> None:
        """Tell everybody."""
        self.control.count += 1
        self._active_triggers.update(self._tell(all_of_them=True))

    def reach(self) -> "list[Wait]":
        """Those whose wait is over; compiled code has kept count."""
        waits = self._tell(all_of_them=False)
        if not waits:
            # Only here, as who waits once often does so again.
            self._aim()
        return waits

    def _tell(self, *, all_of_them: bool) -> "list[Wait]":
        """Those that hear of it: all, or those whose wait is over."""
        found = []
        for wait in tuple(self.waits):
            if wait.choosy and not all_of_them and not wait.over():
                continue
            if wait.process.waits_on is wait:
                found.append(wait)
                if wait.hits is not None:
                    wait.hits.append(self)
                if wait.lasting:
                    continue
            else:
                wait.broken = True
            del self.waits[wait]
        return found

    def _aim(self) -> None:
        """Let compiled code stop where the first wait may be over."""
        self._target = min((wait.target for wait in self.waits), default=NEVER)
        self.control.target = self._target

    def _attach(self) -> None:
        """Hear of the signal."""
        state = self._engine.state
        slot = state.slots[state.get_signal(self.signal)]
        self._attached = True
        self._clocked = isinstance(slot, SignalSlot) and slot.clock is not None
        if self._clocked:
            slot.edges[self.level] = self
            state.clocks.listen(slot.clock, self.level, self.control)
        else:
            slot.add_waker(self._hear)

    def _hear(self, before: int, after: int) -> bool:
        if (before ^ after) & 1 and after & 1 == self.level:
            self.happen()
        self._attached = bool(self.waits)
        return self._attached

    def plan(self) -> None:
        """Tell compiled code of what is waited for."""
        if not self._clocked:
            return
        conditions: dict[Condition, None] = {}
        settles = False
        for wait in self.waits:
            for value in wait.conditions:
                found = self._engine.state.conditions(value)
                if found is None:
                    wait.target = 0
                    break
                conditions |= dict.fromkeys(found[0])
                settles |= found[1]
        self._aim()
        if tuple(conditions) != self._watched:
            self._watched = tuple(conditions)
            self.control.watch(self._watched, settles=settles)
