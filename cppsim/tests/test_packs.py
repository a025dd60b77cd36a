"""Tests of packs: random designs side by side do what each of them does alone."""

from collections.abc import Callable, Sequence

import pytest

import cppsim
from cppsim.netlist.covered import Measured
from cppsim.testing import RandomDesign, random_circuit, random_machine, random_system, trace
from support.packs import MOST, compare_pack, in_packs, side_by_side
from support.written_once import machine, write_once


def test_seeds_are_divided_into_packs() -> None:
    packs = in_packs(range(2 * MOST + 1))
    assert [len(pack) for pack in packs] == [MOST, MOST, 1]
    assert [seed for pack in packs for seed in pack] == list(range(2 * MOST + 1))


@pytest.mark.parametrize("make", [random_circuit, random_machine, random_system])
def test_designs_side_by_side_show_what_each_shows_alone(
    make: Callable[[int], RandomDesign],
) -> None:
    packed = trace(side_by_side({seed: make(seed) for seed in (0, 3)}), "pysim", steps=30)
    for seed, shown in packed.items():
        assert shown == trace({seed: make(seed)}, "pysim", steps=30)[seed], seed


def differing(*wrong: int) -> Callable[[Sequence[int]], int]:
    """Return a comparison that fails for the seeds ``wrong``, and for seed 5 beside others."""

    def compare(seeds: Sequence[int]) -> int:
        found = [seed for seed in seeds if seed in wrong or (seed == 5 and len(seeds) > 1)]
        assert not found, f"designs {found} differ"
        return len(seeds)

    return compare


def test_the_seed_that_differs_alone_is_named() -> None:
    assert compare_pack(range(4), differing(7)) == 4
    with pytest.raises(
        AssertionError, match=r"(?s)^seed 2: designs \[2\] differ.*; SEED=2 replays it"
    ):
        compare_pack(range(4), differing(2, 3))


def test_what_differs_only_side_by_side_is_no_less_a_failure() -> None:
    text = r"^seeds 4 to 6 side by side, and none of them alone: designs \[5\] differ"
    with pytest.raises(AssertionError, match=text):
        compare_pack(range(4, 7), differing())


def test_a_shared_design_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built, times = cppsim.engine.built, list[object]()

    def counted(design: object, measured: Measured) -> object:
        times.append(design)
        return built(design, measured)

    monkeypatch.setattr("support.written_once.LOWERED", {})
    monkeypatch.setattr("support.written_once.built", counted)
    write_once(monkeypatch.setattr)
    shown = [trace({1: machine(1)}, name, steps=9) for name in ("engine", "always", "pysim")]
    assert shown[0] == shown[1] == shown[2]
    assert len(times) == 1
    trace({1: random_machine(1)}, "engine", steps=9)
    assert len(times) == 2
