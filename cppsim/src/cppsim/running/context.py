"""The contexts of testbenches and processes: Amaranth's, with shorter paths for common calls."""

import operator
from collections.abc import Callable, Generator
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any

from amaranth.hdl import Shape, Signal, Value, ValueCastable, ValueLike
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import (
    AsyncProcess,
    ProcessContext,
    PyTriggerState,
    SimulatorContext,
    TestbenchContext,
    TickTrigger,
    domain_of,
)
from ..structure import structure_of
from .state import CompiledState
from .waits import Each, Repeat, Sampler, SampleReader, Wait

_CACHED = 64
"""The number of sampling ticks that a tick caches, and of changes that a context caches."""


class Tick(TickTrigger):
    """Amaranth's ``TickTrigger``; one object for all ticks of a process with the same samples."""

    def __init__(self, sampler: Sampler, sampled: tuple[Any, ...] = ()) -> None:
        # What the base class sets, in a third of the time.
        self._engine, self._process = sampler.engine, sampler.process
        self._domain, self._sampled = sampler.domain, sampled
        self.sampler = sampler
        self.reads: list[SampleReader] | None = None
        """Readers of the sampled expressions; None until they are needed."""
        self._more: dict[tuple[int, ...], Tick] = {}

    def prepare(self) -> list[SampleReader]:
        """Set and return `reads`. Raises as ``Value.cast``."""
        reads = self.reads = list(map(self.sampler.reader, self._sampled))
        return reads

    @property
    def domain(self) -> Any:
        """The clock domain."""
        return self._domain

    def sample(self, *exprs: Any) -> "Tick":
        # A cached tick holds its expressions, so that their ``id`` is not reused.
        key = tuple(map(id, exprs))
        found = self._more.get(key)
        if found is None:
            if len(self._more) == _CACHED:
                self._more.clear()
            found = self._more[key] = Tick(self.sampler, (*self._sampled, *exprs))
        return found

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        once = self.sampler.once
        once.tick = self
        once.begin()
        yield once
        if once.broken:
            raise BrokenTrigger
        return once.result

    def __aiter__(self) -> Each:
        return Each(self)

    async def repeat(self, count: int) -> tuple[Any, ...]:
        count = operator.index(count)
        if count <= 0:
            return tuple(await super().repeat(count))  # which raises
        return await Repeat(self, count)

    async def until(self, condition: ValueLike) -> tuple[Any, ...]:
        value: Any = condition
        structure = structure_of(value)
        if structure is None and not isinstance(condition, Value):
            plain = not isinstance(condition, ValueCastable) or isinstance(condition.shape(), Shape)
            if not isinstance(condition, ValueLike) or not plain:
                return tuple(await super().until(condition))  # which raises
            value = Value.cast(condition)
            structure = structure_of(value)
        return await self.sampler.until(self, value, structure)


_TRIGGERS = (Wait, PyTriggerState)


class _Ticking(SimulatorContext):
    """A context that reuses the trigger objects of ticks, and those of changes."""

    _engine: Any
    _process: Any

    def __init__(self, design: Any, engine: Any, process: Any) -> None:
        super().__init__(design, engine, process)
        self._ticks: dict[Any, Tick] = {}
        self._changes: dict[tuple[int, ...], Any] = {}

    def tick(self, domain: Any = "sync", *, context: Any = None) -> Tick:
        if context is None and domain in self._ticks:
            return self._ticks[domain]
        trigger = super().tick(domain, context=context)
        tick = Tick(Sampler(self._engine, self._process, domain_of(trigger)))
        if context is None:
            self._ticks[domain] = tick
        return tick

    def changed(self, *signals: Any) -> Any:
        if any(type(signal) is not Signal for signal in signals):
            return super().changed(*signals)
        # A cached combination holds its signals, so that their ``id`` is not reused.
        key = tuple(map(id, signals))
        found = self._changes.get(key)
        if found is None:
            if len(self._changes) == _CACHED:
                self._changes.clear()
            found = self._changes[key] = super().changed(*signals)
        return found


class _ProcessContext(_Ticking, ProcessContext):
    """The context of a process."""

    def set(self, expr: Any, value: Any) -> None:
        if type(expr) is Signal and type(value) is int:
            self._engine.set_value(expr, value)
        else:
            super().set(expr, value)


class _TestbenchContext(_Ticking, TestbenchContext):
    """The context of a testbench; it reads and writes signals in the model's memory."""

    def __init__(self, design: Any, engine: Any, process: Any) -> None:
        super().__init__(design, engine, process)
        # By the identity of signals, which the design holds.
        self._writers: dict[int, Callable[[int], bool]] = {}
        state = engine.state
        self._state = state if isinstance(state, CompiledState) else None
        self._readers = self._state.readers.known if self._state else {}

    def get(self, expr: Any) -> Any:
        read = self._readers.get(id(expr))
        if read is not None:
            return read()
        if self._state is not None and isinstance(expr, Value):
            return self._state.readers.read(expr)
        return super().get(expr)

    def set(self, expr: Any, value: Any) -> None:
        write = self._writers.get(id(expr))
        if write is None:
            slot = self._state.slot(expr) if type(expr) is Signal and self._state else None
            if slot is not None and slot.combinational_only and not slot.is_comb:
                self._writers[id(expr)] = slot.writer()
        elif type(value) is int and self._engine.unwatched() and write(value):
            return
        if type(expr) is Signal and type(value) is int:
            self._engine.set_value(expr, value)
            self._engine.step_design()
        else:
            super().set(expr, value)


class Process(AsyncProcess):
    """A testbench or process, with a context of its own."""

    coroutine: Any = None

    def __init__(
        self, design: Any, engine: Any, constructor: Any, *, testbench: bool, background: bool
    ) -> None:
        context = _TestbenchContext if testbench else _ProcessContext
        self.constructor = constructor
        self.context = context(design, engine, self)
        self.background = background
        self.reset()

    def reset(self) -> None:
        waiting = self.coroutine
        super().reset()
        if waiting is not None and getcoroutinestate(waiting) == CORO_CREATED:
            # Python warns of a coroutine that was never awaited.
            self.coroutine.close()
            self.coroutine = waiting

    def run(self) -> None:
        if self.first_await:
            super().run()
        else:
            try:
                self.waits_on = self.coroutine.send(None)
            except StopIteration:
                self.critical = False
                self.waits_on = self.coroutine = None
        waits_on = self.waits_on
        if waits_on is not None and not isinstance(waits_on, _TRIGGERS):
            raise AssertionError("Async processes may only await simulation triggers")
