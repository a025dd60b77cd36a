"""One circuit in Amaranth's own simulator: slow, pip-only, open to Python, and the reference."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from amaranth.hdl import Elaboratable, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator, SimulatorContext  # type: ignore[attr-defined]  # stubs lag

from ..amaranth_internals import made_signals, prepared_design
from ..errors import SimulationError
from ..netlist import WORD, from_words, to_words
from .circuit import Circuit
from .interface import AnyModel, counted_cycles, fitting_value
from .ports import ByPort, PortLayout, PortValue, Words, as_array, found
from .program import Encoded, Item, Opcode, Port, Program
from .storage import Buffers, StorageAccess, StoragePort, in_order

_PERIOD = 1e-6

_Job = Callable[[SimulatorContext], Awaitable[None]]

ValueOf = Callable[[Item, tuple[int, ...]], int]
"""Returns the value that an item sets, in the given turns of the repeats around it."""


class Testbench:
    """The steps of a program, in a simulator that Python drives; ``tick`` waits for one cycle."""

    def __init__(
        self,
        context: SimulatorContext,
        ports: Mapping[str, Value],
        tick: Callable[[], Awaitable[None]],
    ) -> None:
        self._context, self._ports, self.tick = context, ports, tick

    def set(self, port: str, value: int) -> None:
        self._context.set(found(self._ports, port, "port"), value)

    def get(self, port: str) -> int:
        return int(self._context.get(found(self._ports, port, "port")))


async def execute(
    items: Sequence[Item], bench: Testbench, value_of: ValueOf, turns: tuple[int, ...] = ()
) -> AsyncIterator[tuple[Item, int]]:
    """Execute the items of a program; yield each item that has a result, and the result."""
    for item in items:
        match item.code:
            case Opcode.SET:
                bench.set(item.port, value_of(item, turns))
            case Opcode.STEP:
                for _ in range(item.amount):
                    await bench.tick()
            case Opcode.GET:
                yield item, bench.get(item.port)
            case Opcode.UNTIL:
                passed = 0
                for cycle in range(1, item.amount + 1):
                    high = bench.get(item.port)
                    await bench.tick()
                    if high:
                        passed = cycle
                        break
                yield item, passed
            case Opcode.REPEAT:
                for turn in range(item.amount):
                    async for result in execute(item.body, bench, value_of, (*turns, turn)):
                        yield result


def value_at(instance: int, words: int, item: Item, turns: tuple[int, ...]) -> int:
    """Return the value that ``item`` sets on ``instance``, in the given turns.

    ``words`` are those of the port: the last axis of its arrays, unless they have whole numbers.
    """
    array = as_array(item.values, f"port {item.port!r}")
    in_words = words > 1 and array.ndim > 1 and array.shape[-1] == words
    found = array[(instance, *turns)[: array.ndim - in_words]]
    return from_words(int(word) % (1 << WORD) for word in found) if in_words else int(found)


def words_of(item: Item, result: int, ports: Mapping[str, PortLayout]) -> list[int]:
    """Return the words of the result of ``item``, unsigned."""
    if item.code is not Opcode.GET:
        return [result]
    port = ports[item.port]
    return to_words(result & (1 << port.width) - 1, port.words)


def _expect_one_clock(simulator: Simulator, circuit: Circuit) -> None:
    """Raise ``SimulationError`` for a clock that nothing would drive."""
    design = prepared_design(simulator)
    made = made_signals(design)
    for name, domain in design.fragment.domains.items():
        if domain.clk is not circuit.domain.clk and domain.clk not in made:
            raise SimulationError(
                f"domain {name!r}: a model has one clock; take cppsim.Simulator or cppsim.Batch"
            )


class _Abandoned(Exception):
    """Another job has begun."""


class ReferenceModel(AnyModel):
    """A circuit in ``amaranth.sim``, which writes waveforms to the file ``vcd`` if there is one.

    Raises ``SimulationError`` if storage and circuit do not fit together, and for a second clock.
    """

    name = "pysim"
    slow = True

    def __init__(
        self,
        component: wiring.Component | Elaboratable,
        *,
        storage: Sequence[StoragePort] = (),
        buffers: Buffers | None = None,
        vcd: str | Path | None = None,
    ) -> None:
        circuit = Circuit(component)
        super().__init__(circuit, storage, buffers)
        self._cycles = 0
        self._ports = ByPort({**circuit.inputs, **circuit.outputs})
        self._job: _Job | None = None
        self._error: Exception | None = None
        self._fault = self._broken = ""
        self._running: _Job | None = None
        self._files = ExitStack()
        self._simulator = Simulator(circuit)
        _expect_one_clock(self._simulator, circuit)
        self._simulator.add_clock(_PERIOD, domain=circuit.domain)
        if self._storage:
            self._simulator.add_process(self._serve)
        self._simulator.add_testbench(self._work)
        self._vcd = vcd
        if vcd is not None:
            self._files.enter_context(self._simulator.write_vcd(str(vcd)))
        self._do(self._nothing)

    @property
    def cycles(self) -> int:
        return self._cycles

    def set(self, port: Port, value: PortValue) -> None:
        port = self._name_of(port)
        number = fitting_value(self.ports[port], value, self._shapes.get(port))

        async def job(context: SimulatorContext) -> None:
            context.set(self._ports[port], number)

        self._do(job)

    def get(self, port: Port) -> int:
        port = self._name_of(port)
        value = 0

        async def job(context: SimulatorContext) -> None:
            nonlocal value
            value = context.get(self._ports[port])

        self._do(job)
        return value

    def step(self, cycles: int = 1) -> None:
        count = counted_cycles(cycles)

        async def job(context: SimulatorContext) -> None:
            for _ in range(count):
                await self._tick(context)

        self._do(job)

    def until(self, port: Port, limit: int) -> bool:
        port = self._name_of(port)
        self._ports[port]
        program = Program().until(port, limit, "passed") if counted_cycles(limit) else Program()
        return bool(self.run(program).get("passed"))

    def _execute(
        self, program: Program, encoded: Encoded, columns: Sequence[int] | None = None
    ) -> Words:
        given = iter(columns or ())

        def value(item: Item, turns: tuple[int, ...]) -> int:
            words = self.ports[item.port].words
            if columns is None or isinstance(item.values, int):
                return value_at(0, words, item, turns)
            return from_words(islice(given, words))

        return np.array(self._words(program, value), np.uint64)

    def reset(self) -> None:
        """Return to the state at power-on. Raises ``SimulationError`` if waveforms are written."""
        if self._vcd is not None:
            raise SimulationError(f"{self._vcd}: waveforms cannot begin again; make a new model")
        self._simulator.reset()
        self._cycles = 0
        self._fault = self._broken = ""
        self._do(self._nothing)

    def close(self) -> None:
        self._files.close()

    async def _tick(self, context: SimulatorContext) -> None:
        job = self._running
        await context.tick()
        self._cycles += 1
        if self._job is not job:
            raise _Abandoned
        if self._fault:
            raise SimulationError(self._fault)

    def _words(self, program: Program, value_of: ValueOf) -> list[int]:
        """Execute ``program``; return the words of its results in the order of execution."""
        words: list[int] = []

        async def job(context: SimulatorContext) -> None:
            bench = Testbench(context, self._ports, partial(self._tick, context))
            async for item, value in execute(program.items, bench, value_of):
                words.extend(words_of(item, value, self.ports))

        self._do(job)
        return words

    def _do(self, job: _Job) -> None:
        """Let the simulator run until ``job`` is done.

        A job that Ctrl-C interrupts is abandoned when the next one begins. A failed check of the
        circuit lasts until `reset`.
        """
        if self._broken:
            raise SimulationError(self._broken)
        self._job, self._error = job, None
        while self._job is not None:
            try:
                self._simulator.advance()
            except AssertionError as failure:
                self._job = None
                self._broken = f"cycle {self._cycles + 1}: {failure}"
                raise SimulationError(self._broken) from None
        if self._error is not None:
            raise self._error

    async def _work(self, context: SimulatorContext) -> None:
        # Jobs run inside the simulation, where they may wait for the clock. A delay of nothing
        # hands the control back to `_do` without passing time.
        while True:
            job = self._running = self._job
            if job is not None:
                try:
                    await job(context)
                except _Abandoned:
                    continue
                except Exception as error:  # noqa: BLE001, the caller of `_do` gets every error
                    self._error = error
                self._job = None
            await context.delay(0)

    async def _serve(self, context: SimulatorContext) -> None:
        names = [name for port in self._storage for name in port.ports]
        signals = [self._ports[name] for name in names]
        async for _clock, _reset, *sampled in context.tick().sample(*signals):
            values = dict(zip(names, sampled, strict=True))
            for _, port in in_order(self._storage):
                if values[port.enable]:
                    self._access(context, port, values)

    def _access(self, context: SimulatorContext, port: StoragePort, values: dict[str, int]) -> None:
        buffer = self._buffers[port.buffer]
        size = self.widths[port.data] // 8
        start = values[port.address] * size
        if start >= buffer.size:
            self._fault = f"storage port {port.data}: an access is past its buffer"
        elif port.access is StorageAccess.READ:
            word = int.from_bytes(buffer[start : start + size].tobytes(), "little")
            context.set(self._ports[port.data], word)
        else:
            word_bytes = values[port.data].to_bytes(size, "little")
            for index in range(size):
                if values[port.mask] >> index & 1:
                    buffer[start + index] = word_bytes[index]

    async def _nothing(self, context: SimulatorContext) -> None:
        """Let the simulator begin."""
