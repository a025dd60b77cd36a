"""A modelled device for expressions, where a file has none of its own."""

import pytest

from bitlane.driver import Driver
from support.host.model_link import ModelLink

MEMORY = 1 << 16


@pytest.fixture
def link() -> ModelLink:
    return ModelLink(memory_bytes=MEMORY)


@pytest.fixture
def driver(link: ModelLink) -> Driver:
    return Driver(link)
