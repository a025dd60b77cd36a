"""Whether what instances did is what the model says; of those that did not, in words why."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.driver.control import status_name
from bitlane_rtl.abi import Port, Status, register

from ..interface import Violation, Where
from .model.model import Expected

__all__ = ["Observed", "Verdict", "compare", "expect_answers", "expect_cleared"]

Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_SLOW = 8
"""Cycles that an element may take before its command is one that should have ended."""

_FAULT = register("FAULT")


@dataclass(slots=True)
class Observed:
    """What instances did: results of `submit` and `recover`, and the RAM after both."""

    results: dict[str, Any]
    ram: Bytes

    def field(self, name: str) -> NDArray[np.int64]:
        """A field of FAULT."""
        return np.asarray(_FAULT[name].extract(self.results["FAULT"].astype(np.int64)))


class Verdict:
    """The first thing that is wrong of each of ``instances``."""

    def __init__(self, instances: int) -> None:
        self.reasons: dict[int, str] = {}
        self._instances = instances

    def expect(self, right: Mask, reason: Callable[[int], str]) -> None:
        """``right`` is a mask of instances; ``reason`` says of one what is wrong."""
        for instance in np.flatnonzero(~np.broadcast_to(right, self._instances)).tolist():
            if instance not in self.reasons:
                self.reasons[instance] = reason(instance)

    def expect_bytes(self, right: Mask, found: Bytes, wanted: Bytes) -> None:
        """``right`` is a mask (instances, bytes)."""

        def reason(instance: int) -> str:
            wrong = np.flatnonzero(~right[instance])
            at = int(wrong[0])
            return (
                f"{wrong.size} bytes are wrong, the first at {at:#x}: {found[instance, at]:#04x},"
                f" expected {wanted[instance, at]:#04x}"
            )

        self.expect(np.asarray(right.all(axis=1)), reason)


def expect_answers(verdict: Verdict, found: Observed) -> None:
    """The control window answered every access, and no rule of the bus was broken."""
    results = found.results
    for name, cycles in results.items():
        if name.startswith("answer "):
            answered = (cycles != 0).reshape(len(cycles), -1).all(axis=1)
            verdict.expect(answered, partial(_no_answer, name))
    for before in ("", "cleared "):
        if f"{before}violation" not in results:
            continue

        def reason(instance: int, before: str = before) -> str:
            rule = Violation(results[f"{before}violation"][instance]).name
            where = Where(results[f"{before}where"][instance]).name
            return f"bus rule {rule} was broken on {where} in cycle {results['when'][instance]}"

        verdict.expect(results[f"{before}violation"] == 0, reason)


def expect_cleared(verdict: Verdict, found: Observed) -> None:
    """CLEAR has brought the engine back."""
    for name, value in (("STATUS", register("STATUS").reset), ("FAULT", 0), ("RETIRED", 0)):
        got = found.results[f"cleared {name}"]
        verdict.expect(got == value, partial(_not_cleared, name, got))


def _no_answer(name: str, _: int) -> str:
    return f"no {name} of the control window"


def _not_cleared(name: str, got: NDArray[np.uint64], instance: int) -> str:
    return f"{name} is {int(got[instance]):#x} after CLEAR"


def compare(
    verdict: Verdict,
    before: Bytes,
    counts: NDArray[np.int64],
    limit: int,
    expected: Expected,
    found: Observed,
) -> Mask:
    """FAULT, RETIRED and every byte are as ``expected`` says. Returns which need not have ended.

    These had more elements than ``limit`` cycles are sure to do; of them, bytes may be as
    ``before``, and no fault must have come.
    """
    came = found.results["came"] != 0
    slow = ~came & (np.asarray(expected.elements) * _SLOW > limit)
    verdict.expect(came | slow, lambda _: f"no interrupt within {limit:,} cycles")
    wanted = np.where(slow, int(Status.OK), expected.status)
    code, port = found.field("CODE"), found.field("PORT")

    def told(instance: int) -> str:
        return (
            f"{status_name(int(code[instance]))} on {Port(int(port[instance])).name}, expected"
            f" {Status(int(wanted[instance])).name} (ports {int(expected.ports[instance]):#x})"
        )

    verdict.expect(code == wanted, told)
    faulty = wanted != Status.OK
    named = np.where(expected.ports != 0, expected.ports >> port & 1 != 0, port == Port.NONE)
    verdict.expect(~faulty | named, told)
    retired = np.where(faulty, expected.index, counts)
    verdict.expect(
        slow | (found.results["RETIRED"] == retired),
        lambda k: f"RETIRED is {found.results['RETIRED'][k]}, expected {retired[k]}",
    )
    verdict.expect(~faulty | (found.field("INDEX") == expected.index), told)
    right = (found.ram == expected.memory) | expected.loose
    old = expected.optional | slow[:, None]
    verdict.expect_bytes(right | (old & (found.ram == before)), found.ram, expected.memory)
    return slow
