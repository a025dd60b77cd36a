"""One instance of a batch alone, in the single simulator, which can write waveforms."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from amaranth.hdl import Value
from numpy.typing import NDArray

import cppsim
from bitlane_rtl.configuration import Configuration
from cppsim.model.program import Program
from cppsim.model.reference import execute, value_at

from .harness import Harness

_PERIOD = 1e-8

Bytes = NDArray[np.uint8]

_Context: TypeAlias = Any
"""The context of a testbench."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of a program, lists within repeats, and the RAM after it."""

    results: dict[str, Any]
    ram: Bytes


def run_alone(
    configuration: Configuration,
    ram: Bytes,
    programs: Sequence[Program],
    instance: int,
    vcd: Path | None = None,
) -> list[Seen]:
    """Run ``programs`` for ``instance`` one after the other, from power-on."""
    size = configuration.data_bytes
    words = [
        int.from_bytes(ram[at : at + size].tobytes(), "little") for at in range(0, ram.size, size)
    ]
    harness = Harness(configuration, len(words), words)
    memory: Any = harness.ram.data
    simulator = cppsim.Simulator(harness, mode="auto")  # most replays end before a compiler would
    simulator.add_clock(_PERIOD)
    seen: list[Seen] = []

    async def work(context: _Context) -> None:
        bench = _Testbench(harness, context)
        for program in programs:
            results = await _results(program, bench, instance)
            rows = [context.get(memory[number]) for number in range(len(words))]
            content = b"".join(int(row).to_bytes(size, "little") for row in rows)
            seen.append(Seen(results, np.frombuffer(content, np.uint8)))

    simulator.add_testbench(work)
    if vcd is None:
        simulator.run()
    else:
        with simulator.write_vcd(str(vcd)):
            simulator.run()
    return seen


async def _results(program: Program, bench: "_Testbench", instance: int) -> dict[str, Any]:
    """Execute ``program``; return its results by name: a number, or a list from a repeat."""
    outside = {id(item) for item in program.items}
    results: dict[str, Any] = {}
    async for item, value in execute(program.items, bench, partial(value_at, instance, 1)):
        if id(item) in outside:
            results[item.values] = value
        else:
            results.setdefault(item.values, []).append(value)
    return results


class _Testbench:
    """The steps of a program on the ports of a harness, whose names have ``__`` for a dot."""

    def __init__(self, harness: Harness, context: _Context) -> None:
        self._harness, self._context = harness, context

    def set(self, port: str, value: int) -> None:
        self._context.set(self._port(port), value)

    def get(self, port: str) -> int:
        return int(self._context.get(self._port(port)))

    async def tick(self) -> None:
        await self._context.tick()

    def _port(self, name: str) -> Value:
        found: Any = self._harness
        for part in name.split("__"):
            found = getattr(found, part)
        return found
