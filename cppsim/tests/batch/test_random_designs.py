"""Every instance of a batch shows what its design alone shows, on both backends, bit for bit."""

from collections.abc import Callable

import pytest

from support.batches import compare_batch
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
