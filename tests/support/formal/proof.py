"""Claims of contracts, proven of components as they are, and refuted of those with a bug."""

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

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


class _Proof:
    """The proof of one test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._name = request.node.nodeid.rpartition("/")[2]
        self._folder: Path = request.getfixturevalue("tmp_path")
        self._monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        self._report: Callable[[str, object], None] = request.getfixturevalue("record_property")
        self._verdicts = Verdicts(self._report)

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


class Claim:
    """A contract, given ``arguments``; a proof by each of ``methods``; and bugs that break it.

    Each of ``bugs`` has a text of ``module`` and its replacement; another module may precede them.
    The contract fails with it in one of the first ``within`` cycles.
    """

    def __init__(
        self,
        contract: Callable[..., Contract],
        *methods: Method,
        module: str = "",
        bugs: Mapping[str, tuple[str, ...]] | None = None,
        within: int = 0,
        **arguments: Any,
    ) -> None:
        told = ", ".join(getattr(value, "__name__", str(value)) for value in arguments.values())
        self.name = f"{contract.__name__}({told})" if told else contract.__name__
        self.contract = functools.partial(contract, **arguments)
        self.methods = methods
        self.bugs = {name: Bug(*(module, *texts)[-3:]) for name, texts in (bugs or {}).items()}
        self.within = within


def proofs(*claims: Claim) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the tests of a file: all claims hold, and each of their bugs is found.

    The full tier proves all claims, and plants the bugs that the commit draws.
    """
    proven = [
        pytest.param(claim.contract, method, id=f"{claim.name} {method.text}")
        for claim in claims
        for method in claim.methods
    ]
    planted = [
        pytest.param(claim.contract, bug, claim.within, id=f"{claim.name}: {name}")
        for claim in claims
        for name, bug in claim.bugs.items()
    ]

    @pytest.mark.slow
    @pytest.mark.proves
    @pytest.mark.parametrize(("contract", "method"), proven)
    def holds(
        contract: Callable[[], Contract], method: Method, request: pytest.FixtureRequest
    ) -> None:
        _Proof(request).holds(contract(), method)

    @pytest.mark.slow
    @pytest.mark.parametrize(("contract", "bug", "within"), planted)
    def finds(
        contract: Callable[[], Contract], bug: Bug, within: int, request: pytest.FixtureRequest
    ) -> None:
        _Proof(request).finds(bug, contract(), within=within)

    return holds, finds


def _describe(verdict: Verdict) -> str:
    """Return the details of an unexpected verdict: outcome, failures, traces and end of the log."""
    lines = [f"{verdict.outcome} after {verdict.seconds:.0f} s", *verdict.failed]
    return "\n".join([*lines, *map(str, verdict.traces), verdict.log[-2000:]])
