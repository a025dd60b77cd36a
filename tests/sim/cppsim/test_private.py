"""Wrappers of private Amaranth code have one form for all versions of Amaranth."""

from types import SimpleNamespace

import pytest
from amaranth import hdl

from cppsim.private import femtoseconds_of


def test_times_are_in_seconds() -> None:
    assert femtoseconds_of(1.5e-6) == 1_500_000_000


def test_times_are_periods_in_the_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert femtoseconds_of(SimpleNamespace(femtoseconds=7)) == 7
    monkeypatch.setattr(hdl, "Period", SimpleNamespace, raising=False)
    assert femtoseconds_of(1.5e-6) is None, "left to Amaranth, which warns of it"
