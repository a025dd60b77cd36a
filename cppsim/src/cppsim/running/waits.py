"""Edges of signals, the waits of processes for them, and the samples that end a wait.

Compiled code counts the edges of clocks by itself, and stops where the first wait may end.
"""

from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from operator import call
from typing import Any

from amaranth.hdl import ShapeCastable, Signal, Value, ValueCastable
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import DomainReset, ast
from ..native.probe import ProbeProgram
from ..structure import Structure
from .clocks import NEVER, Condition, EdgeControl
from .slots import SignalSlot
from .state import CompiledState

_REMEMBERED = 256
"""Limit of the structures of conditions with a wait. A testbench has as many as it has lines."""

_FREQUENT = (Signal, ast.Operator, ast.Slice)
"""Types of values for which ``isinstance``, which takes five times as long, is not called."""

SampleReader = Callable[[], Any]
"""A function that returns a sampled value, in the form of its shape."""


class Edge:
    """A change of a signal of one bit to one level, and the waits for it.

    Attributes
    ----------
    control : EdgeControl
        The fields shared with compiled code.
    waits : dict
        The current waits, in the order in which they began.
    bits : tuple of int
        As a waker of its signal: the bits that rise, and those that fall.
    """

    def __init__(self, engine: Any, signal: Signal, level: int) -> None:
        self.signal, self.level = signal, level
        self.bits = (level, 1 - level)
        self.control = EdgeControl(target=NEVER)
        self.waits: dict[Wait, None] = {}
        self._engine, self._active_triggers = engine, engine.active_triggers
        self._attached = self._clocked = False
        self._target = NEVER
        self._conditions: tuple[Condition, ...] = ()
        self._planned: set[Wait] = set()
        """The waits whose conditions compiled code evaluates."""

    def reset(self) -> None:
        """Drop all waits."""
        self.waits.clear()
        self.plan()

    def expect(self, wait: "Wait") -> None:
        """Add a wait."""
        self.waits[wait] = None
        if not self._attached:
            self._attach()
        if wait.target < self._target:
            self._target = self.control.target = wait.target
        if wait.conditions and wait not in self._planned:
            self.plan()

    def drop(self, wait: "Wait") -> None:
        """Remove a wait."""
        # Its target and conditions stay until compiled code stops without a wait: see `reach`.
        self.waits.pop(wait, None)

    def happen(self) -> None:
        """Count a change, and activate all waits."""
        self.control.count += 1
        self._active_triggers.update(self._ended(list(self.waits)))

    def reach(self) -> "list[Wait]":
        """Return the waits that end now; compiled code has counted the change."""
        waits = list(self.waits)
        wait = waits[0] if len(waits) == 1 else None
        if wait is not None and wait.process.waits_on is wait and wait.hits is None:
            # Nearly always, and in half of the time.
            if not wait.lasting:
                self.waits.clear()
            elif wait.choosy and not wait.over():
                waits = []
        else:
            waits = self._ended([x for x in waits if not x.choosy or x.over()])
        if not waits:
            # Only here: a process that waits once often waits again.
            self.plan()
        return waits

    def _ended(self, waits: "list[Wait]") -> "list[Wait]":
        """Return those of ``waits`` that are not broken; remove them unless they last."""
        found = []
        for wait in waits:
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
            slot.add_waker(self)

    def __call__(self, before: int, after: int) -> bool:
        if (before ^ after) & 1 and after & 1 == self.level:
            self.happen()
        self._attached = bool(self.waits)
        return self._attached

    def plan(self) -> None:
        """Pass targets and conditions of all waits to compiled code."""
        if not self._clocked:
            return
        self._target = self.control.target = min((x.target for x in self.waits), default=NEVER)
        self._planned = set(self.waits)
        self._stop_when(tuple(dict.fromkeys(x for wait in self.waits for x in wait.conditions)))

    def _stop_when(self, conditions: tuple[Condition, ...]) -> None:
        if conditions != self._conditions:
            self._conditions = conditions
            self.control.stop_when(conditions)


class Sampler:
    """The edges, the reset and the waits that all ticks of a domain share in one process.

    Attributes
    ----------
    domain : ClockDomain
        The clock domain of the ticks.
    edges : list of Edge
        The edges that end a wait: the clock's active one, and that of an asynchronous reset.
    once : Wait
        The wait for one tick.
    reset : callable
        Returns the domain's reset.
    """

    def __init__(self, engine: Any, process: Any, domain: Any) -> None:
        self.engine, self.process, self.domain = engine, process, domain
        self.edges = [engine.edge(domain.clk, int(domain.clk_edge == "pos"))]
        if domain.async_reset and domain.rst is not None:
            self.edges.append(engine.edge(domain.rst, 1))
        self.once = Wait(self)
        self._untils: dict[Any, Until] = {}
        self._state = engine.state
        reset = domain.rst
        self._value_reader: Callable[[Value], SampleReader] = (
            self._state.readers.passing
            if isinstance(self._state, CompiledState)
            else lambda value: lambda: int(engine.get_value(value))
        )
        self.reset: SampleReader = _never if reset is None else self._value_reader(reset)

    @cached_property
    def reset_conditions(self) -> Sequence[Condition] | None:
        """Conditions for the domain's reset; None if compiled code cannot evaluate it."""
        if self.domain.rst is None or not isinstance(self._state, CompiledState):
            return ()
        return self._state.conditions(self.domain.rst)

    def reader(self, expr: Any) -> SampleReader:
        """Return a reader of ``expr``, converted by its shape. Raises as ``Value.cast``."""
        if type(expr) in _FREQUENT or isinstance(expr, Value):
            return self._value_reader(expr)
        read = self._value_reader(Value.cast(expr))
        shape = expr.shape() if isinstance(expr, ValueCastable) else None
        if isinstance(shape, ShapeCastable):
            return lambda: shape.from_bits(read())
        return read

    def until(self, tick: Any, condition: Value, structure: Structure | None) -> "Until":
        """Return a wait for ``condition``: one object for all conditions of one structure."""
        if structure is None:
            return Until(tick, condition, None)
        key, constants = structure
        found = self._untils.get(key)
        if found is None:
            if len(self._untils) == _REMEMBERED:
                self._untils.clear()
            found = self._untils[key] = Until(tick, condition, structure)
        found.aim(tick, condition, constants)
        return found


