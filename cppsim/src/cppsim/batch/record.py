"""Record a testbench of one instance as a program for all instances, for `Batch.record`.

Between two waits the clocks are low, as between two instructions of a program.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from amaranth.hdl import Signal, Value
from numpy.typing import NDArray

from ..amaranth_internals import (
    DomainReset,
    driven_signals,
    engine_of,
    made_signals,
    prepared_design,
    read_signals,
    time_of,
)
from ..errors import BatchError
from ..mode import Mode
from ..model import PortLayout, Program, counted
from ..model.circuit import named_signals
from ..simulator import Simulator
from .circuit import PortChoice
from .description import Description


class BatchPorts:
    """The ports of a batch by signal, and the domains that its cycles clock, by name.

    ``prepared`` is the batch's design, prepared again.
    """

    def __init__(self, choice: PortChoice, prepared: Any, description: Description) -> None:
        self._all = {id(signal): name for name, signal in named_signals(prepared)}
        self._names = choice.names(prepared)  # holds the signals, so that identities stay theirs
        known = description.ports
        self._ports = {id(x): known[n] for n, x in self._names.signals.items() if n in known}
        domains = prepared.fragment.domains
        made = made_signals(prepared)
        chosen = domains if choice.clocks is None else choice.clocks
        self.clocked = {
            name: domain
            for name, domain in domains.items()
            if name in chosen and domain.clk not in made
        }

    @property
    def values(self) -> dict[str, Value]:
        """The ports and their fields, by name."""
        values: dict[str, Value] = dict(self._names.signals)
        for name, (port, low, shape) in self._names.fields.items():
            part = values[port][low : low + shape.width]
            values[name] = part.as_signed() if shape.signed else part
        return values

    def of(self, signal: Signal, what: str) -> PortLayout:
        """Return the port of ``signal``. Raises ``BatchError`` if it does not have one."""
        port = self._ports.get(id(signal))
        if port is None:
            name = self._all.get(id(signal))
            hint = f"; make the batch with expose=[{name!r}]" if name else ", nor of the design"
            raise BatchError(f"{what} {signal.name!r}: it is not a port of the batch{hint}")
        return port

    def input(self, value: Value) -> tuple[PortLayout, Signal]:
        """Return the input that ``value`` is a part of. Raises ``BatchError`` for other values."""
        signals = _signals("set", value, driven_signals)
        if len(signals) != 1:
            raise BatchError(f"set {value!r}: a program sets one port at a time")
        port = self.of(signals[0], "set")
        if not port.input:
            raise BatchError(f"set {port.name!r}: the design drives it; only inputs can be set")
        return port, signals[0]

    def read(self, what: str, value: Value) -> list[tuple[PortLayout, Signal]]:
        """Return the ports in ``value``. Raises ``BatchError`` for signals without a port."""
        return [(self.of(x, what), x) for x in _signals(what, value, read_signals)]


def _signals(what: str, value: Any, signals_of: Callable[[Any], Any]) -> list[Signal]:
    """Return the signals of ``value`` that have bits. Raises ``BatchError`` for memory rows."""
    try:
        return [x for x in signals_of(value) if len(x)]
    except (AssertionError, NotImplementedError, TypeError) as error:
        line = f"{what} {value!r}: a program looks at ports alone; rows are Batch.memory's"
        raise BatchError(line) from error


AsyncTestbench = Callable[[Any], Coroutine[Any, Any, None]]

PERIOD = 4_000_000
_PHASE = PERIOD // 4
"""The period, in femtoseconds, and its first edge. At its start all logic has settled."""
_ONES = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Recording:
    """A testbench as a program, and the program's results on one instance, by name.

    A result has its port's name, from the second one on with a number: ``level``, ``level 2``. The
    cycles of a wait for a port are ``until level``.
    """

    program: Program
    results: dict[str, NDArray[Any]]

    def differing(self, results: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return which instances have other results in ``results``, as (instances,)."""
        differ = np.zeros(len(next(iter(results.values()), ())), np.bool_)
        for name, value in self.results.items():
            unlike = np.not_equal(results[name], value)
            differ |= unlike if unlike.ndim == 1 else unlike.any(axis=1)
        return differ


def one_instance(choice: PortChoice, description: Description) -> tuple[Simulator, BatchPorts]:
    """Return a simulator of one instance, in which a cycle takes `PERIOD`, and its ports."""
    simulator = Simulator(choice.dut, mode=Mode.ALWAYS)
    ports = BatchPorts(choice, prepared_design(simulator), description)
    for domain in ports.clocked.values():
        simulator.add_clock(time_of(PERIOD), phase=time_of(_PHASE), domain=domain)
    return simulator, ports


def record_testbench(
    choice: PortChoice, testbench: AsyncTestbench, description: Description, limit: int
) -> Recording:
    """Record ``testbench`` on one instance of a batch's design; see `Batch.record`."""
    if not inspect.iscoroutinefunction(testbench):
        raise BatchError(f"record takes one async function of a context, not {testbench!r}")
    limit = counted(limit, "limit", 1)
    simulator, ports = one_instance(choice, description)
    taken = _Taken(simulator, ports, limit)

    async def work(context: Any) -> None:
        await testbench(_Context(context, taken))

    simulator.add_testbench(work)
    simulator.run()
    taken.flush()
    return Recording(taken.program, taken.results)


