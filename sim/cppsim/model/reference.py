"""Evaluate a circuit with Amaranth's own simulator: slow, but pip-only and open to Python."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.sim import Simulator, SimulatorContext  # type: ignore[attr-defined]  # stubs lag

from ..netlist.storage import Buffers, StorageAccess, StoragePort, check_storage
from .circuit import Circuit
from .interface import Batch, Clock, Evaluator, Get, RunUntil, Set, SimulationError

__all__ = ["PysimEvaluator"]

_PERIOD = 1e-6
_Job = Callable[[SimulatorContext], Awaitable[None]]


class PysimEvaluator(Evaluator):
    """Evaluator over ``amaranth.sim``. Waveforms go to ``vcd`` if it is given.

    Raises ``SimulationError`` if storage and circuit do not fit together.
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
        self.widths = circuit.widths
        self._cycles = 0
        self._inputs = circuit.inputs
        self._ports = {**circuit.inputs, **circuit.outputs}
        self._storage = tuple(storage)
        self._buffers = dict(buffers or {})
        check_storage(self._storage, self._buffers, self.widths)
        self._job: _Job | None = None
        self._error: Exception | None = None
        self._fault = ""
        self._files = ExitStack()
        self._simulator = Simulator(circuit)
        self._simulator.add_clock(_PERIOD, domain=circuit.domain)
        if self._storage:
            self._simulator.add_process(self._serve)
        self._simulator.add_testbench(self._work)
        if vcd is not None:
            self._files.enter_context(self._simulator.write_vcd(str(vcd)))
        self.run(())

    @property
    def cycles(self) -> int:
        return self._cycles

    def set(self, port: str, value: int) -> None:
        self.run((Set(port, value),))

    def get(self, port: str) -> int:
        return self.run((Get(port),))[0]

    def step(self, cycles: int = 1) -> None:
        self.run((Clock(cycles),))

    def run_until(self, condition: str, limit: int) -> bool:
        came = False

        async def job(context: SimulatorContext) -> None:
            nonlocal came
            came = await self._until(context, condition, limit)

        self._do(job)
        return came

    def run(self, batch: Batch) -> list[int]:
        results: list[int] = []
        for item in batch:
            if isinstance(item, Set):
                self._check(item)

        async def job(context: SimulatorContext) -> None:
            for item in batch:
                match item:
                    case Set(port, value):
                        context.set(self._inputs[port], value)
                    case Get(port):
                        results.append(context.get(self._ports[port]))
                    case Clock(cycles):
                        for _ in range(cycles):
                            await context.tick()
                            self._cycles += 1
                            self._raise_fault()
                    case RunUntil(condition, limit):
                        if not await self._until(context, condition, limit):
                            raise SimulationError(f"{condition} was not high within {limit} cycles")

        self._do(job)
        return results

    def reset(self) -> None:
        self._simulator.reset()
        self._cycles = 0
        self._fault = ""
        self.run(())

    def close(self) -> None:
        self._files.close()

    def _check(self, item: Set) -> None:
        if item.port not in self._inputs:
            if item.port in self._ports:
                raise ValueError(f"{item.port} is no input")
            raise KeyError(item.port)
        if not 0 <= item.value < 1 << self.widths[item.port]:
            width = self.widths[item.port]
            raise ValueError(f"{item.port}: {item.value} does not fit in {width} bits")

    async def _until(self, context: SimulatorContext, condition: str, limit: int) -> bool:
        port = self._ports[condition]
        for _ in range(limit):
            *_, high = await context.tick().sample(port)
            self._cycles += 1
            self._raise_fault()
            if high:
                return True
        return False

    def _raise_fault(self) -> None:
        if self._fault:
            raise SimulationError(self._fault)

    def _do(self, job: _Job) -> None:
        """Let the simulator run until ``job`` is done."""
        self._job, self._error = job, None
        while self._job is not None:
            try:
                self._simulator.advance()
            except AssertionError as failure:
                self._job = None
                raise SimulationError(f"cycle {self._cycles + 1}: {failure}") from None
        if self._error is not None:
            raise self._error

    async def _work(self, context: SimulatorContext) -> None:
        # Jobs run inside the simulation, where they may wait for the clock. A delay of nothing
        # hands the control back to `_do` without passing time.
        while True:
            if self._job is not None:
                try:
                    await self._job(context)
                except (SimulationError, KeyError) as error:
                    self._error = error
                self._job = None
            await context.delay(0)

    async def _serve(self, context: SimulatorContext) -> None:
        names = [name for port in self._storage for name in port.ports]
        signals = [self._ports[name] for name in names]
        async for _clock, _reset, *sampled in context.tick().sample(*signals):
            values = dict(zip(names, sampled, strict=True))
            for access in (StorageAccess.READ, StorageAccess.WRITE):
                for port in self._storage:
                    if port.access is access and values[port.enable]:
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
