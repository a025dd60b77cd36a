"""One instance of a stand alone, in the single simulator, which can write waveforms."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from amaranth.hdl import Value
from numpy.typing import NDArray

import cppsim
from bitlane_rtl.configuration import Configuration

from .harness import Stand
from .script import Advance, Item, Look, Repeat, Script, SetPort, Until

__all__ = ["Seen", "run_alone"]

_PERIOD = 1e-8

Bytes = NDArray[np.uint8]

_Context: TypeAlias = Any
"""Of a testbench."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a script came to: its results, lists within repeats, and the RAM after it."""

    results: dict[str, Any]
    ram: Bytes


def run_alone(
    configuration: Configuration,
    ram: Bytes,
    scripts: Sequence[Script],
    instance: int,
    vcd: Path | None = None,
) -> list[Seen]:
    """Let ``instance`` of those that ``scripts`` are for do one after the other, from power-on."""
    size = configuration.data_bytes
    words = [
        int.from_bytes(ram[at : at + size].tobytes(), "little") for at in range(0, ram.size, size)
    ]
    stand = Stand(configuration, len(words), words)
    memory: Any = stand.ram.data
    simulator = cppsim.Simulator(stand, mode="auto")  # most replays end before a compiler would
    simulator.add_clock(_PERIOD)
    seen: list[Seen] = []

    async def work(context: _Context) -> None:
        one = _One(stand, context, instance)
        for script in scripts:
            one.results = {}
            await one.run(script.items, ())
            rows = [context.get(memory[number]) for number in range(len(words))]
            content = b"".join(int(row).to_bytes(size, "little") for row in rows)
            seen.append(Seen(one.results, np.frombuffer(content, np.uint8)))

    simulator.add_testbench(work)
    if vcd is None:
        simulator.run()
    else:
        with simulator.write_vcd(str(vcd)):
            simulator.run()
    return seen


class _One:
    """An instance that is told what to do."""

    def __init__(self, stand: Stand, context: _Context, instance: int) -> None:
        self.results: dict[str, Any] = {}
        self._stand = stand
        self._context = context
        self._instance = instance

    async def run(self, items: Sequence[Item], turn: tuple[int, ...]) -> None:
        for item in items:
            match item:
                case SetPort(port, values):
                    place = (self._instance, *turn)[: np.ndim(values)]
                    self._context.set(self._port(port), int(np.asarray(values)[place]))
                case Advance(cycles):
                    for _ in range(cycles):
                        await self._context.tick()
                case Until(port, limit, name):
                    self._note(name, await self._until(port, limit), turn)
                case Look(port, name):
                    self._note(name, self._get(port), turn)
                case Repeat(times, body):
                    for number in range(times):
                        await self.run(body, (*turn, number))

    async def _until(self, port: str, limit: int) -> int:
        for cycle in range(1, limit + 1):
            there = self._get(port)
            await self._context.tick()
            if there:
                return cycle
        return 0

    def _get(self, port: str) -> int:
        return int(self._context.get(self._port(port)))

    def _port(self, name: str) -> Value:
        found: Any = self._stand
        for part in name.split("__"):
            found = getattr(found, part)
        return found

    def _note(self, name: str, value: int, turn: tuple[int, ...]) -> None:
        if turn:
            self.results.setdefault(name, []).append(value)
        else:
            self.results[name] = value
