"""Values of a port as words of 64 bits: from whole numbers of any type, or from words."""

from typing import Any

import numpy as np
import pytest

from cppsim.errors import BatchError
from cppsim.model.ports import PortLayout, as_words
from cppsim.netlist.design import to_words

WIDE = PortLayout("wide", 100, False, 0, True)
SIGNED = PortLayout("signed", 100, True, 0, True)
NARROW = PortLayout("narrow", 7, False, 0, True)

NUMBERS: list[tuple[PortLayout, list[int]]] = [
    (WIDE, [0, 1, (1 << 63) + 5, (1 << 64) - 1]),
    (WIDE, [1 << 64, (1 << 100) - 1, 3 << 70 | 9]),
    (SIGNED, [-1, 0, 1, -(1 << 62)]),
    (SIGNED, [-(1 << 99), (1 << 99) - 1, -(1 << 64), 7]),
    (NARROW, [0, 5, 127]),
]


def arrays(values: list[int]) -> list[np.ndarray[Any, Any]]:
    """Return ``values`` as arrays of every type that has them all."""
    found = [np.array(values, object)]
    for kind in (np.int64, np.uint64):
        limits = np.iinfo(kind)
        if limits.min <= min(values) and max(values) <= limits.max:
            found.append(np.array(values, kind))
    return found


@pytest.mark.parametrize(("port", "values"), NUMBERS)
def test_numbers_of_any_type_are_the_same_words(port: PortLayout, values: list[int]) -> None:
    expected = [to_words(value, port.words) for value in values]
    for array in arrays(values):
        words = as_words(port, array, [(len(values),)])
        ones = (1 << 64) - 1
        assert [[int(word) & ones for word in row] for row in words] == expected, array.dtype
        if port.words > 1:
            assert as_words(port, words, [(len(values),)]).tolist() == words.tolist()


@pytest.mark.parametrize(
    ("port", "values"), [(WIDE, [-1]), (WIDE, [1 << 100]), (SIGNED, [1 << 99]), (NARROW, [128])]
)
def test_numbers_that_do_not_fit_are_refused(port: PortLayout, values: list[int]) -> None:
    for array in arrays([0, *values]):
        with pytest.raises(BatchError, match=port.name):
            as_words(port, array, [(2,)])
    with pytest.raises(BatchError, match="takes an array of shape"):
        as_words(port, [1, 2, 3], [(2,)])
