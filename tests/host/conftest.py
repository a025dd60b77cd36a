"""The device of these tests, where a file has none of its own, and the program."""

import gc
from collections.abc import Iterator

import pytest

from bitlane.device import Device
from support.command_line import CommandLine
from support.host.arrays import model


@pytest.fixture
def device() -> Iterator[Device]:
    """Yield a modelled device; assert that all of its memory is free at the end."""
    device = model()
    yield device
    gc.collect()
    assert device.driver.allocator.pieces == 0


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)
