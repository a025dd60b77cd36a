"""Runs testbenches on a compiled circuit: some twenty times as many cycles a second as Amaranth's
own simulator, once the circuit is compiled, which takes seconds.

Knows nothing of any circuit of bitlane. Testbenches are those that Amaranth's simulator takes, but
reach the circuit at its ports alone.
"""

from collections.abc import Callable, Coroutine, Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from amaranth.hdl import Value
from amaranth.lib import wiring

from bitlane_sim.circuit import Circuit
from bitlane_sim.compiled.model import CompiledEvaluator
from support.rtl.streams import DEADLINE, Runs, Testbench, function_of

__all__ = ["CompiledCircuit", "compiled"]

_Component = TypeVar("_Component", bound=wiring.Component)


class CompiledCircuit:
    """A component with the clock domain ``sync``, compiled once and run as often as is wanted."""

    def __init__(self, component: wiring.Component) -> None:
        circuit = Circuit(component)
        self._ports = {**circuit.inputs, **circuit.outputs}
        self._names = {id(port): name for name, port in self._ports.items()}
        self._evaluator = CompiledEvaluator(component)

    def simulate(
        self,
        *testbenches: Runs | Testbench,
        background: Sequence[Runs | Testbench] = (),
        deadline: int = DEADLINE,
    ) -> None:
        """What `streams.simulate` does, from power-on.

        In a cycle ``testbenches`` go on in their order, and after them those in ``background``.
        """
        self._evaluator.reset()
        context = _Context(self._evaluator, self._names)
        tasks = [_Task(context, function_of(each)) for each in (*testbenches, *background)]
        for _ in range(deadline):
            if all(task.finished for task in tasks[: len(testbenches)]):
                return
            for task in tasks:
                task.look()
            self._evaluator.step()
            for task in tasks:
                task.go_on()
        raise AssertionError(f"not finished after {deadline} cycles")


_known: dict[tuple[Any, ...], tuple[Any, CompiledCircuit]] = {}


def compiled(
    make: Callable[..., _Component], *arguments: Hashable
) -> tuple[_Component, CompiledCircuit]:
    """``make(*arguments)``, and it compiled: the same pair for the same arguments."""
    key = (make, *arguments)
    if key not in _known:
        component = make(*arguments)
        _known[key] = component, CompiledCircuit(component)
    return _known[key]


@dataclass(frozen=True)
class _Place:
    """Bits of a port."""

    port: str
    start: int
    width: int
    whole: bool


class _Context:
    """What a testbench gets in place of ``amaranth.sim.SimulatorContext``."""

    def __init__(self, evaluator: CompiledEvaluator, names: dict[int, str]) -> None:
        self._evaluator = evaluator
        self._names = names
        self._driven: dict[str, int] = {}
        # With the values themselves, because an id is good only as long as its object lives.
        self._places: dict[int, tuple[Any, _Place]] = {}

    def get(self, value: Any) -> int:
        place = self._place(value)
        bits = self._evaluator.get(place.port)
        return bits if place.whole else bits >> place.start & (1 << place.width) - 1

    def set(self, value: Any, bits: int) -> None:
        place = self._place(value)
        bits = int(bits)
        if not place.whole:
            mask = (1 << place.width) - 1 << place.start
            bits = self._driven.get(place.port, 0) & ~mask | bits << place.start & mask
            self._driven[place.port] = bits
        self._evaluator.set(place.port, bits)

    def tick(self) -> "_Tick":
        return _Tick((), 1)

    def _place(self, value: Any) -> _Place:
        if id(value) not in self._places:
            port, start = Value.cast(value), 0
            width = len(port)
            while id(port) not in self._names:
                start += port.start  # type: ignore[attr-defined]
                port = port.value  # type: ignore[attr-defined]
            place = _Place(self._names[id(port)], start, width, width == len(port))
            self._places[id(value)] = value, place
        return self._places[id(value)][1]


class _Tick:
    """An awaitable for clock edges; gives what `amaranth.sim.TickTrigger` gives."""

    def __init__(self, values: tuple[Any, ...], count: int) -> None:
        self.values = values
        self.count = count

    def sample(self, *values: Any) -> "_Tick":
        return _Tick((*self.values, *values), self.count)

    async def repeat(self, count: int) -> tuple[int, ...]:
        _, _, *values = await _Tick(self.values, count)
        return tuple(values)

    def __await__(self) -> Generator["_Tick", tuple[int, ...], tuple[Any, ...]]:
        values = yield self
        return (True, False, *values)


class _Task:
    """A testbench under way."""

    def __init__(self, context: _Context, testbench: Testbench) -> None:
        self.finished = False
        self._context = context
        self._coroutine: Coroutine[_Tick, tuple[int, ...] | None, None] = testbench(context)  # type: ignore[assignment]
        self._resume(None)

    def look(self) -> None:
        """Sample what the testbench waits for, just before a clock edge."""
        if not self.finished:
            self._left -= 1
            if not self._left:
                self._values = tuple(map(self._context.get, self._waits_for.values))

    def go_on(self) -> None:
        """Go on behind the clock edge."""
        if not self.finished and not self._left:
            self._resume(self._values)

    def _resume(self, values: tuple[int, ...] | None) -> None:
        try:
            self._waits_for = self._coroutine.send(values)
            self._left = self._waits_for.count
        except StopIteration:
            self.finished = True
