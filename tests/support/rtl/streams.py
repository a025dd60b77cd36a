"""Helpers to test circuits with streams: a simulation with a deadline, stalling sources and sinks.

The module depends on no circuit of bitlane. A simulation always ends by its deadline, and a sink
fails a test whose stream breaks the stream contract.
"""

import os
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar, cast

from amaranth.hdl import (
    Cat,
    Elaboratable,
    Module,
    ResetInserter,
    Shape,
    ShapeCastable,
    Signal,
    Value,
)

import cppsim
from support.seeds import slow

CLOCK_PERIOD = 1e-6
"""Period of every clock in a test, in seconds; no test depends on its value."""

DEADLINE = 20_000
"""Cycles after which a test has failed, unless it sets another deadline."""

_MOST = 16
"""Testbenches of each kind, foreground and background, at most."""

Testbench = Callable[[Any], Awaitable[None]]

_Circuit = TypeVar("_Circuit", bound=Elaboratable)


class Runs(Protocol):
    """An object with a testbench called ``run``."""

    async def run(self, ctx: Any) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Stalls:
    """A repeatable random sequence of stalls.

    In every cycle, a side that could transfer stalls with ``probability``, and then for 1 to
    ``longest`` cycles.
    """

    seed: int = 0
    probability: float = 0.0
    longest: int = 1

    def lengths(self, salt: str) -> Iterator[int]:
        """Yield the cycles to stall before each handshake; ``salt`` varies it within a seed."""
        if not self.probability:
            return repeat(0)
        return self._lengths(random.Random(f"{self.seed} {salt}"))

    def _lengths(self, generator: random.Random) -> Iterator[int]:
        while True:
            length = 0
            while generator.random() < self.probability:
                length += generator.randint(1, self.longest)
            yield length


NO_STALLS = Stalls()

STALLS = (NO_STALLS, Stalls(seed=1, probability=0.5), Stalls(seed=2, probability=0.2, longest=8))
"""Stalls that every stream has to survive: none, in half of all cycles, and long ones."""

ALL_STALLS = (*STALLS[:2], slow(STALLS[2]))
"""`STALLS` as parameters of a test: the quick tier leaves out the long ones."""


def _shape(port: Any) -> Any:
    return port.payload.shape()


def to_bits(shape: Any, payload: Any) -> int:
    """Return the bits of ``payload``, which may be any initializer of a constant of ``shape``."""
    if isinstance(shape, ShapeCastable):
        bits = Value.cast(shape.const(payload))
        value: int = bits.value  # type: ignore[attr-defined]
        return value
    return int(payload) & ((1 << Shape.cast(shape).width) - 1)


def from_bits(shape: Any, bits: int) -> Any:
    """Return the constant of ``shape`` with these ``bits``; an ``int`` for a plain shape."""
    return shape.from_bits(bits) if isinstance(shape, ShapeCastable) else bits


class Driven:
    """Outputs of a testbench. Only a signal whose value changes is set, as a call takes 10 us."""

    def __init__(self, ctx: Any, *signals: Any) -> None:
        self._ctx = ctx
        self._signals = signals
        self._values: tuple[int | None, ...] = (None,) * len(signals)

    def __call__(self, *values: int) -> None:
        """Set each signal to its value."""
        if values != self._values:
            for signal, before, value in zip(self._signals, self._values, values, strict=True):
                if value != before:
                    self._ctx.set(signal, int(value))
            self._values = values


class Source:
    """A source that sends ``payloads`` into ``port``, an input stream of the circuit.

    ``cycles[i]`` is the number of the clock edge at which payload ``i`` was transferred. While it
    stalls, the payload is the inverse of the next one, so that a circuit that samples it fails.
    """

    def __init__(
        self, port: Any, payloads: Iterable[Any], stalls: Stalls = NO_STALLS, salt: str = "source"
    ) -> None:
        self._port = port
        self._shape = _shape(port)
        self._bits = [to_bits(self._shape, payload) for payload in payloads]
        self._stalls = stalls.lengths(salt)
        self.cycles: list[int] = []

    async def run(self, ctx: Any) -> None:
        payload, valid = Value.cast(self._port.payload), self._port.valid
        tick = ctx.tick()
        accepted = tick.sample(self._port.ready)
        ones = (1 << len(payload)) - 1
        cycle = 0
        for bits in self._bits:
            stall = next(self._stalls)
            if stall:
                ctx.set(valid, 0)
                ctx.set(payload, bits ^ ones)
                for _ in range(stall):
                    await tick
                cycle += stall
            ctx.set(payload, bits)
            ctx.set(valid, 1)
            ready = False
            while not ready:
                _, _, ready = await accepted
                cycle += 1
            self.cycles.append(cycle - 1)
        ctx.set(valid, 0)
        ctx.set(payload, ones)


