"""What tests of the simulation share."""

from pathlib import Path

import pytest


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache's folder, which is not there yet."""
    monkeypatch.setenv("BITLANE_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"
