"""Fixtures that the tests of cppsim share, and the tiers' profiles, which `support.seeds` loads."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cppsim import designs
from cppsim.mode import Mode, set_default_mode
from support import seeds as _  # noqa: F401 - registers the profiles before tests are collected
from support.recomputed import recompute


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile every simulation of these tests from the beginning, unless the variable is set."""
    if "CPPSIM_INTERPRET" not in os.environ:
        monkeypatch.setenv("CPPSIM_INTERPRET", "0")
    set_default_mode(Mode.ALWAYS)
    yield
    set_default_mode(None)


@pytest.fixture(autouse=True)
def _recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare a share of the designs from the cache with the same designs written anew."""
    recompute(monkeypatch.setattr)


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the folder of an empty cache, which does not exist yet, and return it."""
    monkeypatch.setenv("CPPSIM_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> Callable[..., None]:
    """Return a function like ``setattr`` for code that writes designs, as if its file changed."""

    def changed(thing: Any, name: str, value: Any) -> None:
        monkeypatch.setattr(thing, name, value)
        monkeypatch.setattr(designs, "CODE_DIGEST", f"{name} has changed")

    return changed
