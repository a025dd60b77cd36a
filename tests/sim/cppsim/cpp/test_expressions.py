"""Random expressions show in compiled code what they show in Amaranth's simulator."""

import pytest

import cppsim
from support.sim.random_designs import random_expressions, random_machine, trace
from support.sim.seeds import seeds


@pytest.mark.parametrize("seed", seeds(25))
def test_combinational_logic(seed: int) -> None:
    slow = trace(random_expressions(seed), "pysim", steps=25, seed=seed)
    fast = trace(random_expressions(seed), cppsim.Engine, steps=25, seed=seed)
    assert fast == slow, seed


@pytest.mark.parametrize("seed", seeds(15))
def test_machines_of_several_clocks(seed: int) -> None:
    slow = trace(random_machine(seed), "pysim", steps=60, seed=seed)
    fast = trace(random_machine(seed), cppsim.Engine, steps=60, seed=seed)
    assert fast == slow, seed
