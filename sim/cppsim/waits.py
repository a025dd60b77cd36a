"""Waits for ticks of a clock domain, without the triggers that Amaranth's own make for each.

They show, and raise, what Amaranth's do.
"""

import operator
from collections.abc import Callable, Generator
from typing import Any

from amaranth.hdl import Shape, ShapeCastable, Signal, Value, ValueCastable, ValueLike
from amaranth.sim import BrokenTrigger

from .clocks import NEVER, EdgeControl
from .private import DomainReset, TickTrigger
from .state import CompiledState, SignalSlot

__all__ = ["Edge", "Tick", "Wait"]

_KEPT = 64
"""Ticks that a tick keeps for whoever samples the same again."""


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
        self._engine, self._active_triggers = engine, engine._active_triggers
        self._attached = self._clocked = False
        self._target = NEVER
        self._watched: tuple[tuple[int, int], ...] = ()

    def reset(self) -> None:
        """Nobody waits any longer."""
        self.waits.clear()
        self._plan()

    def forget(self) -> None:
        """The engine's state is another one."""
        self._attached = self._clocked = False
        for wait in self.waits:
            wait.tick.forget()
        if self.waits:
            self._attach()
            self._plan()

    def expect(self, wait: "Wait") -> None:
        """``wait`` is to be told."""
        self.waits[wait] = None
        if not self._attached:
            self._attach()
        if wait.target < self._target:
            self._target = self.control.target = wait.target
        if wait.conditions:
            self._plan()

    def drop(self, wait: "Wait") -> None:
        """``wait`` has ended."""
        self.waits.pop(wait, None)
        self._plan()

    def happen(self) -> None:
        """Tell everybody."""
        self.control.count += 1
        self._active_triggers.update(self._told(list(self.waits)))

    def reach(self) -> "list[Wait]":
        """Those whose wait is over; compiled code has kept count."""
        waits = self._told([wait for wait in self.waits if wait.over()])
        if not waits:
            # Only here, as who waits once often does so again.
            self._aim()
        return waits

    def _told(self, waits: "list[Wait]") -> "list[Wait]":
        """Those of ``waits`` that hear of it."""
        found = []
        for wait in waits:
            if wait.process.waits_on is wait:
                wait.hits.append(self)
                found.append(wait)
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

    def _plan(self) -> None:
        """Tell compiled code of what is waited for."""
        if not self._clocked:
            return
        conditions: dict[tuple[int, int], None] = {}
        settles = False
        for wait in self.waits:
            for signal in wait.conditions:
                slot = self._engine.state.slot(signal)
                found = slot.conditions() if slot is not None else []
                if not found:
                    wait.target = 0
                    break
                conditions |= dict.fromkeys(found)
                settles |= slot.settled
        self._aim()
        if tuple(conditions) != self._watched:
            self._watched = tuple(conditions)
            self.control.watch(self._watched, settles=settles)


class Tick(TickTrigger):
    """Amaranth's ``TickTrigger``; one for all ticks of a process that sample the same."""

    def __init__(self, engine: Any, process: Any, *, domain: Any, sampled: Any = ()) -> None:
        super().__init__(engine, process, domain=domain, sampled=sampled)
        self.process = process
        self._once: Wait | None = None
        self._more: dict[tuple[int, ...], Tick] = {}
        self.sampler: Callable[[Wait], tuple[Any, ...]] | None = None

    @property
    def domain(self) -> Any:
        """The clock domain."""
        return self._domain

    def sample(self, *exprs: Any) -> "Tick":
        # What is in the dictionary keeps its expressions, so that no others get their numbers.
        key = tuple(map(id, exprs))
        found = self._more.get(key)
        if found is None:
            if len(self._more) == _KEPT:
                self._more.clear()
            sampled = (*self._sampled, *exprs)
            found = Tick(self._engine, self.process, domain=self._domain, sampled=sampled)
            self._more[key] = found
        return found

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        once = self._once
        if once is None:
            once = self._once = Wait(self)
        once.broken = False
        for edge in once.edges:
            edge.expect(once)
        yield once
        if once.broken:
            raise BrokenTrigger
        return once.result

    def __aiter__(self) -> "_Ticks":
        return _Ticks(self)

    async def repeat(self, count: int) -> tuple[Any, ...]:
        count = operator.index(count)
        if count <= 0:
            return tuple(await super().repeat(count))  # which raises
        return await _Repeat(self, count)

    async def until(self, condition: ValueLike) -> tuple[Any, ...]:
        plain = not isinstance(condition, ValueCastable) or isinstance(condition.shape(), Shape)
        if not isinstance(condition, ValueLike) or not plain:
            return tuple(await super().until(condition))  # which raises
        return await _Until(self.sample(condition), Value.cast(condition))

    # --- for waits ----------------------------------------------------------------------------

    def edges(self) -> "list[Edge]":
        """What ends a wait: the clock's active edge, and an asynchronous reset."""
        domain = self._domain
        edges = [self._engine.edge(domain.clk, int(domain.clk_edge == "pos"))]
        if domain.async_reset and domain.rst is not None:
            edges.append(self._engine.edge(domain.rst, 1))
        return edges

    def forget(self) -> None:
        """The engine's state is another one."""
        self.sampler = None

    def made_sampler(self, wait: "Wait") -> "Callable[[Wait], tuple[Any, ...]]":
        """What gives the result of a wait that ends now."""
        self.sampler = self._sampler(len(wait.edges))
        return self.sampler

    def _sampler(self, edges: int) -> "Callable[[Wait], tuple[Any, ...]]":
        reads = [_sampler(self._engine, expr) for expr in self._sampled]
        reset = self.reset_reader()
        if edges > 1:
            return lambda wait: (
                wait.edges[0] in wait.hits,
                bool(wait.edges[1] in wait.hits or reset()),
                *[read() for read in reads],
            )
        if reads:
            return lambda _: (True, reset() != 0, *[read() for read in reads])
        return lambda _: (True, reset() != 0)

    def reset_reader(self) -> Callable[[], int]:
        """What gives the level of the domain's reset."""
        if self._domain.rst is None:
            return lambda: 0
        return _value_reader(self._engine, self._domain.rst)


