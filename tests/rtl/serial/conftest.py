"""``bench``: a serial bridge that the tests of a module share."""

import pytest

from support.serial.bench import SerialBench


@pytest.fixture(scope="module")
def bench() -> SerialBench:
    return SerialBench()
