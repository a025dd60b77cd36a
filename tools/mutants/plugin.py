"""A plugin of pytest for runs of changed sources.

It runs tests in the order of the command line, does not look for a smaller example once one fails,
and limits memory: a changed loop may never end.
"""

import resource
from collections.abc import Generator

import pytest
from hypothesis import Phase, settings

_MEMORY = 12 << 30
"""Bytes of address space of a process."""


def pytest_configure() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Leave out what hypothesis does after an example has failed."""
    name = settings.get_current_profile_name()
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(name, settings.get_profile(name), phases=phases, database=None)
    settings.load_profile(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    order = {item: number for number, item in enumerate(items)}
    yield
    items.sort(key=order.__getitem__)
