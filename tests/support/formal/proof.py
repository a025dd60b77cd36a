"""Proofs that a test requests from the prover, and their reports."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.formal.contract import Contract
from support.formal.planted import Bug, plant
from support.formal.prover import Bounded, Method, Verdict, prove


class Proof:
    """Proofs of one test, each in a separate folder."""

    def __init__(
        self,
        request: pytest.FixtureRequest,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        report: Callable[[str, object], None],
    ) -> None:
        self._name = request.node.nodeid.rpartition("/")[2]
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._report = report

    def holds(self, contract: Contract, method: Method) -> None:
        """Prove ``contract``."""
        verdict = prove(contract, method, self._folder)
        assert verdict.outcome == "PASS", _describe(verdict)
        self._say(verdict, method.text)

    def finds(self, bug: Bug, contract: Contract, *, within: int) -> None:
        """Plant ``bug``; expect that ``contract`` fails in one of the first ``within`` cycles."""
        plant(bug, self._monkeypatch)
        verdict = prove(contract, Bounded(within), self._folder)
        assert verdict.outcome == "FAIL", f"{bug}\n{_describe(verdict)}"
        assert verdict.failed
        self._say(verdict, f"found by {verdict.failed[0].rpartition('/')[2]}")

    def _say(self, verdict: Verdict, text: str) -> None:
        self._report("report", f"{self._name}: {text}, {verdict.seconds:.1f} s")


def _describe(verdict: Verdict) -> str:
    """Return the details of an unexpected verdict: outcome, failures, traces and end of the log."""
    lines = [f"{verdict.outcome} after {verdict.seconds:.0f} s", *verdict.failed]
    return "\n".join([*lines, *map(str, verdict.traces), verdict.log[-2000:]])
