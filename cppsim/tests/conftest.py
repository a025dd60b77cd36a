"""Fixtures that the tests of cppsim share, and the tiers' profiles, which `support.seeds` loads."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cppsim import Model, ReferenceModel, designs
from cppsim.circuits import AnyModel
from cppsim.mode import Mode, set_default_mode
from support import seeds as _  # noqa: F401 - registers the profiles before tests are collected
from support.host_gpu import host_gpu
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


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide a GPU, which this computer stands in for: it compiles the GPU's source."""
    monkeypatch.setitem(sys.modules, "cupy", host_gpu())


@pytest.fixture(params=["threads", "cuda"])
def backend(request: pytest.FixtureRequest, gpu: None) -> str:
    return str(request.param)


@pytest.fixture(params=[ReferenceModel, Model])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., AnyModel]]:
    """Provide a maker of each kind of model; the models of a test are closed at its end."""
    with ExitStack() as made:

        def maker(*arguments: object, **options: object) -> AnyModel:
            model: AnyModel = request.param(*arguments, **options)
            made.callback(model.close)
            return model

        yield maker
