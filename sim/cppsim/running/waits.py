"""What a process waits for, from when it begins to when it is over."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Signal, Value
from amaranth.sim import BrokenTrigger

from ..amaranth_internals import DomainReset
from .clocks import NEVER
from .state import CompiledState

if TYPE_CHECKING:
    from .edges import Edge
    from .ticks import Tick

__all__ = ["Each", "Repeat", "Until", "Wait", "value_reader"]

_PATIENCE = 64
"""Times that Python looks at a condition before a program that does takes less time."""


def value_reader(engine: Any, value: Value) -> Callable[[], int]:
    """What gives a value as it is now."""
    if isinstance(engine.state, CompiledState) and isinstance(value, Signal):
        return engine.state.readers.of(value)
    return lambda: int(engine.get_value(value))


class Wait:
    """Of one process for one tick.

    Attributes
    ----------
    target : int
        The count of the clock's edge at which it may be over.
    conditions : tuple of values
        It is also over where one of them is not 0.
    hits : list of edges, or None
        What has happened, if it may be one thing or another.
    lasting, choosy : bool
        It is for more than one tick; not for every tick, as `over` says.
    broken : bool
        It was over while its process did something else.
    """

    lasting = choosy = False
    target = 0
    conditions: tuple[Value, ...] = ()

    def __init__(self, tick: "Tick") -> None:
        self.tick, self.process = tick, tick.process
        self.edges = tick.edges()
        self.hits: list[Edge] | None = [] if len(self.edges) > 1 else None
        self.broken = False
        self.result: tuple[Any, ...] = ()
        if tick.sampler is None:
            # Who samples what cannot be sampled hears of it now.
            tick.made_sampler(self)

    def begin(self) -> None:
        self.broken = False
        for edge in self.edges:
            edge.expect(self)

    def end(self) -> None:
        for edge in self.edges:
            edge.drop(self)

    def over(self) -> bool:
        """Whether the process would go on after the edge that has just been."""
        return True

    def run(self) -> None:
        """Sample, and let the process go on."""
        self.result = (self.tick.sampler or self.tick.made_sampler(self))(self)
        if self.hits is not None:
            self.hits.clear()
        self.process.runnable = True
        self.process.waits_on = None

    def hit(self, number: int) -> bool:
        """Whether it is over by its edge of that number, among others."""
        return self.hits is not None and self.edges[number] in self.hits

    def initial_eligible(self) -> bool:
        """Whether it is over at the beginning."""
        return False


class Each(Wait):
    """All ticks, one after the other: what ``async for`` takes."""

    lasting = True

    def __init__(self, tick: "Tick") -> None:
        super().__init__(tick)
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
    """A number of ticks without a reset."""

    lasting = True

    def __init__(self, tick: "Tick", count: int) -> None:
        super().__init__(tick)
        # A reset that comes before the process has its turn breaks what was a tick before.
        self.choosy = len(self.edges) == 1
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


class Until(Repeat):
    """Ticks without a reset until the last sample is not 0."""

    def __init__(self, tick: "Tick", condition: Value) -> None:
        super().__init__(tick, 1)
        self._condition, self._patience = condition, _PATIENCE
        self._holds = value_reader(tick.engine, condition)
        if isinstance(condition, Signal):
            self._hand_over()
        else:
            self.target = 0

    def _hand_over(self) -> None:
        """Let compiled code look at the condition, if it can."""
        self.target = NEVER
        self.conditions += (self._condition,)

    def over(self) -> bool:
        if self._holds() or self._resets():
            return True
        if not self.target:
            self._patience -= 1
            if not self._patience:
                self._hand_over()
                self.edges[0].plan()
        return False

    def done(self) -> bool:
        return bool(self.result[-1])

    def values(self) -> tuple[Any, ...]:
        return self.result[2:-1]
