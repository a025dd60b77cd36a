"""Designs that several simulations share are lowered once. No tests here."""

from collections.abc import Callable
from functools import cache
from typing import Any

from cppsim import engine
from cppsim.private import memories_of, signals_of
from cppsim.starting.background import Written, written

from .random_designs import RandomDesign, random_machine

__all__ = ["machine", "write_once"]

_Key = tuple[int, ...]


@cache
def machine(seed: int) -> RandomDesign:
    """Return the `random_machine` of ``seed``, the same for all tests: nothing changes it."""
    return random_machine(seed)


_kept: dict[_Key, tuple[Any, Written]] = {}
"""What is written of each design, with the design, whose identities make the key."""


def write_once(replace: Callable[[Any, str, Any], None]) -> None:
    """Let engines find what is written of a design with the same signals and memories.

    So its module defines its clock domains: Amaranth makes missing ones anew each time.
    Lowering takes most of the time of a test of a random machine. ``replace`` is called as
    ``setattr``.
    """

    def found(design: Any) -> Written:
        key = tuple(map(id, (*signals_of(design), *memories_of(design))))
        if key not in _kept:
            _kept[key] = design, written(design)
        return _kept[key][1]

    replace(engine, "written", found)
