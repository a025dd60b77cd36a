"""Random designs and testbenches, and tests that have to see the same on several simulators.

`same_on` makes one test of a `Bench` a comparison of simulators, which are `EXECUTORS` or functions
of your own. `random_design` and `random_testbench` return for each seed another design and another
testbench, always the same ones for the same seed. Nothing here imports pytest.
"""

from collections.abc import Callable, Mapping

from .designs import (
    RandomDesign,
    random_circuit,
    random_clocks,
    random_expressions,
    random_machine,
    random_system,
    random_testbench,
    trace,
)
from .executors import EXECUTORS, Bench, close, delay, same_on, ticks
from .processes import follow_processes, random_clocked, random_counters
from .testbenches import follow
from .values import random_expression, random_number, random_signal
from .waveforms import Waveform, waveforms

KINDS: Mapping[str, Callable[[int], RandomDesign]] = {
    "expressions": random_expressions,
    "circuit": random_circuit,
    "machine": random_machine,
    "system": random_system,
    "counters": random_counters,
    "clocked": random_clocked,
}
"""Functions that return the random design of a seed, by the names that `random_design` takes."""

__all__ = [
    "EXECUTORS",
    "KINDS",
    "Bench",
    "RandomDesign",
    "Waveform",
    "close",
    "delay",
    "follow",
    "follow_processes",
    "random_circuit",
    "random_clocked",
    "random_clocks",
    "random_counters",
    "random_design",
    "random_expression",
    "random_expressions",
    "random_machine",
    "random_number",
    "random_signal",
    "random_system",
    "random_testbench",
    "same_on",
    "ticks",
    "trace",
    "waveforms",
]


def random_design(seed: int, kind: str = "system") -> RandomDesign:
    """Return the random design of a seed, of one of `KINDS`.

    Raises ``ValueError`` for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of design; expected {', '.join(KINDS)}")
    return KINDS[kind](seed)