@dataclass(slots=True)
class _Taken:
    """The recording so far; ``steps`` cycles are not in the program yet."""

    simulator: Simulator
    ports: BatchPorts
    limit: int
    program: Program = field(default_factory=Program)
    results: dict[str, NDArray[Any]] = field(default_factory=dict)
    steps: int = 0
    times: dict[str, int] = field(default_factory=dict)

    @property
    def now(self) -> int:
        """The time in femtoseconds."""
        return int(engine_of(self.simulator).now)

    def flush(self) -> None:
        if self.steps:
            self.program.step(self.steps)
        self.steps = 0

    def set(self, port: PortLayout, value: int) -> None:
        self.flush()
        self.program.set(port.name, value)

    def get(self, port: PortLayout, value: int) -> None:
        self.flush()
        name = self._name(port.name)
        self.program.get(port.name, name)
        if port.words > 1:
            words = [value >> 64 * k & _ONES for k in range(port.words)]
            self.results[name] = np.array(words, np.uint64)
        else:
            self.results[name] = np.array(value, np.int64 if port.signed else np.uint64)

    def until(self, port: PortLayout, cycles: int) -> None:
        self.flush()
        name = self._name(f"until {port.name}")
        self.program.until(port.name, self.limit, name)
        self.results[name] = np.array(cycles, np.uint64)

    def _name(self, name: str) -> str:
        """Return ``name``, from the second call on with a number."""
        number = self.times[name] = self.times.get(name, 0) + 1
        return name if number == 1 else f"{name} {number}"


class _Context:
    """The context of the testbench, which records its actions."""

    def __init__(self, context: Any, taken: _Taken) -> None:
        self._context, self._taken = context, taken

    def set(self, expr: Any, value: Any) -> None:
        target = Value.cast(expr)
        if not len(target):
            return
        port, signal = self._taken.ports.input(target)
        self._context.set(expr, value)
        self._taken.set(port, self._context.get(signal))

    def get(self, expr: Any) -> Any:
        for port, signal in self._taken.ports.read("get", Value.cast(expr)):
            self._taken.get(port, self._context.get(signal))
        return self._context.get(expr)

    def tick(self, domain: Any = "sync", *, context: Any = None) -> "_Tick":
        tick = self._context.tick(domain, context=context)
        clocked = self._taken.ports.clocked.values()
        if not any(x.clk is tick.domain.clk for x in clocked):
            names = ", ".join(x.name for x in clocked) or "none"
            raise BatchError(
                f"tick of {tick.domain.name!r}: a cycle of the batch clocks {names}, and not it"
            )
        return _Tick(self._context, self._taken, tick)

    @contextmanager
    def critical(self) -> Iterator[None]:
        yield

    def delay(self, interval: Any) -> NoReturn:
        raise _no_word("delay")

    def changed(self, *signals: Any) -> NoReturn:
        raise _no_word("changed")

    def edge(self, signal: Any, polarity: int) -> NoReturn:
        raise _no_word("edge")

    def posedge(self, signal: Any) -> NoReturn:
        raise _no_word("posedge")

    def negedge(self, signal: Any) -> NoReturn:
        raise _no_word("negedge")


class _Tick:
    """A `TickTrigger` that records its waits."""

    def __init__(self, context: Any, taken: _Taken, tick: Any, sampled: Sequence[Any] = ()) -> None:
        self._context, self._taken = context, taken
        self._tick, self._sampled = tick, sampled

    def sample(self, *exprs: Any) -> "_Tick":
        if self._tick.domain.clk_edge != "pos":
            raise _no_word("sample at a falling edge")
        return _Tick(self._context, self._taken, self._tick, (*self._sampled, *exprs))

    def __await__(self) -> Generator[Any, None, tuple[Any, ...]]:
        return self._once().__await__()

    async def __aiter__(self) -> AsyncIterator[tuple[Any, ...]]:
        while True:
            yield await self._once()

    async def repeat(self, count: int) -> tuple[Any, ...]:
        return tuple(await self._passed(lambda tick: tick.repeat(count)))

    async def until(self, condition: Any) -> tuple[Any, ...]:
        value = Value.cast(condition)
        if self._sampled or self._tick.domain.clk_edge != "pos":
            raise _no_word("until with sample, or at a falling edge")
        if not isinstance(value, Signal):
            raise BatchError(
                f"until {value!r}: a program waits for a port that is not 0; "
                "give the design a signal of that"
            )
        taken = self._taken
        port = taken.ports.of(value, "until")
        for waited in range(1, taken.limit + 1):
            _, reset, seen = await self._tick.sample(value)
            if reset:
                raise _no_word("a reset during until")
            if seen:
                taken.until(port, waited)
                await self._settle()
                return ()
        raise BatchError(f"until {port.name!r}: 0 for {taken.limit} cycles; say a higher limit")

    async def _once(self) -> tuple[Any, ...]:
        return tuple(await self._passed(lambda tick: tick))

    async def _passed(self, wait: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Record the cycles of ``wait``, and the samples before the last edge."""
        taken, start = self._taken, self._taken.now
        looked = [
            found
            for expr in self._sampled
            for found in taken.ports.read("sample", Value.cast(expr))
        ]
        values: tuple[Any, ...] = ()
        try:
            values = await wait(self._tick.sample(*self._sampled, *(x for _, x in looked)))
        except DomainReset:
            await self._settle()
            taken.steps += (taken.now - start) // PERIOD
            raise
        await self._settle()
        taken.steps += (taken.now - start) // PERIOD - 1
        own = len(values) - len(looked)
        for (port, _), value in zip(looked, values[own:], strict=True):
            taken.get(port, value)
        taken.steps += 1
        return values[:own]

    async def _settle(self) -> None:
        """Wait until the next period begins."""
        await self._context.delay(time_of(-self._taken.now % PERIOD))


def _no_word(what: str) -> BatchError:
    return BatchError(f"{what}: a program has no word for it; it knows set, get, tick and until")
