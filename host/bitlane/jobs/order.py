"""Puts jobs one behind the other, with a fence only where one needs what another has done.

Compares addresses. Never computes, and never changes what a command does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..driver.commands import Command

__all__ = ["Job", "in_order"]

_REMEMBERED = 16
"""Jobs that a job is compared with; then comes a fence. More than a ring holds never overlap."""


@dataclass(frozen=True, slots=True)
class Job:
    """``commands``, of which only the first has a fence, and the addresses that they touch."""

    commands: Iterable[Command]
    reads: tuple[range, ...]
    writes: range


def in_order(jobs: Iterable[Job]) -> Iterator[Command]:
    """The commands of ``jobs``, so that each job acts as if all before it were done.

    The circuit starts a command while earlier ones still run. A job keeps its fence only if it is
    the first, or may touch a byte that a job since the last fence writes, or write one that such a
    job reads: ranges of addresses are compared, not the bytes in them.
    """
    since: list[Job] = []
    for job in jobs:
        commands = iter(job.commands)
        first = next(commands, None)
        if first is None:
            continue
        fence = len(since) in (0, _REMEMBERED) or any(_depends(job, other) for other in since)
        if fence:
            since.clear()
        since.append(job)
        yield replace(first, fence=fence)
        yield from commands


def _depends(job: Job, earlier: Job) -> bool:
    touched = (*job.reads, job.writes)
    return any(_meet(each, earlier.writes) for each in touched) or any(
        _meet(job.writes, each) for each in earlier.reads
    )


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop
