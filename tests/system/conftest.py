"""Fixtures that the tests of the whole path share."""

from collections.abc import Iterator

import pytest

import bitlane
from support.command_line import CommandLine
from support.seeds import slow
from support.system.devices import DEVICES, WISHBONE, opened


@pytest.fixture(scope="module", params=[*DEVICES, slow(WISHBONE)])
def device(request: pytest.FixtureRequest) -> Iterator[bitlane.Device]:
    """Yield each of the simulated devices."""
    with opened(request.param) as device:
        yield device


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)
