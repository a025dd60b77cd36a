"""Proofs that a test requests from the prover, of components as they are or with a planted bug."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import pytest

from support.formal.contract import Contract
from support.formal.prover import Bounded, Method, Verdict, answer, question
from support.verdicts import Verdicts


@dataclass(frozen=True)
class Bug:
    """A bug: ``replacement`` for ``text``, which occurs once in ``module`` of `bitlane_rtl`."""

    module: str
    text: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.module}: {self.text} -> {self.replacement}"


def plant(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the classes of ``bug.module`` the methods that they would have with ``bug`` in it.

    Whoever imported a class sees it changed; functions of the module change within it alone, and
    constructors not at all.
    """
    module = importlib.import_module(f"bitlane_rtl.{bug.module}")
    path = Path(inspect.getfile(module))
    source = path.read_text(encoding="utf-8")
    assert source.count(bug.text) == 1, f"{path} has {source.count(bug.text)} times {bug.text!r}"
    changed = dict(vars(module))
    exec(compile(source.replace(bug.text, bug.replacement), path, "exec"), changed)
    for name, original in vars(module).items():
        if isinstance(original, type) and original.__module__ == module.__name__:
            for method, function in vars(changed[name]).items():
                if isinstance(function, FunctionType) and not method.startswith("__"):
                    monkeypatch.setattr(original, method, function)


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
        self._verdicts = Verdicts(report)

    def holds(self, contract: Contract, method: Method) -> None:
        """Prove ``contract``, unless the same proof is known."""
        asked = question(contract, method)

        def check() -> str:
            verdict = answer(asked, self._folder)
            assert verdict.outcome == "PASS", _describe(verdict)
            return method.text

        self._say(self._verdicts.passes(["holds", *asked.identity()], check))

    def finds(self, bug: Bug, contract: Contract, *, within: int) -> None:
        """Plant ``bug``; expect that ``contract`` fails in one of the first ``within`` cycles."""
        plant(bug, self._monkeypatch)
        asked = question(contract, Bounded(within))

        def check() -> str:
            verdict = answer(asked, self._folder)
            assert verdict.outcome == "FAIL", f"{bug}\n{_describe(verdict)}"
            assert verdict.failed
            return f"found by {verdict.failed[0].rpartition('/')[2]}"

        self._say(self._verdicts.passes(["finds", *asked.identity()], check))

    def _say(self, text: str) -> None:
        self._report("report", f"{self._name}: {text}")


def _describe(verdict: Verdict) -> str:
    """Return the details of an unexpected verdict: outcome, failures, traces and end of the log."""
    lines = [f"{verdict.outcome} after {verdict.seconds:.0f} s", *verdict.failed]
    return "\n".join([*lines, *map(str, verdict.traces), verdict.log[-2000:]])
