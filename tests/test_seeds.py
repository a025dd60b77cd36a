"""Tests of the seeds, examples and parameters that the tiers take."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from support.rotation import REPLAY
from support.seeds import DEEP, FACTOR, FULL, QUICK, SINGLE, examples, seeds, slow


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(FACTOR, raising=False)
    monkeypatch.delenv(SINGLE, raising=False)
    monkeypatch.setenv(REPLAY, "some")
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 2), (DEEP, 30)])
def test_the_seeds_of_the_outer_tiers_are_fixed(tier: str, count: int) -> None:
    settings.load_profile(tier)
    assert list(seeds(2, 10)) == list(range(count))


@pytest.mark.parametrize(
    ("few", "most", "count"), [(2, 10, 3), (1, 3, 2), (4, 8, 5), (2, 2, 2), (20, 200, 34)]
)
def test_the_full_tier_has_a_sixth_of_the_seeds(few: int, most: int, count: int) -> None:
    settings.load_profile(FULL)
    found = list(seeds(few, most))
    assert len(found) == count
    assert found == sorted(set(found))
    assert found[:few] == list(range(few))
    assert max(found) < most


def test_each_commit_draws_others_and_always_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    settings.load_profile(FULL)
    seen, before = set[int](), list[int]()
    for commit in range(40):
        monkeypatch.setenv(REPLAY, f"{commit:08}")
        found = list(seeds(10, 100))
        assert list(seeds(10, 100)) == found != before
        seen, before = seen | set(found), found
    assert len(seen) > 90, "of 100"


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 10), (FULL, 50), (DEEP, 150)])
def test_the_profile_chooses_the_number_of_examples(tier: str, count: int) -> None:
    settings.load_profile(tier)
    assert examples(0.5).max_examples == count
    assert examples(0).max_examples == 1


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 6), (FULL, 7), (DEEP, 90)])
def test_a_factor_multiplies_all(tier: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.load_profile(tier)
    monkeypatch.setenv(FACTOR, "3")
    assert len(seeds(2, 10)) == count


@pytest.mark.parametrize("tier", [QUICK, FULL])
def test_a_single_seed_is_replayed_alone(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.load_profile(tier)
    monkeypatch.setenv(FACTOR, "3")
    monkeypatch.setenv(SINGLE, "70")
    assert seeds(2, 10) == range(70, 71)


def test_slow_parameters_have_the_mark() -> None:
    parameters = slow(1, "two")
    assert parameters.values == (1, "two")
    assert [mark.name for mark in parameters.marks] == ["slow"]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
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
