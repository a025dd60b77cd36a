"""Every instance of a batch shows what its design alone shows, on both backends, bit for bit."""

import pytest

from support.seeds import seeds
from support.sim.batches import compare_batch
from support.sim.random_designs import (
    RandomDesign,
    random_circuit,
    random_expressions,
    random_machine,
    random_system,
)

pytestmark = pytest.mark.usefixtures("gpu")

BACKENDS = ("threads", "cuda")


def expressions(seed: int) -> RandomDesign:
    return random_expressions(seed, 20)


@pytest.mark.slow
def test_circuits_of_one_clock() -> None:
    assert compare_batch(random_circuit, seeds(1, 2), BACKENDS) > 0


@pytest.mark.slow
def test_expressions() -> None:
    pack = seeds(1, 2)
    assert compare_batch(expressions, pack, BACKENDS) == 2 * 3 * 12 * 20 * len(pack)


def test_machines_with_clocks_of_all_kinds() -> None:
    assert compare_batch(random_machine, seeds(1, 2), BACKENDS) > 0


@pytest.mark.slow
def test_statements_states_memories_and_made_clocks() -> None:
    assert compare_batch(random_system, seeds(1, 2), BACKENDS) > 0
