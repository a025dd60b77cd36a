"""Random expressions show in compiled code what they show in Amaranth's simulator."""

from collections.abc import Callable, Sequence

import pytest

import cppsim
from support.seeds import seeds
from support.sim.packs import compare_designs, in_packs
from support.sim.random_designs import RandomDesign, random_expressions, random_machine, trace_all


def compared(make: Callable[[int], RandomDesign], pack: Sequence[int], steps: int) -> int:
    """Compare the traces of the designs of a pack; return of how many designs."""

    def compare(designs: dict[int, RandomDesign]) -> int:
        slow, fast = (
            trace_all(designs, engine, steps=steps) for engine in ("pysim", cppsim.Engine)
        )
        assert fast == slow
        return len(slow)

    return compare_designs(make, pack, compare)


@pytest.mark.parametrize("pack", in_packs(seeds(3, 25)), ids=str)
def test_combinational_logic(pack: Sequence[int]) -> None:
    assert compared(random_expressions, pack, 25) == len(pack)


@pytest.mark.parametrize("pack", in_packs(seeds(2, 15)), ids=str)
def test_machines_of_several_clocks(pack: Sequence[int]) -> None:
    assert compared(random_machine, pack, 60) == len(pack)
