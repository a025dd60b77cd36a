"""Fixtures that the simulation's tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set an empty cache's folder, which does not exist yet, and return it."""
    monkeypatch.setenv("BITLANE_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"
