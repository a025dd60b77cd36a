"""Command groups in sequence, with a fence only where one depends on another.

Compares addresses. It does not change any other field of a command.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from bitlane_rtl.abi import Op

from ..driver import Abilities, Command
from .lower import lower
from .routes import Options
from .strided import Streams, overlap

_Label = TypeVar("_Label")

_REMEMBERED = 16
"""Groups that a group is compared with; then a fence follows, so that comparing stays cheap."""


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """``commands``, of which only the first has a fence, and the addresses that they touch."""

    commands: Iterable[Command]
    reads: tuple[range, ...]
    writes: range


def lower_group(
    op: Op,
    shape: tuple[int, ...],
    streams: Streams,
    abilities: Abilities,
    memory: range | None,
    options: Options = Options.NONE,
) -> CommandGroup:
    """Return the commands of `lower`, and the addresses that they touch. Raises as `lower`."""
    a, b, y = streams
    operands = (a,) if b is None else (a, b)
    reads = tuple([view.span(shape) for view in operands])
    commands = lower(op, shape, streams, abilities, memory, options)
    return CommandGroup(commands, reads, y.span(shape))


def insert_fences(groups: Iterable[CommandGroup]) -> Iterator[Command]:
    """Yield the commands of ``groups``, so that each group acts as if all before it were done.

    The circuit starts a command while earlier ones still run. A group keeps its fence only if it
    is the first, or may touch a byte that a group since the last fence writes, or write one that
    such a group reads: ranges of addresses are compared, not the bytes in them.
    """
    return chain.from_iterable(map(_Fences().insert, groups))


def insert_fences_labelled(
    labelled: Iterable[tuple[_Label, Iterable[CommandGroup]]],
) -> Iterator[tuple[_Label, Iterator[Command]]]:
    """Yield each label with the commands that `insert_fences` yields for its groups."""
    fences = _Fences()
    for label, groups in labelled:
        yield label, chain.from_iterable(map(fences.insert, groups))


class _Fences:
    """Compares each group with those since the last fence."""

    def __init__(self) -> None:
        self._since: list[CommandGroup] = []

    def insert(self, group: CommandGroup) -> Iterator[Command]:
        """Yield the commands of ``group``, the first without its fence if it needs none."""
        commands = iter(group.commands)
        first = next(commands, None)
        if first is None:
            return
        since = self._since
        fence = len(since) in (0, _REMEMBERED) or any(_depends(group, other) for other in since)
        if fence:
            since.clear()
        since.append(group)
        yield first if fence is first.fence else replace(first, fence=fence)
        yield from commands


def _depends(group: CommandGroup, earlier: CommandGroup) -> bool:
    return any(overlap(each, earlier.writes) for each in (*group.reads, group.writes)) or any(
        overlap(group.writes, each) for each in earlier.reads
    )
