"""Puts jobs one behind the other, with a fence only where one needs what another has done.

Compares addresses. Never computes, and never changes what a command does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from ..driver.commands import Command
from .routes import View

_REMEMBERED = 16
"""Jobs that a job is compared with; then comes a fence. More than a ring holds never overlap."""


@dataclass(frozen=True, slots=True)
class Job:
    """``commands``, of which only the first has a fence, and the addresses that they touch."""

    commands: Iterable[Command]
    reads: tuple[range, ...]
    writes: range

    @classmethod
    def of(
        cls, commands: Iterable[Command], shape: tuple[int, ...], reads: Iterable[View], y: View
    ) -> Self:
        """``commands`` that read tensors of ``shape`` elements, and write ``y``."""
        return cls(commands, tuple([touched(view, shape) for view in reads]), touched(y, shape))


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
        yield first if fence is first.fence else replace(first, fence=fence)
        yield from commands


def _depends(job: Job, earlier: Job) -> bool:
    return any(meet(each, earlier.writes) for each in (*job.reads, job.writes)) or any(
        meet(job.writes, each) for each in earlier.reads
    )


def touched(view: View, shape: tuple[int, ...]) -> range:
    """The addresses from the first byte of a view to its last."""
    spans = [step * (count - 1) for count, step in zip(shape, view.strides, strict=True)]
    first = view.address + sum(min(0, span) for span in spans)
    last = view.address + sum(max(0, span) for span in spans) + view.itemsize
    return range(first, last)


def meet(one: range, other: range) -> bool:
    """Whether two ranges of addresses, which are not empty, have one in common."""
    return one.start < other.stop and other.start < one.stop
