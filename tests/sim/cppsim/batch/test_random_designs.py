"""Every instance of a batch shows what its design alone shows, on both backends, bit for bit."""

import pytest

from cppsim.batch import cuda
from support.seeds import seeds
from support.sim.batches import compare_batch
from support.sim.host_gpu import host_gpu
from support.sim.random_designs import (
    random_circuit,
    random_expressions,
    random_machine,
    random_system,
)

BACKENDS = ("threads", "cuda")


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile the source of the GPU's backend for this computer."""
    monkeypatch.setattr(cuda, "_cupy", host_gpu)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_circuits_of_one_clock(seed: int) -> None:
    assert compare_batch(random_circuit(seed), BACKENDS, seed=seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_expressions(seed: int) -> None:
    design = random_expressions(seed, 20)
    assert compare_batch(design, BACKENDS, seed=seed) == 2 * 3 * 12 * 20


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_machines_with_clocks_of_all_kinds(seed: int) -> None:
    assert compare_batch(random_machine(seed), BACKENDS, seed=seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_statements_states_memories_and_made_clocks(seed: int) -> None:
    assert compare_batch(random_system(seed), BACKENDS, seed=seed) > 0
