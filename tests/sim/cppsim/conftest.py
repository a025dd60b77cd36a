"""Fixtures that the tests of cppsim share."""

from collections.abc import Iterator

import pytest

from cppsim.mode import Mode, set_default_mode


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    """Compile every simulation of these tests from the beginning."""
    set_default_mode(Mode.ALWAYS)
    yield
    set_default_mode(None)
