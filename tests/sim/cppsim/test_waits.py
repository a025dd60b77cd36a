"""Waits for ticks, leaps over time, and the order of testbenches on compiled code, beside pysim."""

from collections.abc import Callable
from typing import Any

import amaranth.sim
import pytest

import cppsim
from cppsim.mode import Mode
from support.sim.random_designs import random_machine
from support.sim.random_testbenches import follow

Make = Callable[[Any], Any]


def on_engine(module: Any) -> Any:
    return amaranth.sim.Simulator(module, engine=cppsim.Engine)  # type: ignore[call-arg]  # stubs lag


def leaping(module: Any) -> Any:
    return cppsim.Simulator(module, mode=Mode.ALWAYS)


@pytest.mark.parametrize("make", [on_engine, leaping])
@pytest.mark.parametrize("seed", range(20))
def test_random_testbenches(make: Make, seed: int) -> None:
    slow = follow(amaranth.sim.Simulator, random_machine(seed), seed=seed)
    fast = follow(make, random_machine(seed), seed=seed)
    assert fast == slow, seed
