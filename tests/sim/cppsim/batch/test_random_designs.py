"""Every instance of a batch shows what its design alone shows, on both backends, bit for bit."""

import pytest

from cppsim.batch import cuda
from support.sim.batches import compare_batch
from support.sim.host_gpu import host_gpu
from support.sim.random_designs import (
    random_circuit,
    random_expressions,
    random_machine,
    random_system,
)


@pytest.fixture(params=["threads", "cuda"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the GPU's backend the source, compiled for this computer."""
    monkeypatch.setattr(cuda, "_cupy", host_gpu)
    return str(request.param)


@pytest.mark.parametrize("seed", range(2))
def test_circuits_of_one_clock(backend: str, seed: int) -> None:
    assert compare_batch(random_circuit(seed), backend, seed=seed) > 0


@pytest.mark.parametrize("seed", range(2))
def test_expressions(backend: str, seed: int) -> None:
    assert compare_batch(random_expressions(seed, 20), backend, seed=seed) == 3 * 12 * 20


@pytest.mark.parametrize("seed", range(2))
def test_machines_with_clocks_of_all_kinds(backend: str, seed: int) -> None:
    assert compare_batch(random_machine(seed), backend, seed=seed) > 0


@pytest.mark.parametrize("seed", range(2))
def test_statements_states_memories_and_made_clocks(backend: str, seed: int) -> None:
    assert compare_batch(random_system(seed), backend, seed=seed) > 0
