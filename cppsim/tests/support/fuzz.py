"""Random designs as submodules of one module, and executors compared on them.

    python -m support.fuzz COUNT [FIRST_SEED]

compares ``COUNT`` designs of each kind; `make verify` compares the first ones. Lowered designs are
shared between simulations. No tests here.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

from amaranth.hdl import DomainRenamer, MemoryData, Module, Signal

from cppsim import engine
from cppsim.coverage import Measured
from cppsim.designs import Compiled, built
from cppsim.netlist.fingerprint import fingerprint
from cppsim.testing import RandomDesign, random_expressions, random_machine, random_system, trace
from support.seeds import SINGLE

MOST = 15
"""Designs of a pack at most."""

Make = Callable[[int], RandomDesign]
"""A function that makes the random design of a seed."""

Compare = Callable[[Sequence[int]], int]
"""Compares the designs of some seeds side by side, and returns how many values.

Raises ``AssertionError`` for a difference.
"""


def in_packs(seeds: Sequence[int]) -> list[Sequence[int]]:
    """Divide ``seeds`` into packs of up to `MOST`."""
    return [seeds[first : first + MOST] for first in range(0, len(seeds), MOST)]


def side_by_side(designs: Mapping[int, RandomDesign]) -> dict[int, RandomDesign]:
    """Return ``designs`` as submodules of one module, which is the module of each.

    A clock of the design of seed 7 is then called ``seed7_sync`` instead of ``sync``. A single
    design stays as it is. The given designs cannot be used afterwards: this renames their
    clock domains.
    """
    if len(designs) == 1:
        return dict(designs)
    top = Module()
    packed = {}
    for seed, design in designs.items():
        names = {name: f"seed{seed}_{name}" for name in design.domains}
        top.submodules[f"seed{seed}"] = DomainRenamer(names)(design.module)
        clocks = {names[name]: period for name, period in design.clocks.items()}
        packed[seed] = replace(design, module=top, clocks=clocks, domains=tuple(names.values()))
    return packed


def merged(designs: Collection[RandomDesign]) -> RandomDesign:
    """Return the designs that `side_by_side` returned as one design."""
    (module,) = {design.module for design in designs}
    return RandomDesign(
        module,
        [signal for design in designs for signal in design.inputs],
        [signal for design in designs for signal in design.outputs],
        {name: period for design in designs for name, period in design.clocks.items()},
        [name for design in designs for name in design.domains],
    )


def compare_designs(
    make: Make, seeds: Sequence[int], compare: Callable[[dict[int, RandomDesign]], int]
) -> int:
    """Compare the designs that ``make`` returns for ``seeds`` as `compare_pack` does."""
    return compare_pack(
        seeds, lambda some: compare(side_by_side({seed: make(seed) for seed in some}))
    )


def compare_pack(seeds: Sequence[int], compare: Compare) -> int:
    """Compare the designs of ``seeds`` side by side, and each alone where that fails.

    The ``AssertionError`` then names the seed which ``compare([seed])`` replays, as the test does
    with that seed as `SINGLE`.
    """
    try:
        return compare(seeds)
    except AssertionError as together:
        for seed in seeds:
            try:
                compare([seed])
            except AssertionError as alone:
                raise AssertionError(f"seed {seed}: {alone}; {SINGLE}={seed} replays it") from None
        text = f"seeds {seeds[0]} to {seeds[-1]} side by side, and none of them alone: {together}"
        raise AssertionError(text) from together


EXPRESSIONS, STEPS = 200, 200
"""Expressions per design of expressions, and steps per design, in long runs."""

FIRST_SEED = 1000
"""The first seed of long runs."""


def fuzz(
    make: Make, seeds: Sequence[int], *, steps: int, executors: Iterable[str] = ("check",)
) -> int:
    """Compare designs over ``steps`` random inputs; return the number of compared values.

    The designs of all seeds run side by side on each of the ``executors``, of which "check" alone
    compares two simulators. Raises ``AssertionError`` that names the difference and the seed whose
    design also differs alone.
    """

    def compare(designs: dict[int, RandomDesign]) -> int:
        shown = {name: trace(designs, name, steps=steps) for name in executors}
        first, *others = shown
        for name in others:
            assert shown[name] == shown[first], f"{name} shows something else than {first}"
        return sum(map(len, chain.from_iterable(shown[first].values())))

    return compare_designs(make, seeds, compare)


def many_expressions(seed: int) -> RandomDesign:
    """Return a design of `EXPRESSIONS` expressions, as in long runs."""
    return random_expressions(seed, EXPRESSIONS)


def _fuzz_many(count: int, first: int = FIRST_SEED) -> None:
    values = 0
    for seed in range(first, first + count):
        values += fuzz(many_expressions, [seed], steps=STEPS)
        values += fuzz(random_system, [seed], steps=STEPS)
        print(f"\r{seed - first + 1} of {count}: {values:,} values", end="", flush=True)
    print()


if __name__ == "__main__":
    _fuzz_many(*map(int, sys.argv[1:]))


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
