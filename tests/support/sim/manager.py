"""An AXI4 manager in plain Python that drives an ``Axi4Memory`` cycle by cycle. No tests here."""

import random
from collections import deque
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from bitlane_sim.system import AddressRange, Axi4Memory
from cppsim import Model, StorageAccess, StoragePort
from cppsim.circuits import AnyModel


def memory_storage(*, two: bool) -> list[StoragePort]:
    """Storage ports of an ``Axi4Memory`` as the top level."""
    ports = dict.fromkeys(("read", "read_b")[: 1 + two], StorageAccess.READ)
    ports["write"] = StorageAccess.WRITE
    return [StoragePort.of_member(name, "ram", access) for name, access in ports.items()]


@dataclass
class Manager:
    """A manager that sends queued payloads at once, and logs every handshake with its cycle.

    ``patience`` is the chance that RREADY, or BREADY, is high in a cycle; ``eagerness`` that a
    waiting valid rises.
    """

    evaluator: AnyModel
    two: bool = False
    patience: float = 1.0
    eagerness: float = 1.0
    choose: random.Random = field(default_factory=lambda: random.Random(0))
    reads: dict[str, deque[tuple[int, int]]] = field(
        default_factory=lambda: {"axi": deque(), "axi_b": deque()}
    )
    writes: deque[tuple[int, int]] = field(default_factory=deque)
    beats: deque[tuple[int, int, int]] = field(default_factory=deque)
    log: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    _raised: dict[str, bool] = field(default_factory=dict)
    _offered: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def read(self, address: int, beats: int, port: str = "axi") -> None:
        self.reads[port].append((address, beats - 1))

    def write(self, address: int, beats: list[tuple[int, int]]) -> None:
        """Queue a burst of (data, strobe)."""
        self.writes.append((address, len(beats) - 1))
        for number, (word, strobe) in enumerate(beats):
            self.beats.append((word, strobe, int(number == len(beats) - 1)))

    def control(self, **settings: int) -> None:
        """Set ports of the memory's control."""
        for name, value in settings.items():
            self.evaluator.set(f"control__{name}", value)

    def cycle(self) -> None:
        """Advance by one clock cycle; assert that the memory holds an offer until it is taken."""
        sim = self.evaluator
        sources: list[tuple[str, str, tuple[str, ...], deque]] = [
            ("axi", "aw", ("addr", "len"), self.writes),
            ("axi", "w", ("data", "strb", "last"), self.beats),
            ("axi", "ar", ("addr", "len"), self.reads["axi"]),
        ]
        sinks = [("axi", "b", ("resp",)), ("axi", "r", ("data", "resp", "last"))]
        if self.two:
            sources.append(("axi_b", "ar", ("addr", "len"), self.reads["axi_b"]))
            sinks.append(("axi_b", "r", ("data", "resp", "last")))
        for port, channel, names, queue in sources:
            name = f"{port}__{channel}"
            if queue and not self._raised.get(name):
                self._raised[name] = self.choose.random() < self.eagerness
            sim.set(f"{name}valid", int(self._raised.get(name, False)))
            if self._raised.get(name):
                for part, value in zip(names, queue[0], strict=True):
                    sim.set(f"{name}{part}", value)
        for port, channel, _ in sinks:
            sim.set(f"{port}__{channel}ready", int(self.choose.random() < self.patience))
        for port, channel, _, queue in sources:
            name = f"{port}__{channel}"
            if self._raised.get(name) and sim.get(f"{name}ready"):
                self.log.setdefault(name, []).append((sim.cycles, *queue.popleft()))
                self._raised[name] = False
        for port, channel, names in sinks:
            name = f"{port}__{channel}"
            valid = sim.get(f"{name}valid")
            payload = tuple(sim.get(f"{name}{part}") for part in names)
            if name in self._offered:
                assert valid, f"{name}valid fell before {name}ready"
                assert payload == self._offered.pop(name), f"{name} changed before {name}ready"
            if valid and sim.get(f"{name}ready"):
                self.log.setdefault(name, []).append((sim.cycles, *payload))
            elif valid:
                self._offered[name] = payload
        sim.step()

    def run(self, cycles: int) -> None:
        for _ in range(cycles):
            self.cycle()

    def cycles_of(self, name: str) -> list[int]:
        """Return the cycles of the handshakes on a channel: ``axi__r``."""
        return [entry[0] for entry in self.log.get(name, [])]

    def values_of(self, name: str, part: int = 0) -> list[int]:
        """Return a part of the payloads of a channel: for R data, response, last."""
        return [entry[1 + part] for entry in self.log.get(name, [])]


@cache
def _memory(place: AddressRange, two: bool) -> Axi4Memory:
    """Return a cached memory for ``place``, so that it is turned into a netlist once."""
    return Axi4Memory(place, two=two)


def manage(
    place: AddressRange,
    *,
    two: bool = False,
    evaluator: type[AnyModel] = Model,
    seed: int = 0,
    **options: float,
) -> tuple[Manager, np.ndarray]:
    """Return a manager of a memory with random bytes, and these bytes."""
    ram = np.random.default_rng(seed).integers(0, 256, place.size, np.uint8)
    memory = _memory(place, two)
    simulated = evaluator(memory, storage=memory_storage(two=two), buffers={"ram": ram})
    manager = Manager(simulated, two=two, choose=random.Random(seed), **options)
    return manager, ram
