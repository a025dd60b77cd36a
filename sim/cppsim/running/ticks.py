"""Ticks of a clock domain, without the triggers that Amaranth's own make for each.

They show, and raise, what Amaranth's do.
"""

import operator
from collections.abc import Generator
from typing import Any

from amaranth.hdl import Shape, Value, ValueCastable, ValueLike
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import TickTrigger
from .waits import Each, Repeat, Sampler, Until, Wait

__all__ = ["Tick"]

_KEPT = 64
"""Ticks that a tick keeps for whoever samples the same again."""


class Tick(TickTrigger):
    """Amaranth's ``TickTrigger``; one for all ticks of a process that sample the same."""

    def __init__(self, engine: Any, process: Any, *, domain: Any, sampled: Any = ()) -> None:
        super().__init__(engine, process, domain=domain, sampled=sampled)
        self.sampler = Sampler(engine, process, domain, sampled)
        self._once: Wait | None = None
        self._more: dict[tuple[int, ...], Tick] = {}

    def sample(self, *exprs: Any) -> "Tick":
        # What is in the dictionary keeps its expressions, so that no others get their numbers.
        key = tuple(map(id, exprs))
        found = self._more.get(key)
        if found is None:
            if len(self._more) == _KEPT:
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