class Wait:
    """The wait of one process for one tick.

    Attributes
    ----------
    tick : Tick
        The tick, whose expressions are sampled when the wait ends.
    target : int
        The count of the clock's edge at which the wait may end.
    conditions : tuple of Condition
        The wait also ends if one of them is true.
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
    conditions: tuple[Condition, ...] = ()
    tick: Any

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.process = sampler, sampler.process
        self.edges = sampler.edges
        self.hits: list[Edge] | None = [] if len(self.edges) > 1 else None
        self.broken = False
        self.result: tuple[Any, ...] = ()

    def begin(self) -> None:
        """Begin to wait for the tick. Raises for an expression that cannot be sampled."""
        if self.tick.reads is None:
            self.tick.prepare()
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
        reads = self.tick.reads
        if reads is None:
            reads = self.tick.prepare()
        hit, reset = True, self.sampler.reset() != 0
        if self.hits is not None:
            hit, reset = self.edges[0] in self.hits, reset or self.edges[1] in self.hits
            self.hits.clear()
        self.result = (hit, reset, *map(call, reads)) if reads else (hit, reset)
        self.process.runnable = True
        self.process.waits_on = None

    def initial_eligible(self) -> bool:
        """Return whether the wait ends at time 0."""
        return False


class Each(Wait):
    """The wait of ``async for``: all ticks, one after the other."""

    lasting = True

    def __init__(self, tick: Any) -> None:
        super().__init__(tick.sampler)
        self.tick = tick
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

    def __init__(self, tick: Any, count: int) -> None:
        super().__init__(tick.sampler)
        self.tick = tick
        # An asynchronous reset may follow the tick before the process runs.
        self.choosy = len(self.edges) == 1
        self._goal = self.edges[0].control.count + count
        self._met = False
        self._prepare()

    def _prepare(self) -> None:
        """Set target and conditions for the engine's state."""
        self._stop_at(self._goal, ())

    def _stop_at(self, count: int, conditions: Sequence[Condition]) -> None:
        """Let compiled code stop at ``count``, at a reset, or if one of ``conditions`` is true."""
        resets = self.sampler.reset_conditions
        if resets is None:
            self.target, self.conditions = 0, ()
        else:
            self.target, self.conditions = count, (*resets, *conditions)

    def over(self) -> bool:
        return self.edges[0].control.count >= self._goal or bool(self.sampler.reset())

    def run(self) -> None:
        self._met = self.edges[0].control.count >= self._goal
        Wait.run(self)

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        self.begin()
        try:
            while True:
                yield self
                if self.broken:
                    raise BrokenTrigger
                if self.result[1]:
                    raise DomainReset
                if self._met:
                    return self.result[2:]
        finally:
            self.end()


class Until(Repeat):
    """The wait for ticks without a reset until a condition is not 0.

    It serves all conditions of one structure, one after the other.
    """

    def __init__(self, tick: Any, condition: Value, structure: Structure | None) -> None:
        self._condition = condition
        self._structure = structure
        self._constants: tuple[int, ...] = () if structure is None else structure[1]
        super().__init__(tick, 1)

    def aim(self, tick: Any, condition: Value, constants: tuple[int, ...]) -> None:
        """Wait for this tick and condition from now on."""
        self.tick, self._condition, self._met = tick, condition, False
        if constants != self._constants:
            self._constants = constants
            for program in self._programs:
                program.hold(constants)

    def _prepare(self) -> None:
        self.target, self.conditions = 0, ()
        self._programs: list[ProbeProgram] = []
        self._result: memoryview | None = None
        state, engine = self.sampler.engine.state, self.sampler.engine
        self._read: Callable[[Value, tuple[int, ...]], int] = lambda x, _: int(engine.get_value(x))
        if not isinstance(state, CompiledState):
            return
        self._patience = state.tuning.evaluations
        if self._structure is None:
            return
        reader = state.readers.of_structure(self._condition, self._structure)
        self._read = reader.read
        if reader.frequent or isinstance(self._condition, Signal):
            self._compile()

    def _compile(self) -> None:
        """Let compiled code evaluate the condition, if it can."""
        found = self.sampler.engine.state.conditions(self._condition)
        if found is not None:
            self._stop_at(NEVER, found)
            self._programs = [x.program for x in found if x.program is not None]
            if self._programs:
                # Compiled code has just evaluated it at this edge.
                self._result = self._programs[0].result

    def over(self) -> bool:
        result = self._result
        self._met = bool(result[0] if result else self._read(self._condition, self._constants))
        if not self.target:
            self._patience -= 1
            if not self._patience:
                self._compile()
                self.edges[0].plan()
        return self._met or bool(self.sampler.reset())

    def run(self) -> None:
        self._met = self._met or bool(self._read(self._condition, self._constants))
        Wait.run(self)


def _never() -> int:
    return 0
