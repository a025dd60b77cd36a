"""Pythons that the wheels are installed on: the one that runs the tests, or with an option all."""

import sys

import pytest

OPTION = "--every-python"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="install on each Python that is allowed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "version" in metafunc.fixturenames:
        own = "{}.{}".format(*sys.version_info)
        every = metafunc.config.getoption(OPTION, default=False)
        metafunc.parametrize("version", metafunc.module.allowed() if every else [own])
