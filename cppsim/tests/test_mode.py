"""The default mode compiles first; ``auto`` is a name of the same."""

import os
import sys
from typing import Any

import pytest
from amaranth.sim import Simulator

import cppsim
from cppsim.mode import MODE_VARIABLE, Mode, default_mode, set_default_mode
from support.processes import succeed
from support.small import counter


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    set_default_mode(None)
    monkeypatch.delenv(MODE_VARIABLE, raising=False)


def engine_of(simulator: Any) -> Any:
    return simulator._engine


def test_the_default_compiles_and_forks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    m, _ = counter()
    for simulator in (cppsim.Simulator(m), Simulator(m, engine=cppsim.Engine)):
        engine = engine_of(simulator)
        assert (engine.compiled, engine.reason) == (True, "")
        simulator.add_clock(1e-6)
        simulator.run_until(1e-3)
        assert engine_of(simulator) is engine


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_auto_means_always_and_warns(monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    if by == "environment":
        monkeypatch.setenv(MODE_VARIABLE, "auto")
    options: dict[str, Any] = {"mode": "auto"} if by == "argument" else {}
    message = "^mode 'auto' is gone and compiles as 'always' does; say 'always'$"
    with pytest.warns(FutureWarning, match=message) as warned:
        engine = engine_of(cppsim.Simulator(counter()[0], **options))
    assert [warning.filename for warning in warned] == [__file__]
    assert engine.compiled


def test_an_unknown_mode_names_the_modes() -> None:
    message = "'fast' is not a mode; expected off, always, check"
    with pytest.raises(ValueError, match=f"^{message}$"):
        cppsim.Simulator(counter()[0], mode="fast")


def test_an_empty_variable_names_no_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODE_VARIABLE, "")
    assert default_mode() is Mode.ALWAYS


def test_an_unknown_mode_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODE_VARIABLE, "fast")
    message = "CPPSIM: 'fast' is not a mode; expected off, always, check"
    with pytest.raises(ValueError, match=f"^{message}$"):
        default_mode()


def test_the_import_leaves_out_what_few_simulations_need() -> None:
    loaded = succeed(
        sys.executable, "-c", "import sys, cppsim; cppsim.Simulator; print(*sorted(sys.modules))"
    ).split()
    assert "cppsim.simulator" in loaded
    rarely = {"cppsim.batch", "cppsim.checking", "cppsim.model", "numpy", "pytest", "vcd"}
    assert not rarely.intersection(loaded)
