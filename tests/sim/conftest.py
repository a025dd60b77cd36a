"""Fixtures that the simulation's tests share."""

from pathlib import Path

import pytest

from support.command_line import CommandLine


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the folder of empty caches, which does not exist yet, and return it."""
    for owner in ("BITLANE", "CPPSIM"):
        monkeypatch.setenv(f"{owner}_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