class Sink:
    """A sink that receives ``count`` payloads from ``port``, an output stream of the circuit.

    ``payloads`` and ``cycles`` collect the transfers and their clock edges. The sink fails if the
    stream withdraws or changes a payload before its transfer, or if more than ``count`` arrive
    until ``idle`` cycles after the last.
    """

    def __init__(
        self, port: Any, count: int, stalls: Stalls = NO_STALLS, salt: str = "sink", idle: int = 16
    ) -> None:
        self._port = port
        self._shape = _shape(port)
        self._count = count
        self._lengths = stalls
        self._stalls = stalls.lengths(salt)
        self._idle = idle
        self.bits: list[int] = []
        self.cycles: list[int] = []

    @property
    def payloads(self) -> list[Any]:
        return [from_bits(self._shape, bits) for bits in self.bits]

    async def run(self, ctx: Any) -> None:
        drive = Driven(ctx, self._port.ready)
        offered = ctx.tick().sample(self._port.valid, Value.cast(self._port.payload))
        pending: int | None = None
        cycle = 0
        end: int | None = None if self._count else self._idle
        stall = next(self._stalls)
        while end is None or cycle < end:
            ready = not stall
            drive(ready)
            _, _, valid, bits = await offered
            assert pending is None or valid, f"valid withdrawn in cycle {cycle} ({self._lengths})"
            assert pending in (None, bits), f"payload changed in cycle {cycle} ({self._lengths})"
            pending = bits if valid and not ready else None
            if valid and ready:
                assert len(self.bits) < self._count, (
                    f"cycle {cycle}: more than {self._count} payloads ({self._lengths})"
                )
                self.bits.append(bits)
                self.cycles.append(cycle)
                if len(self.bits) == self._count:
                    end = cycle + self._idle
            stall = stall - 1 if stall else next(self._stalls)
            cycle += 1


class _Simulation:
    """A circuit that is prepared once for any number of runs.

    Its simulator has a fixed number of testbenches; each runs the current testbench of its number.
    """

    def __init__(self, circuit: Elaboratable) -> None:
        self._simulator = cppsim.Simulator(_clocked(circuit))
        self._simulator.add_clock(CLOCK_PERIOD)
        self._current: dict[bool, Sequence[Testbench]] = {}
        self._ran = False
        for background in (False, True):
            for number in range(_MOST):
                self._simulator.add_testbench(
                    self._numbered(number, background=background), background=background
                )

    def run(self, testbenches: Sequence[Testbench], background: Sequence[Testbench]) -> None:
        """Run testbenches from power-on."""
        assert max(len(testbenches), len(background)) <= _MOST
        self._current = {False: testbenches, True: background}
        if self._ran:
            self._simulator.reset()
        self._ran = True
        self._simulator.run()

    def _numbered(self, number: int, *, background: bool) -> Testbench:
        async def run(ctx: Any) -> None:
            testbenches = self._current[background]
            if number < len(testbenches):
                await testbenches[number](ctx)

        return run


_known: dict[tuple[Any, ...], Elaboratable] = {}
"""Circuits of `compiled`, by the mode that the environment gives cppsim and their arguments."""

_prepared: dict[Elaboratable, _Simulation] = {}
"""Simulations of these circuits."""


def compiled(make: Callable[..., _Circuit], *arguments: Hashable, **options: Hashable) -> _Circuit:
    """Return ``make(*arguments, **options)``, made and prepared for `simulate` on the first call.

    To prepare a circuit takes up to 0.5 s, and 3 s if the cache does not have it.
    """
    key = (os.environ.get("CPPSIM"), make, *arguments, *sorted(options.items()))
    if key not in _known:
        _known[key] = make(*arguments, **options)
        _prepared[_known[key]] = _Simulation(_known[key])
    return cast(_Circuit, _known[key])


