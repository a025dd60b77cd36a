"""Runs the steps of a validation in order, with one line of text for each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from bitlane_rtl.abi import BIT_OPS, Mode, Op

from ..errors import BitlaneError, DeviceTimeout, LinkError
from ..terminal import Percentage
from .answers import check_answers
from .link import check_bandwidth, check_link, describe_circuit
from .memory import check_memory
from .operators import check_dma, check_operation, check_overlap, check_search, check_sums
from .refusals import check_recovery
from .registers import check_registers
from .session import Session, plural

_NAME = 16


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    check: Callable[[Session], str]


def validate(session: Session, write_line: Callable[[str], object]) -> bool:
    """Run all steps and return whether all passed; a step also runs after one that failed.

    Only a device that does not answer any more ends the validation, with a line that reports it.
    """
    started = perf_counter()
    steps = list(steps_of(session))
    failed: list[str] = []
    for number, step in enumerate(steps):
        session.restart(step.name)
        gone = False
        try:
            with Percentage(step.name) as session.progress:
                line = f"{step.name:{_NAME}}pass  {step.check(session)}"
        except BitlaneError as error:
            failed.append(step.name)
            line = f"{step.name:{_NAME}}FAIL  {error}"
            gone = isinstance(error, LinkError) or (
                isinstance(error, DeviceTimeout) and not _answers(session)
            )
        write_line(line)
        if number == 0:
            for text in describe_circuit(session):
                write_line(f"{'':{_NAME}}      {text}")
        if gone:
            left = len(steps) - number - 1
            write_line(
                f"Stopped: the device does not answer any more; {plural(left, 'check')} not run"
            )
            return False
    seconds = perf_counter() - started
    if failed:
        write_line(
            f"FAILED: {len(failed)} of {plural(len(steps), 'check')} in {seconds:.1f} s:"
            f" {', '.join(failed)}"
        )
        return False
    write_line(f"All {plural(len(steps), 'check')} passed in {seconds:.1f} s.")
    return True


def steps_of(session: Session) -> Iterator[_Step]:
    """Yield the steps that the circuit of ``session`` can take, in their order."""
    yield _Step("link", check_link)
    yield _Step("known answers", check_answers)
    yield _Step("memory", check_memory)
    has = session.geometry
    for op in sorted(BIT_OPS & has.ops):
        yield _Step(op.name, partial(check_operation, op=op))
    if Mode.SUM in has.modes:
        yield _Step("row sums", check_sums)
    if has.search is not None:
        yield _Step(Op.SEARCH.name, check_search)
    yield _Step("DMA", check_dma)
    yield _Step("overlap", check_overlap)
    yield _Step("error recovery", check_recovery)
    yield _Step("registers", check_registers)
    yield _Step("bandwidth", check_bandwidth)


def _answers(session: Session) -> bool:
    """Return whether a device answers again after a timeout."""
    try:
        check_link(session)
        # An empty run clears a device after a timeout.
        session.driver.run(())
    except BitlaneError:
        return False
    return True
