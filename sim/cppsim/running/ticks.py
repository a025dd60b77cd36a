"""Ticks of a clock domain, without the triggers that Amaranth's own make for each.

They show, and raise, what Amaranth's do.
"""

import operator
from collections.abc import Callable, Generator
from typing import Any

from amaranth.hdl import Shape, ShapeCastable, Value, ValueCastable, ValueLike
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import TickTrigger
from .edges import Edge
from .waits import Each, Repeat, Until, Wait, value_reader

__all__ = ["Tick"]

_KEPT = 64
"""Ticks that a tick keeps for whoever samples the same again."""


class Tick(TickTrigger):
    """Amaranth's ``TickTrigger``; one for all ticks of a process that sample the same."""

    def __init__(self, engine: Any, process: Any, *, domain: Any, sampled: Any = ()) -> None:
        super().__init__(engine, process, domain=domain, sampled=sampled)
        self.engine, self.process = engine, process
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
            found = Tick(self.engine, self.process, domain=self._domain, sampled=sampled)
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

    def __aiter__(self) -> Each:
        return Each(self)

    async def repeat(self, count: int) -> tuple[Any, ...]:
        count = operator.index(count)
        if count <= 0:
            return tuple(await super().repeat(count))  # which raises
        return await Repeat(self, count)

    async def until(self, condition: ValueLike) -> tuple[Any, ...]:
        plain = not isinstance(condition, ValueCastable) or isinstance(condition.shape(), Shape)
        if not isinstance(condition, ValueLike) or not plain:
            return tuple(await super().until(condition))  # which raises
        return await Until(self.sample(condition), Value.cast(condition))

    # --- for waits ----------------------------------------------------------------------------

    def edges(self) -> list[Edge]:
        """What ends a wait: the clock's active edge, and an asynchronous reset."""
        domain = self._domain
        edges = [self.engine.edge(domain.clk, int(domain.clk_edge == "pos"))]
        if domain.async_reset and domain.rst is not None:
            edges.append(self.engine.edge(domain.rst, 1))
        return edges

    def forget(self) -> None:
        """The engine's state is another one."""
        self.sampler = None

    def made_sampler(self, wait: Wait) -> Callable[[Wait], tuple[Any, ...]]:
        """What gives the result of a wait that ends now."""
        self.sampler = self._sampler(len(wait.edges))
        return self.sampler

    def _sampler(self, edges: int) -> "Callable[[Wait], tuple[Any, ...]]":
        reads = [_sampler(self.engine, expr) for expr in self._sampled]
        reset = self.reset_reader()
        if edges > 1:
            return lambda wait: (
                wait.hit(0),
                wait.hit(1) or reset() != 0,
                *[read() for read in reads],
            )
        if reads:
            return lambda _: (True, reset() != 0, *[read() for read in reads])
        return lambda _: (True, reset() != 0)

    def reset_reader(self) -> Callable[[], int]:
        """What gives the level of the domain's reset."""
        if self._domain.rst is None:
            return lambda: 0
        return value_reader(self.engine, self._domain.rst)


def _sampler(engine: Any, expr: Any) -> Callable[[], Any]:
    """What gives the value of ``expr``, as its shape wants it. Raises as ``Value.cast``."""
    value = Value.cast(expr)
    read = value_reader(engine, value)
    shape = expr.shape() if isinstance(expr, ValueCastable) else None
    if isinstance(shape, ShapeCastable):
        return lambda: shape.from_bits(read())
    return read
