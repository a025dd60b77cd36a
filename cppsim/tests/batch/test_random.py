"""Random designs and programs give the same alone, on threads and in the GPU's source."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cppsim.batch import cached, cuda, emit
from support.batches import batch_of, compare_batch, on_backend
from support.carriers import RandomProgram
from support.random_designs import (
    RandomDesign,
    random_circuit,
    random_expressions,
    random_machine,
    random_system,
)
from support.seeds import seeds, slow

pytestmark = pytest.mark.usefixtures("gpu")

BACKENDS = ("threads", "cuda")


def expressions(seed: int) -> RandomDesign:
    return random_expressions(seed, 20)


@pytest.mark.parametrize("make", [slow(random_circuit), random_machine, slow(random_system)])
def test_circuits_machines_and_systems(make: Callable[[int], RandomDesign]) -> None:
    assert compare_batch(make, seeds(1, 2), BACKENDS) > 0


@pytest.mark.slow
def test_expressions() -> None:
    pack = seeds(1, 2)
    assert compare_batch(expressions, pack, BACKENDS) == 2 * 3 * 12 * 20 * len(pack)


@dataclass(frozen=True)
class Layout:
    """A tile's layout: its lanes, use of shared memory for its words, and use of short indices."""

    lanes: int
    shared: bool = True
    short: bool = True


@pytest.mark.slow
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
    ports, compared = list(on_threads.description.ports.values()), 0
    for number in range(2):
        program = RandomProgram(ports, 2 * seed + number, instances, 25).of()
        expected, found = on_threads.run(program), on_gpu.run(program)
        different = [name for name in expected if (expected[name] != found[name]).any()]
        assert not different, f"seed {seed}: {different[0]}"
        rows = on_threads.all_rows()
        assert (rows == on_gpu.all_rows()).all(), f"seed {seed}: memories"
        compared += len(expected)
    assert compared > 1
