"""Share lowered designs between simulations. No tests here."""

from collections.abc import Callable
from functools import cache
from typing import Any

from amaranth.hdl import MemoryData, Signal

from cppsim import engine
from cppsim.designs import Compiled, built
from cppsim.netlist.covered import Measured
from cppsim.netlist.fingerprint import fingerprint
from cppsim.testing import RandomDesign, random_machine

_Key = tuple[Measured, tuple[int, ...]]


@cache
def machine(seed: int) -> RandomDesign:
    """Return the `random_machine` of ``seed``, the same object for all tests."""
    return random_machine(seed)


LOWERED: dict[_Key, tuple[Any, Compiled]] = {}
"""Lowered designs by their measured points, and by the identities of signals and memories."""


def write_once(replace: Callable[[Any, str, Any], None]) -> None:
    """Lower a design once for all engines that simulate it.

    Lowering takes most of the time of a test of a random machine. A module has to define its clock
    domains: Amaranth creates missing ones anew for each simulation. ``replace`` is called like
    ``setattr``.
    """

    def found(design: Any, measured: Measured) -> Compiled:
        objects = fingerprint(design).objects
        held = tuple(id(x) for x in objects if isinstance(x, Signal | MemoryData))
        key = measured, held
        if key not in LOWERED:
            LOWERED[key] = design, built(design, measured)
        return LOWERED[key][1]

    replace(engine, "built", found)
