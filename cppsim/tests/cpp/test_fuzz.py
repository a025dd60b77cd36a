"""Random designs show on all executors, at all times, what they show in Amaranth's simulator.

`make deep` compares three million values; ``python -m support.fuzz COUNT`` compares COUNT designs
of each kind. Designs side by side do what each does alone.
"""

from collections.abc import Callable, Sequence

import pytest

import cppsim
from cppsim.coverage import Measured
from cppsim.cpp import words
from cppsim.testing import (
    EXECUTORS,
    RandomDesign,
    random_circuit,
    random_expressions,
    random_machine,
    random_system,
    trace,
)
from support.fuzz import (
    EXPRESSIONS,
    FIRST_SEED,
    MOST,
    STEPS,
    compare_pack,
    fuzz,
    in_packs,
    machine,
    many_expressions,
    side_by_side,
    write_once,
)
from support.seeds import seeds, slow, stride

COUNT = 100 // stride(2)


def expressions(seed: int) -> RandomDesign:
    return random_expressions(seed, COUNT)


ROWS = [(expressions, 1, 20), (random_machine, 2, 15), (random_system, 1, 6)]
PACKS = [(make, pack) for make, few, every in ROWS for pack in in_packs(seeds(few, every))]


@pytest.mark.parametrize(("make", "pack"), [*PACKS, slow(random_circuit, [0, 1])])
def test_random_designs(
    make: Callable[[int], RandomDesign], pack: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_once(monkeypatch.setattr)
    assert fuzz(make, pack, steps=40, executors=EXECUTORS) >= 40 * 10 * len(pack)


def test_what_differs_is_reported_with_its_seed(change: Callable[..., None]) -> None:
    change(words, "sign_extended", lambda operand, _: f"int64_t({operand})")
    with pytest.raises(AssertionError, match=r"^seed 1: .* is .*, and .* in Amaranth's simulator"):
        fuzz(random_expressions, range(2), steps=40)


# --- packs ----------------------------------------------------------------------------------------


def test_seeds_are_divided_into_packs() -> None:
    packs = in_packs(range(2 * MOST + 1))
    assert [len(pack) for pack in packs] == [MOST, MOST, 1]
    assert [seed for pack in packs for seed in pack] == list(range(2 * MOST + 1))


def test_designs_side_by_side_show_what_each_shows_alone() -> None:
    packed = trace(side_by_side({seed: random_system(seed) for seed in (0, 3)}), "pysim", steps=30)
    for seed, shown in packed.items():
        assert shown == trace({seed: random_system(seed)}, "pysim", steps=30)[seed], seed


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

    monkeypatch.setattr("support.fuzz.LOWERED", {})
    monkeypatch.setattr("support.fuzz.built", counted)
    write_once(monkeypatch.setattr)
    shown = [trace({1: machine(1)}, name, steps=9) for name in ("engine", "always", "pysim")]
    assert shown[0] == shown[1] == shown[2]
    assert len(times) == 1
    trace({1: random_machine(1)}, "engine", steps=9)
    assert len(times) == 2


# --- long runs ------------------------------------------------------------------------------------

BATCHES = 1_000_000 // (EXPRESSIONS * STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("make", [many_expressions, random_system])
@pytest.mark.parametrize("seed", seeds(1, BATCHES))
def test_many_values(make: Callable[[int], RandomDesign], seed: int) -> None:
    assert fuzz(make, [FIRST_SEED + seed], steps=STEPS) >= 20 * STEPS
