"""Compare instances with the model, and describe the first difference of each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.driver import status_name
from bitlane_rtl.abi import Port, Status, register

from ..system.ports import broken_rule
from .arrays import Bytes, Mask, Numbers
from .contract import Expected
from .stimulus import Workload

_SLOW = 8
"""Cycles that an element may take before its command is one that should have ended."""

_FAULT = register("FAULT")


@dataclass(slots=True)
class Observed:
    """Results of `submit` and `recover`, and the RAM after both."""

    results: dict[str, Any]
    ram: Bytes

    def field(self, name: str) -> NDArray[np.int64]:
        """A field of FAULT."""
        return np.asarray(_FAULT[name].extract(self.results["FAULT"].astype(np.int64)))


class Verdict:
    """The first failure of each of ``instances``."""

    def __init__(self, instances: int) -> None:
        self.reasons: dict[int, str] = {}
        self._instances = instances

    def expect(self, right: Mask, reason: Callable[[int], str]) -> None:
        """Note ``reason(instance)`` for every instance that is not ``right``, a mask."""
        for instance in np.flatnonzero(~np.broadcast_to(right, self._instances)).tolist():
            if instance not in self.reasons:
                self.reasons[instance] = reason(instance)

    def take(self, other: "Verdict", some: Mask) -> None:
        """Take the failures of ``other`` for ``some`` instances."""
        for instance, reason in other.reasons.items():
            if some[instance]:
                self.reasons.setdefault(instance, reason)

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
            names = (f"{before}violation", f"{before}where", "when")
            return broken_rule(*(int(results[name][instance]) for name in names))

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
    verdict: Verdict, before: Bytes, work: Workload, expected: Expected, observed: Observed
) -> Mask:
    """FAULT, RETIRED and every byte are as ``expected`` says. Returns which need not have ended.

    These may go on, and had more elements than the limit is sure to suffice for; of them, bytes may
    be as ``before``, and no fault must have come.
    """
    came = observed.results["came"] != 0
    slow = ~came & (expected.elements * _SLOW > work.limit) & work.may_go_on
    wanted = np.where(slow, int(Status.OK), expected.status)
    faulty = wanted != Status.OK
    silent = ~faulty & ~work.raises
    verdict.expect(came | slow | silent, partial(_no_interrupt, work.limit))
    code, port = observed.field("CODE"), observed.field("PORT")

    def reason(instance: int) -> str:
        name = Status(int(wanted[instance])).name
        ports = int(expected.ports[instance])
        wish = f"{name} of command {int(expected.index[instance])}, ports {ports:#x} of A, B, Y"
        return f"{_fault_text(observed, instance)}, expected {wish}"

    named = np.where(expected.ports != 0, expected.ports >> port & 1 != 0, port == Port.NONE)
    named &= observed.field("INDEX") == expected.index
    verdict.expect((code == wanted) & (~faulty | named), reason)
    retired = np.where(faulty, expected.index, work.counts)
    verdict.expect(
        slow | (observed.results["RETIRED"] == retired),
        lambda k: f"RETIRED is {observed.results['RETIRED'][k]}, expected {retired[k]}",
    )
    right = (observed.ram == expected.memory) | expected.loose
    old = expected.optional | slow[:, None]
    right |= old & (observed.ram == before)
    verdict.expect_bytes(right, observed.ram, expected.memory)
    return slow


def compare_disturbed(
    verdict: Verdict, before: Bytes, work: Workload, expected: Expected, observed: Observed
) -> Mask:
    """The same of good commands that the memory disturbs: all is done, or a fault is reported.

    Each byte is unchanged or right. Returns a mask of the instances that reported a fault.
    """
    results = observed.results
    verdict.expect(results["came"] != 0, partial(_no_interrupt, work.limit))
    faulty = observed.field("CODE") != Status.OK
    index = observed.field("INDEX")
    verdict.expect(
        ~faulty | ((results["RETIRED"] == index) & (index < work.counts)),
        lambda k: (
            f"{_fault_text(observed, k)}, RETIRED {results['RETIRED'][k]} of {work.counts[k]}"
        ),
    )
    verdict.expect(
        faulty | (results["RETIRED"] == work.counts),
        lambda k: f"no fault, and RETIRED {results['RETIRED'][k]} of {work.counts[k]}",
    )
    right = observed.ram == expected.memory
    right |= faulty[:, None] & (observed.ram == before)
    verdict.expect_bytes(right, observed.ram, expected.memory)
    return faulty


def expect_fault(verdict: Verdict, observed: Observed, codes: Numbers, ports: Numbers) -> None:
    """A fault that came is one of ``codes``, and on one of ``ports``, bits: 1 of A, 2 of B, 4 of Y.

    Both are of (instances,).
    """
    code, port = observed.field("CODE"), observed.field("PORT")
    fits = (code == Status.OK) | ((code == codes) & (ports >> port & 1 != 0))

    def reason(instance: int) -> str:
        names = [x.name for x in Port if int(ports[instance]) >> x & 1]
        name = Status(int(codes[instance])).name
        return f"{_fault_text(observed, instance)}, expected {name} on {' or '.join(names)}"

    verdict.expect(fits, reason)


def _fault_text(observed: Observed, instance: int) -> str:
    code, port, index = (int(observed.field(x)[instance]) for x in ("CODE", "PORT", "INDEX"))
    return f"{status_name(code)} of command {index} on {Port(port).name}"


def _no_interrupt(limit: int, _: int) -> str:
    return f"no interrupt within {limit:,} cycles"
