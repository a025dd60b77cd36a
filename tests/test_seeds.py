"""Tests of the seeds, examples and parameters that the tiers take."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from support.seeds import FACTOR, FULL, QUICK, SINGLE, examples, seeds, slow


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(FACTOR, raising=False)
    monkeypatch.delenv(SINGLE, raising=False)
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 2), (FULL, 10), ("explore", 10)])
def test_the_profile_chooses_the_number_of_seeds(tier: str, count: int) -> None:
    settings.load_profile(tier)
    assert seeds(2, 10) == range(count)


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 10), (FULL, 50)])
def test_the_profile_chooses_the_number_of_examples(tier: str, count: int) -> None:
    settings.load_profile(tier)
    assert examples(0.5).max_examples == count
    assert examples(0).max_examples == 1


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 6), (FULL, 30)])
def test_a_factor_multiplies_both(tier: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.load_profile(tier)
    monkeypatch.setenv(FACTOR, "3")
    assert seeds(2, 10) == range(count)


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
        (SINGLE, "-7", "REPLAY: '-7'; expected a whole number from 0 on"),
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
