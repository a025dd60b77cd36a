"""An impossible search array is refused in one line that names the field."""

from typing import Any

import pytest

from bitlane_rtl.abi import BIT_OPS, Mode, Op
from bitlane_rtl.configuration import Configuration, Search


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("units", 0, "search.units: 0 is outside 1 to 1024"),
        ("row_bits", 96, "search.row_bits: 96 is not a power of two from 64 to 1024"),
        ("row_bits", 32, "search.row_bits: 32 is not a power of two from 64 to 1024"),
        ("queries", 1, "search.queries: 1 is not a power of two from 2 to 4096"),
        ("nearest", 10, "search.nearest: 10 is not a power of two from 1 to 64"),
    ],
)
def test_an_array_that_cannot_be_is_refused(field: str, value: int, says: str) -> None:
    fields: dict[str, Any] = {"units": 8, field: value}
    with pytest.raises(ValueError) as caught:
        Search(**fields)
    assert str(caught.value) == says


@pytest.mark.parametrize("data_width", [32, 64])
def test_narrow_beats_can_feed_an_array(data_width: int) -> None:
    search = Search(units=8)
    assert Configuration(data_width=data_width, search=search).search == search


def test_wide_beats_cannot() -> None:
    with pytest.raises(ValueError) as caught:
        Configuration(data_width=128, search=Search(units=8))
    assert str(caught.value) == "data_width: 128; search needs one of (32, 64)"


@pytest.mark.parametrize("data_width", [8, 48, 256, 512])
def test_other_beats_are_refused(data_width: int) -> None:
    with pytest.raises(ValueError) as caught:
        Configuration(data_width=data_width)
    says = f"data_width: {data_width} is not supported; expected 32, 64 or 128"
    assert str(caught.value) == says


def test_a_circuit_has_no_array_unless_told() -> None:
    assert Configuration().search is None


def test_operations_and_modes_list_what_is_built() -> None:
    search = Search(units=8)
    assert Op.SEARCH not in Configuration(ops=frozenset(Op)).ops
    assert Configuration(ops=BIT_OPS, search=search) == Configuration(search=search)
    assert Op.SEARCH in Configuration(search=search).ops
    assert Configuration(ops=frozenset({Op.XOR})).modes == frozenset(Mode) - {Mode.SUM}
    assert Configuration(ops=frozenset({Op.COUNT})).modes == frozenset(Mode)


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ({}, 16),
        ({"block_ram": True}, 4),
        ({"block_ram": True, "modes": frozenset({Mode.DENSE})}, 2),
        ({"block_ram": True, "data_width": 32}, 2),
        ({"block_ram": True, "data_width": 128}, 16),
    ],
)
def test_queues_ahead_of_the_data_hold_the_elements_of_a_beat(
    options: dict[str, Any], entries: int
) -> None:
    assert Configuration(**options).ahead == entries
