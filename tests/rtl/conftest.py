"""Parameters that tests of units share: a test that takes one of them runs with each value."""

import pytest

from support.rtl.streams import ALL_STALLS, Stalls
from support.seeds import slow


@pytest.fixture(params=ALL_STALLS, ids=str)
def stalls(request: pytest.FixtureRequest) -> Stalls:
    """Stalls that every stream has to survive."""
    each: Stalls = request.param
    return each


@pytest.fixture(params=[32, 64, slow(128)])
def width(request: pytest.FixtureRequest) -> int:
    """Bits of a beat."""
    bits: int = request.param
    return bits
