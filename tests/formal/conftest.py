"""``proof``: what the tests of this folder ask the prover with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.formal.proof import Proof


@pytest.fixture
def proof(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> Proof:
    return Proof(request, tmp_path, monkeypatch, record_property)
