"""Ticks of a clock domain, without the trigger objects that Amaranth makes for each tick.

They have the results and exceptions of Amaranth's.
"""

import operator
from collections.abc import Generator
from typing import Any

from amaranth.hdl import Shape, Value, ValueCastable, ValueLike
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import TickTrigger
from .waits import Each, Repeat, Sampler, Until, Wait

_CACHED = 64
"""The number of sampling ticks that a tick caches."""


class Tick(TickTrigger):
    """Amaranth's ``TickTrigger``; one object for all ticks of a process with the same samples."""

    def __init__(self, engine: Any, process: Any, *, domain: Any, sampled: Any = ()) -> None:
        super().__init__(engine, process, domain=domain, sampled=sampled)
        self.sampler = Sampler(engine, process, domain, sampled)
        self._once: Wait | None = None
        self._more: dict[tuple[int, ...], Tick] = {}

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
            sampled = (*self._sampled, *exprs)
            engine, process = self.sampler.engine, self.sampler.process
            found = Tick(engine, process, domain=self._domain, sampled=sampled)
            self._more[key] = found
        return found

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        once = self._once
        if once is None:
            once = self._once = Wait(self.sampler)
        once.broken = False
        for edge in once.edges:
            edge.expect(once)
        yield once
        if once.broken:
            raise BrokenTrigger
        return once.result

    def __aiter__(self) -> Each:
        return Each(self.sampler)

    async def repeat(self, count: int) -> tuple[Any, ...]:
        count = operator.index(count)
        if count <= 0:
            return tuple(await super().repeat(count))  # which raises
        return await Repeat(self.sampler, count)

    async def until(self, condition: ValueLike) -> tuple[Any, ...]:
        plain = not isinstance(condition, ValueCastable) or isinstance(condition.shape(), Shape)
        if not isinstance(condition, ValueLike) or not plain:
            return tuple(await super().until(condition))  # which raises
        return await Until(self.sample(condition).sampler, Value.cast(condition))
