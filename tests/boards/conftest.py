"""The program `bitlane`, run in the process of these tests."""

import pytest

from support.command_line import CommandLine


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)
