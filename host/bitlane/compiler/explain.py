"""What a device would do for expressions, and how long that would take. Executes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Final

from bitlane_rtl.abi import Mode

from ..driver.allocator import round_up
from ..driver.commands import Command, Walk
from ..driver.geometry import Abilities
from ..lowering.cost import cycles
from ..lowering.fences import insert_fences
from .fusion import fused
from .memory import Arrangement, arranged, side_by_side
from .nodes import Expression
from .passes import Pass, planned

_BEHIND: Final = 1 << 32
"""An address behind all memory, so that nothing there seems to be in the way."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A pass, or several: the work that it is, and the cycles that it takes, about."""

    name: str
    elements: str
    commands: int
    runs: int
    read: int
    """Bytes."""
    written: int
    """Bytes."""
    cycles: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """Commands, runs, bytes read and written, and cycles."""
        return self.commands, self.runs, self.read, self.written, self.cycles


def explain(geometry: Abilities, roots: Sequence[Expression]) -> str:
    """A table of the passes that compute ``roots`` in one job, and what they would be unfused.

    Cycles are estimated for a memory that answers at once. Raises ``LayoutError`` or
    ``UnsupportedError``.
    """
    passes = explained(geometry, fused(roots, geometry))
    plain = explained(geometry, roots)
    return table(passes, plain)


def table(passes: Sequence[Explained], plain: Sequence[Explained]) -> str:
    """Passes, a line each; their sum, and that of ``plain``, which nothing was fused in."""
    cells = [["pass", "elements", "commands", "runs", "bytes read", "bytes written", "cycles"]]
    cells += [[x.name, x.elements, *map(_grouped, x.numbers)] for x in passes]
    cells += [_total("fused", passes), _total("unfused", plain)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def _total(name: str, passes: Sequence[Explained]) -> list[str]:
    numbers = [sum(x.numbers[column] for x in passes) for column in range(5)]
    count = "1 pass" if len(passes) == 1 else f"{len(passes)} passes"
    return [name, count, *map(_grouped, numbers)]


def _grouped(number: int) -> str:
    return f"{number:,}"


def explained(geometry: Abilities, roots: Sequence[Expression]) -> list[Explained]:
    """The passes that compute ``roots`` as they are, in the order in which they run."""
    plan = planned(roots, geometry)
    arrangement = arranged(plan, side_by_side(plan.passes), sparing=False)
    starts, end = [], _BEHIND
    for size in (*arrangement.results, arrangement.temporary):
        starts.append(round_up(end))
        end = starts[-1] + size
    return explained_passes(arrangement, starts, geometry.abilities)


def explained_passes(
    arrangement: Arrangement, starts: Sequence[int], geometry: Abilities
) -> list[Explained]:
    """The passes of ``arrangement``, whose pieces of memory are at ``starts``."""
    groups = arrangement.groups(starts, geometry)
    groups = [replace(group, commands=list(group.commands)) for group in groups]
    ordered = insert_fences(groups)
    result = []
    begun = False
    for step, group in zip(arrangement.passes, groups, strict=True):
        commands = list(islice(ordered, len(list(group.commands))))
        taken = cycles(commands, geometry, behind_others=begun)
        begun = begun or bool(commands)
        result.append(_explained(step, commands, taken))
    return result


def _explained(step: Pass, commands: Sequence[Command], taken: int) -> Explained:
    shape = " x ".join(map(str, step.shape)) or "1"
    elements = f"{shape} of {8 * step.a.view.itemsize} bits"
    read = written = 0
    for command in commands:
        operands = [walk for walk in (command.a, command.b) if walk is not None]
        read += sum(_bytes(command, walk, command.lane.bytes) for walk in operands)
        written += _bytes(command, command.y, command.out_lane.bytes)
    runs = sum(prod(command.counts) for command in commands)
    name = f"{step.op.name} SUM" if step.sums else step.op.name
    return Explained(name, elements, len(commands), runs, read, written, taken)


def _bytes(command: Command, walk: Walk, size: int) -> int:
    elements = 1 if walk.mode in (Mode.REPEAT, Mode.SUM) else command.run
    return prod(command.counts) * elements * size
