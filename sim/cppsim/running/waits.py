"""Edges of signals, the waits of processes for them, and the samples that end a wait.

Compiled code counts the edges of clocks by itself, and stops where the first wait may end.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from amaranth.hdl import ShapeCastable, Signal, Value, ValueCastable
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import DomainReset
from .clocks import NEVER, Condition, EdgeControl
from .slots import SignalSlot
from .state import CompiledState

_PATIENCE = 64
"""Evaluations of a condition in Python after which a compiled program is faster."""


class Edge:
    """A change of a signal of one bit to one level, and the waits for it.

    Attributes
    ----------
    control : EdgeControl
        The fields shared with compiled code.
    waits : dict
        The current waits, in the order in which they began.
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
        """Drop all waits."""
        self.waits.clear()
        self.plan()

    def forget(self) -> None:
        """Attach to the engine's new state."""
        self._attached = self._clocked = False
        # Programs are of the state that they were written for.
        self._watch((), settles=False)
        for wait in self.waits:
            wait.forget()
        if self.waits:
            self._attach()
            self.plan()

    def expect(self, wait: "Wait") -> None:
        """Add a wait."""
        self.waits[wait] = None
        if not self._attached:
            self._attach()
        if wait.target < self._target:
            self._target = self.control.target = wait.target
        if wait.conditions:
            self.plan()

    def drop(self, wait: "Wait") -> None:
        """Remove a wait."""
        # Its target and conditions stay until compiled code stops for nobody: see `reach`.
        self.waits.pop(wait, None)

    def happen(self) -> None:
        """Count a change, and activate all waits."""
        self.control.count += 1
        self._active_triggers.update(self._ended(all_of_them=True))

    def reach(self) -> "list[Wait]":
        """Return the waits that end now; compiled code has counted the change."""
        waits = self._ended(all_of_them=False)
        if not waits:
            # Only here: a process that waits once often waits again.
            self.plan()
        return waits

    def _ended(self, *, all_of_them: bool) -> "list[Wait]":
        """Return all waits, or those that end now; remove them unless they last."""
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
        """Set the count at which compiled code stops for the first wait."""
        target = NEVER
        for wait in self.waits:
            target = min(target, wait.target)
        self._target = self.control.target = target

    def _attach(self) -> None:
        """Register with the clock or, for another signal, as a waker."""
        state = self._engine.state
        slot = state.slots[state.get_signal(self.signal)]
        self._attached = True
        self._clocked = isinstance(slot, SignalSlot) and slot.clock is not None
        if self._clocked:
            slot.edges[self.level] = self
            state.clocks.listen(slot.clock, self.level, self.control)
        else:
            slot.add_waker(self._changed)

    def _changed(self, before: int, after: int) -> bool:
        if (before ^ after) & 1 and after & 1 == self.level:
            self.happen()
        self._attached = bool(self.waits)
        return self._attached

    def plan(self) -> None:
        """Pass targets and conditions of all waits to compiled code."""
        if not self._clocked:
            return
        conditions: dict[Condition, None] = {}
        settles = False
        find = self._engine.state.conditions
        for wait in self.waits:
            for value in wait.conditions:
                found = find(value)
                if found is None:
                    wait.target = 0
                    break
                conditions |= dict.fromkeys(found[0])
                settles |= found[1]
        self._aim()
        self._watch(tuple(conditions), settles=settles)

    def _watch(self, conditions: tuple[Condition, ...], *, settles: bool) -> None:
        if conditions != self._watched:
            self._watched = conditions
            self.control.watch(conditions, settles=settles)


class Sampler:
    """Samples the values of one kind of tick for one process.

    Attributes
    ----------
    domain : ClockDomain
        The clock domain of the ticks.
    edges : list of Edge
        The edges that end a wait: the clock's active one, and that of an asynchronous reset.
    read : callable or None
        Returns the result of a wait that ends now; None until the first wait, and after a change
        of the engine's state.
    reset : callable
        Returns the domain's reset; set with `read`.
    """

    def __init__(self, engine: Any, process: Any, domain: Any, sampled: Sequence[Any]) -> None:
        self.engine, self.process, self.domain = engine, process, domain
        self._sampled = sampled
        self.edges = [engine.edge(domain.clk, int(domain.clk_edge == "pos"))]
        if domain.async_reset and domain.rst is not None:
            self.edges.append(engine.edge(domain.rst, 1))
        self.read: Callable[[Wait], tuple[Any, ...]] | None = None
        self.reset: Callable[[], int] = _never

    def forget(self) -> None:
        """Prepare again at the next wait, as the engine has another state."""
        self.read = None

    def prepare(self) -> Callable[["Wait"], tuple[Any, ...]]:
        """Set and return `read`, and set `reset`. Raises as ``Value.cast``."""
        reads = [_expression_reader(self.engine, expr) for expr in self._sampled]
        reset = self.reset = self._reset_reader()
        if self.domain.async_reset and self.domain.rst is not None:
            self.read = lambda wait: (
                wait.hit(0),
                wait.hit(1) or reset() != 0,
                *[read() for read in reads],
            )
        elif reads:
            self.read = lambda _: (True, reset() != 0, *[read() for read in reads])
        else:
            self.read = lambda _: (True, reset() != 0)
        return self.read

    def _reset_reader(self) -> Callable[[], int]:
        if self.domain.rst is None:
            return _never
        return value_reader(self.engine, self.domain.rst)


class Wait:
    """The wait of one process for one tick.

    Attributes
    ----------
    target : int
        The count of the clock's edge at which the wait may end.
    conditions : tuple of values
        The wait also ends if one of them is not 0.
    hits : list of edges, or None
        The edges that have happened, if there is more than one.
    lasting : bool
        The wait covers more than one tick.
    choosy : bool
        Some ticks do not end it: `over` decides.
    broken : bool
        The wait ended while its process did something else.
    """

    lasting = choosy = False
    target = 0
    conditions: tuple[Value, ...] = ()

    def __init__(self, sampler: "Sampler") -> None:
        self.sampler, self.process = sampler, sampler.process
        self.edges = sampler.edges
        self.hits: list[Edge] | None = [] if len(self.edges) > 1 else None
        self.broken = False
        self.result: tuple[Any, ...] = ()
        if sampler.read is None:
            # An expression that cannot be sampled raises now.
            sampler.prepare()

    def forget(self) -> None:
        """Prepare again, as the engine has another state."""
        self.sampler.forget()

    def begin(self) -> None:
        self.broken = False
        for edge in self.edges:
            edge.expect(self)

    def end(self) -> None:
        for edge in self.edges:
            edge.drop(self)

    def over(self) -> bool:
        """Return whether the latest edge ends the wait."""
        return True

    def run(self) -> None:
        """Sample, and make the process runnable."""
        self.result = (self.sampler.read or self.sampler.prepare())(self)
        if self.hits is not None:
            self.hits.clear()
        self.process.runnable = True
        self.process.waits_on = None

    def hit(self, number: int) -> bool:
        """Return whether the edge of that number has happened."""
        return self.hits is not None and self.edges[number] in self.hits

    def initial_eligible(self) -> bool:
        """Return whether the wait ends at time 0."""
        return False


class Each(Wait):
    """The wait of ``async for``: all ticks, one after the other."""

    lasting = True

    def __init__(self, sampler: "Sampler") -> None:
        super().__init__(sampler)
        self._begun = self._ended = False

    def __aiter__(self) -> "Each":
        return self

    def __anext__(self) -> "Each":
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


class Repeat(Wait):
    """The wait for a number of ticks without a reset."""

    lasting = True

    def __init__(self, sampler: "Sampler", count: int) -> None:
        super().__init__(sampler)
        # An asynchronous reset may follow the tick before the process runs.
        self.choosy = len(self.edges) == 1
        self.target = self._goal = self.edges[0].control.count + count
        if sampler.domain.rst is not None:
            self.conditions = (sampler.domain.rst,)

    def over(self) -> bool:
        return self.done() or bool(self._resets())

    def _resets(self) -> int:
        if self.sampler.read is None:
            self.sampler.prepare()
        return self.sampler.reset()

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


class Until(Repeat):
    """The wait for ticks without a reset until ``condition`` is not 0."""

    def __init__(self, sampler: "Sampler", condition: Value) -> None:
        super().__init__(sampler, 1)
        self._condition, self._patience = condition, _PATIENCE
        self._met = False
        self._holds, frequent = passing_reader(sampler.engine, condition)
        if frequent:
            self._compile_condition()
        else:
            self.target = 0

    def forget(self) -> None:
        super().forget()
        self._holds, _ = passing_reader(self.sampler.engine, self._condition)

    def _compile_condition(self) -> None:
        """Let compiled code evaluate the condition, if it can."""
        self.target = NEVER
        self.conditions += (self._condition,)

    def over(self) -> bool:
        if self._holds() or self._resets():
            return True
        if not self.target:
            self._patience -= 1
            if not self._patience:
                self._compile_condition()
                self.edges[0].plan()
        return False

    def run(self) -> None:
        self._met = bool(self._holds())
        super().run()

    def done(self) -> bool:
        return self._met


def _never() -> int:
    return 0


def value_reader(engine: Any, value: Value) -> Callable[[], int]:
    """Return a function that reads ``value``; a wait stores it for all its edges."""
    if isinstance(engine.state, CompiledState):
        readers = engine.state.readers
        return readers.of(value) if isinstance(value, Signal) else partial(readers.read, value)
    return lambda: int(engine.get_value(value))


def passing_reader(engine: Any, value: Value) -> tuple[Callable[[], int], bool]:
    """Return a reader of a value that may be new each time, and whether a program reads it."""
    if isinstance(engine.state, CompiledState):
        return engine.state.readers.passing(value)
    return lambda: int(engine.get_value(value)), isinstance(value, Signal)


def _expression_reader(engine: Any, expr: Any) -> Callable[[], Any]:
    """Return a reader of ``expr``, converted by its shape. Raises as ``Value.cast``."""
    value = Value.cast(expr)
    read = value_reader(engine, value)
    shape = expr.shape() if isinstance(expr, ValueCastable) else None
    if isinstance(shape, ShapeCastable):
        return lambda: shape.from_bits(read())
    return read
