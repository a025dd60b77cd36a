"""Random programs give the same on threads and in the GPU's source, for each layout of a tile."""

import random
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pytest

from cppsim import Batch, Program
from cppsim.batch import cached, cuda, emit
from support.batches import batch_of, on_backend
from support.random_designs import random_circuit, random_machine, random_system

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("gpu")]


@dataclass(frozen=True)
class Layout:
    """A tile's layout: its lanes, use of shared memory for its words, and use of short indices."""

    lanes: int
    shared: bool = True
    short: bool = True


def random_program(chance: random.Random, batch: Batch, length: int) -> Program:
    """Return sets, steps, waits, reads and loops, all with values for each instance."""
    ports = list(batch.description.ports.values())
    inputs = [port for port in ports if port.input]
    names = map("{} {}".format, count(), iter(lambda: chance.choice(ports).name, None))
    program = Program()

    def number(port: Any) -> int:
        value = chance.getrandbits(port.width)
        return value - (value >> port.width - 1 << port.width) if port.signed else value

    def some(steps: int, depth: int) -> None:
        for _ in range(steps):
            kind = chance.choice(("set", "set", "step", "until", "get", "repeat"))
            if kind == "set" and inputs:
                port = chance.choice(inputs)
                values = [number(port) for _ in range(batch.instances)]
                program.set(port.name, np.array(values, object))
            elif kind == "step":
                program.step(chance.choice((0, 1, 2, 5)))
            elif kind == "repeat" and depth < 2:
                with program.repeat(chance.randint(1, 3)):
                    some(3, depth + 1)
            else:
                name = next(names)
                port_name = name.partition(" ")[2]
                if kind == "until":
                    program.until(port_name, chance.choice((1, 2, 7)), name)
                else:
                    program.get(port_name, name)

    some(length, 0)
    return program


@pytest.mark.parametrize(
    ("make", "seed", "instances", "layout"),
    [
        (random_circuit, 0, 129, Layout(128)),
        (random_machine, 1, 65, Layout(64)),
        (random_system, 2, 33, Layout(32)),
        (random_circuit, 3, 31, Layout(128, short=False)),
        (random_system, 4, 130, Layout(128, shared=False)),
    ],
)
def test_random_programs(
    make: Any, seed: int, instances: int, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "_LANES", (layout.lanes,))
    if not layout.short:
        monkeypatch.setattr(emit, "_SHORT", 0)
        monkeypatch.setattr(cached, "_CODE", f"{cached._CODE}, with long programs only")
    if not layout.shared:
        monkeypatch.setattr(cuda, "_OWN", 4 << 16)
    design = make(seed)
    on_threads = batch_of(design, instances, "threads")
    on_gpu = on_backend(on_threads, "cuda")
    chance = random.Random(seed)
    compared = 0
    for _ in range(2):
        program = random_program(chance, on_threads, 25)
        expected, found = on_threads.run(program), on_gpu.run(program)
        different = [name for name in expected if (expected[name] != found[name]).any()]
        assert not different, f"seed {seed}: {different[0]}"
        rows = on_threads.all_rows()
        assert (rows == on_gpu.all_rows()).all(), f"seed {seed}: memories"
        compared += len(expected)
    assert compared > 1
