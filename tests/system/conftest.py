"""Fixtures that the tests of the whole path share."""

from collections.abc import Iterator

import pytest

import bitlane
from support.command_line import CommandLine
from support.system.devices import DEVICES, opened


@pytest.fixture(scope="module", params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[bitlane.Device]:
    """Yield each of the simulated devices."""
    with opened(request.param) as device:
        yield device


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)
