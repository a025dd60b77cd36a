"""The prover distinguishes claims that hold, claims that fail, and claims it could not decide."""

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Module, Signal

from support.formal.proof import Bounded, Contract, Induction, Method, Reached, prove

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit, pytest.mark.any_face]


class Counts(Contract):
    """A counter from 0 up to ``highest`` and back to 0, which advances while ``go`` is high."""

    def __init__(self, highest: int, *, claimed: int, told: bool | None = None) -> None:
        super().__init__()
        self._highest = highest
        self._claimed = claimed
        self._told = told

    def claim(self, m: Module) -> None:
        count, go = Signal(4), self.anything(1, "go")
        with m.If(go):
            m.d.sync += count.eq(count + 1)
            with m.If(count == self._highest):
                m.d.sync += count.eq(0)
        if self._told is not None:
            m.d.comb += Assume(go == self._told)
        m.d.comb += Assert(count <= self._claimed)


METHODS = [Induction(8), Reached, Bounded(8)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.engine)
def test_what_holds_passes(method: Method, tmp_path: Path) -> None:
    assert prove(Counts(5, claimed=5), method, tmp_path).outcome == "PASS"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.engine)
def test_what_does_not_hold_fails_with_its_line_and_a_trace(method: Method, tmp_path: Path) -> None:
    verdict = prove(Counts(5, claimed=4), method, tmp_path)
    assert verdict.outcome == "FAIL"
    [line] = verdict.failed
    assert line.startswith(f"{__file__}:")
    assert all(trace.stat().st_size for trace in verdict.traces)
    assert verdict.traces


def test_an_assumption_counts(tmp_path: Path) -> None:
    contract = Counts(5, claimed=0, told=False)
    assert prove(contract, Induction(2), tmp_path).outcome == "PASS"


def test_a_bound_is_no_proof_beyond_it(tmp_path: Path) -> None:
    assert prove(Counts(9, claimed=8), Bounded(9), tmp_path).outcome == "PASS"


def test_induction_that_does_not_go_through_is_no_proof(tmp_path: Path) -> None:
    assert prove(Counts(5, claimed=8), Induction(2), tmp_path).outcome == "UNKNOWN"


@pytest.mark.parametrize("engine", ["smtbmc no-such-solver", "abc no-such-command"])
def test_a_missing_tool_is_an_error(engine: str, tmp_path: Path) -> None:
    assert prove(Counts(5, claimed=5), Method("", "prove", engine), tmp_path).outcome == "ERROR"


def test_time_runs_out(tmp_path: Path) -> None:
    verdict = prove(Counts(5, claimed=5), Induction(100_000), tmp_path, deadline=5)
    assert verdict.outcome == "TIMEOUT"
