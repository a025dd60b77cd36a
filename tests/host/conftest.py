"""The device and the driver of these tests, where a file has none of its own, and the program."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from bitlane import Device
from bitlane.driver import Driver
from bitlane.links import Link
from support.command_line import CommandLine
from support.host.arrays import model
from support.host.model_link import ModelLink


@pytest.fixture
def device() -> Iterator[Device]:
    """Yield a modelled device; assert that all of its memory is free at the end."""
    device = model()
    yield device
    if device.driver.allocator.pieces:
        gc.collect()  # takes as long as a test; only cycles of references need it
    assert device.driver.allocator.pieces == 0


@pytest.fixture
def link() -> ModelLink:
    return ModelLink(memory_bytes=1 << 16)


@pytest.fixture
def driver(link: ModelLink) -> Driver:
    return Driver(link)


@pytest.fixture(scope="session", autouse=True)
def _guarded_allocations() -> Iterator[None]:
    """Let every model of a device assert that accesses stay in one allocation of its driver."""
    connect = Driver.__init__

    def connect_guarded(driver: Driver, link: Link, **options: Any) -> None:
        connect(driver, link, **options)
        if isinstance(link, ModelLink):
            link.allocations = driver.allocator.taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Driver, "__init__", connect_guarded)
        yield


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)
