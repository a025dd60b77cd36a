"""Run a program on one instance of a batch in the single simulator, for prints and waveforms."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from amaranth.hdl import Value

from ..amaranth_internals import time_of
from ..model.ports import found
from ..model.program import Program
from ..model.reference import execute, value_at, words_of
from .circuit import PortChoice
from .description import Description
from .record import PERIOD, one_instance

CYCLES = "$cycles"


def run_alone(
    choice: PortChoice,
    description: Description,
    program: Program,
    instance: int,
    vcd: Path | str | None,
) -> list[int]:
    """Run ``program``, with names of ports, on one instance from power-on; see `Batch.alone`.

    Return the words of its results, in the order of execution.
    """
    simulator, ports = one_instance(choice, description)
    words: list[int] = []

    def value(item: Any, turns: tuple[int, ...]) -> int:
        return value_at(instance, description.ports[item.port].words, item, turns)

    async def work(context: Any) -> None:
        bench = _Testbench(context, ports.values)
        async for item, result in execute(program.items, bench, value):
            words.extend(words_of(item, result, description.ports))

    simulator.add_testbench(work)
    with ExitStack() as files:
        if vcd is not None:
            files.enter_context(simulator.write_vcd(str(vcd)))
        simulator.run()
    return words


class _Testbench:
    """The steps of a program, each of which ends with low clocks."""

    def __init__(self, context: Any, values: Mapping[str, Value]) -> None:
        self._context, self._values = context, values
        self._cycles = 0

    def set(self, port: str, value: int) -> None:
        self._context.set(found(self._values, port, "port"), value)

    def get(self, port: str) -> int:
        if port == CYCLES:
            return self._cycles
        return int(self._context.get(found(self._values, port, "port")))

    async def tick(self) -> None:
        await self._context.delay(time_of(PERIOD))
        self._cycles += 1
