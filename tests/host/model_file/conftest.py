"""Each test runs in an empty folder, so that a model file and its outputs have plain names."""

from pathlib import Path

import pytest

from support.host.model_files import Runner


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def runner() -> Runner:
    return Runner()