class Resettable(Elaboratable):
    """A circuit, and a signal that resets it."""

    def __init__(self, make: Callable[..., Any], *arguments: Hashable) -> None:
        self.dut = make(*arguments)
        self.reset = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = ResetInserter(self.reset)(self.dut)
        return m


def simulate(
    circuit: Elaboratable,
    *testbenches: Runs | Testbench,
    background: Sequence[Runs | Testbench] = (),
    deadline: int = DEADLINE,
) -> None:
    """Clock ``circuit`` until every one of ``testbenches`` has returned.

    A circuit that `compiled` did not return is prepared for this run alone.
    Raises ``AssertionError`` if that takes more than ``deadline`` cycles. Testbenches in
    ``background`` need not return. Cycle 0 is the first clock edge.
    """
    simulation = _prepared.get(circuit) or _Simulation(circuit)
    others = [*map(_function_of, background), _late(deadline)]
    simulation.run(list(map(_function_of, testbenches)), others)


def clocked(
    circuit: Any, inputs: Iterable[Mapping[str, Any]], *outputs: str
) -> list[tuple[Any, ...]]:
    """Set ``inputs`` in each cycle; return each of ``outputs`` in all cycles, before their edges.

    Both are named by paths of members, like ``"o.valid"``. An input stays until it is set again.
    """
    seen: list[Sequence[Any]] = []
    cycles = list(inputs)
    levels: dict[str, Any] = {}

    async def drive(ctx: Any) -> None:
        tick = ctx.tick().sample(*(attrgetter(name)(circuit) for name in outputs))
        for cycle in cycles:
            for name, value in cycle.items():
                if name not in levels or levels[name] != value:
                    ctx.set(attrgetter(name)(circuit), value)
            levels.update(cycle)
            seen.append((await tick)[2:])

    simulate(circuit, drive, deadline=len(cycles) + 10)
    return list(zip(*seen, strict=True))


def later(bench: Runs | Testbench, start: int | Callable[[], bool]) -> Testbench:
    """Return ``bench``, to begin after ``start`` cycles, or as soon as ``start`` returns true."""

    async def run(ctx: Any) -> None:
        if isinstance(start, int):
            for _ in range(start):
                await ctx.tick()
        else:
            while not start():
                await ctx.tick()
        await _function_of(bench)(ctx)

    return run


def _clocked(circuit: Elaboratable) -> Module:
    """Return ``circuit`` with a clock domain, which a circuit without flip-flops lacks."""
    top = Module()
    top.submodules.circuit = circuit
    level = Signal()
    top.d.sync += level.eq(~level)
    return top


def _late(deadline: int) -> Testbench:
    """Return a testbench that fails after ``deadline`` cycles."""

    async def watchdog(ctx: Any) -> None:
        await ctx.delay(deadline * CLOCK_PERIOD)
        raise AssertionError(f"not finished after {deadline} cycles")

    return watchdog


def _function_of(testbench: Runs | Testbench) -> Testbench:
    return testbench.run if hasattr(testbench, "run") else testbench


def channel(bus: Any, name: str, *fields: str) -> Any:
    """Return the channel ``name`` of an AXI ``bus`` as a stream, its first field in the low bits.

    ``fields`` have no prefix: ``channel(bus, "aw", "addr")``.
    """
    return SimpleNamespace(
        payload=Cat(getattr(bus, name + field) for field in fields),
        valid=getattr(bus, f"{name}valid"),
        ready=getattr(bus, f"{name}ready"),
    )


def transfer(
    circuit: Any, payloads: Sequence[Any], count: int, stalls: Stalls = NO_STALLS
) -> tuple[Source, Sink]:
    """Send ``payloads`` to ``i`` of ``circuit`` and receive ``count`` from ``o``; both stall."""
    source, sink = Source(circuit.i, payloads, stalls), Sink(circuit.o, count, stalls)
    simulate(circuit, source, sink)
    return source, sink