def _sampler(engine: Any, expr: Any) -> Callable[[], Any]:
    """What gives the value of ``expr``, as its shape wants it. Raises as ``Value.cast``."""
    value = Value.cast(expr)
    read = _value_reader(engine, value)
    shape = expr.shape() if isinstance(expr, ValueCastable) else None
    if isinstance(shape, ShapeCastable):
        return lambda: shape.from_bits(read())
    return read


def _value_reader(engine: Any, value: Value) -> Callable[[], int]:
    if isinstance(engine.state, CompiledState) and isinstance(value, Signal):
        return engine.state.readers.of(value)
    return lambda: int(engine.get_value(value))


class Wait:
    """Of one process for one tick.

    Attributes
    ----------
    target : int
        The count of the clock's edge at which it may be over.
    conditions : tuple of signals
        It is also over where one of them is not 0.
    hits : list of edges
        What has happened.
    broken : bool
        It was over while its process did something else.
    """

    lasting = False
    target = 0
    conditions: tuple[Signal, ...] = ()

    def __init__(self, tick: Tick) -> None:
        self.tick, self.process = tick, tick.process
        self.edges = tick.edges()
        self.hits: list[Edge] = []
        self.broken = False
        self.result: tuple[Any, ...] = ()

    def begin(self) -> None:
        self.broken = False
        for edge in self.edges:
            edge.expect(self)

    def end(self) -> None:
        for edge in self.edges:
            edge.drop(self)

    def over(self) -> bool:
        """Whether the process is to hear of the edge that has just been."""
        return True

    def run(self) -> None:
        """Sample, and let the process go on."""
        self.result = (self.tick.sampler or self.tick.made_sampler(self))(self)
        self.hits.clear()
        self.process.runnable = True
        self.process.waits_on = None

    def initial_eligible(self) -> bool:
        """Whether it is over at the beginning."""
        return False


class _Ticks(Wait):
    """All ticks, one after the other: what ``async for`` takes."""

    lasting = True

    def __init__(self, tick: Tick) -> None:
        super().__init__(tick)
        self._begun = self._ended = False

    def __aiter__(self) -> "_Ticks":
        return self

    def __anext__(self) -> "_Ticks":
        if self._ended:
            raise StopAsyncIteration
        return self

    async def aclose(self) -> None:
        self._ended = True
        self.end()

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        if not self._begun:
            self._begun = True
            self.begin()
        if not self.broken:
            yield self
        if self.broken:
            self._ended = True
            raise BrokenTrigger
        return self.result


class _Repeat(Wait):
    """A number of ticks without a reset."""

    lasting = True

    def __init__(self, tick: Tick, count: int) -> None:
        super().__init__(tick)
        self.target = self._goal = self.edges[0].control.count + count
        self._resets = tick.reset_reader()
        if tick.domain.rst is not None:
            self.conditions = (tick.domain.rst,)

    def over(self) -> bool:
        return self.done() or bool(self._resets())

    def done(self) -> bool:
        return bool(self.edges[0].control.count >= self._goal)

    def values(self) -> tuple[Any, ...]:
        return self.result[2:]

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        self.begin()
        try:
            while True:
                yield self
                if self.broken:
                    raise BrokenTrigger
                if self.result[1]:
                    raise DomainReset
                if self.done():
                    return self.values()
        finally:
            self.end()


class _Until(_Repeat):
    """Ticks without a reset until the last sample is not 0."""

    def __init__(self, tick: Tick, condition: Value) -> None:
        super().__init__(tick, 1)
        self.target = NEVER if isinstance(condition, Signal) else 0
        if isinstance(condition, Signal):
            self.conditions += (condition,)

    def over(self) -> bool:
        return True

    def done(self) -> bool:
        return bool(self.result[-1])

    def values(self) -> tuple[Any, ...]:
        return self.result[2:-1]
