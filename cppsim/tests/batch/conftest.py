"""The backends of a batch; the GPU's source is compiled for this computer."""

import sys

import pytest

from support.host_gpu import host_gpu


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide a GPU, which this computer stands in for."""
    monkeypatch.setitem(sys.modules, "cupy", host_gpu())


@pytest.fixture(params=["threads", "cuda"])
def backend(request: pytest.FixtureRequest, gpu: None) -> str:
    return str(request.param)
