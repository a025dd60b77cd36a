"""Tests of the seeds that random tests run with."""

import pytest

from support.seeds import FACTOR, SINGLE, TIER, seeds


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TIER, raising=False)
    monkeypatch.delenv(FACTOR, raising=False)
    monkeypatch.delenv(SINGLE, raising=False)


def test_the_quick_tier_has_few_and_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seeds(2, 10) == range(2)
    monkeypatch.setenv(TIER, "quick")
    assert seeds(2, 10) == range(2)


def test_the_full_tier_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIER, "full")
    assert seeds(2, 10) == range(10)


@pytest.mark.parametrize(("tier", "count"), [("quick", 6), ("full", 30)])
def test_a_factor_multiplies_both(tier: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIER, tier)
    monkeypatch.setenv(FACTOR, "3")
    assert seeds(2, 10) == range(count)


@pytest.mark.parametrize("tier", ["quick", "full"])
def test_a_single_seed_is_replayed_alone(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIER, tier)
    monkeypatch.setenv(FACTOR, "3")
    monkeypatch.setenv(SINGLE, "70")
    assert seeds(2, 10) == range(70, 71)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (TIER, "fast", "BITLANE_TIER: 'fast'; expected quick or full"),
        (FACTOR, "0", "SEEDS: '0'; expected a whole number from 1 on"),
        (FACTOR, "-1", "SEEDS: '-1'; expected a whole number from 1 on"),
        (SINGLE, "-7", "SEED: '-7'; expected a whole number from 0 on"),
        (FACTOR, "ten", "SEEDS: 'ten'; expected a whole number from 1 on"),
    ],
)
def test_other_values_are_refused(
    variable: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError) as error:
        seeds(2, 10)
    assert str(error.value) == message
