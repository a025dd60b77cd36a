"""Cost tables: the passes of a device for expressions, and estimated cycles. Executes nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from math import prod

from bitlane_rtl.abi import RECORD_BYTES, Mode

from ..driver.commands import Command, Walk, encode
from ..driver.geometry import Abilities
from ..links.link import Link
from ..links.predicted import duration
from ..lowering.cost import cycles
from ..lowering.fences import insert_fences
from .fusion import fuse
from .memory import allocate
from .nodes import Expression
from .passes import Pass, Plan, plan_passes


@dataclass(frozen=True, slots=True)
class PassCost:
    """The work of a pass, and its estimated cycles."""

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


class Explanation(str):
    """A table of passes as text, which Python's prompt prints and notebooks show as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *rows = (re.split(" {2,}", line) for line in self.splitlines())
        lines = [_html_row("th", head), *(_html_row("td", row) for row in rows)]
        return f"<table>{''.join(lines)}</table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def explain(
    abilities: Abilities, roots: Sequence[Expression], link: Link | None = None
) -> Explanation:
    """Return a table of the passes that compute ``roots`` in one run, beside those without fusion.

    A ``link`` that predicts cycles gives them, and with a board their seconds; else they are
    estimated for a memory that answers at once. Raises ``LayoutError`` or ``UnsupportedError``.
    """
    fused = pass_costs(plan_passes(fuse(roots, abilities), abilities), abilities, link)
    plain = pass_costs(plan_passes(roots, abilities), abilities, link)
    return table(fused, plain, link)


def table(
    passes: Sequence[PassCost], plain: Sequence[PassCost], link: Link | None = None
) -> Explanation:
    """Return a line for each pass; their sum, and that of ``plain``, the passes without fusion.

    The last line has the seconds of the board whose cycles the ``link`` predicts, if any.
    """
    cells = [["pass", "elements", "commands", "runs", "bytes read", "bytes written", "cycles"]]
    cells += [[x.name, x.elements, *map(_grouped, x.numbers)] for x in passes]
    cells += [_total("fused", passes), _total("unfused", plain)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    if link is not None and (board := link.prediction):
        seconds = sum(each.cycles for each in passes) / board.clock_hz
        lines.append(f"predicted  {duration(seconds)} at {board.clock}")
    return Explanation("\n".join(lines))


def _total(name: str, passes: Sequence[PassCost]) -> list[str]:
    numbers = [sum(x.numbers[column] for x in passes) for column in range(5)]
    count = "1 pass" if len(passes) == 1 else f"{len(passes)} passes"
    return [name, count, *map(_grouped, numbers)]


def _grouped(number: int) -> str:
    return f"{number:,}"


def pass_costs(plan: Plan, abilities: Abilities, link: Link | None = None) -> list[PassCost]:
    """Return the costs of the passes of ``plan``, in the order in which they are executed."""
    memory = allocate(plan)
    groups = memory.dry_groups(abilities)
    lowered = [replace(group, commands=list(group.commands)) for group in groups]
    ordered = list(insert_fences(lowered))
    ends = None if link is None else link.predict([_record(command) for command in ordered])
    result = []
    first = spent = 0
    for step, group in zip(memory.passes, lowered, strict=True):
        commands = ordered[first : first + len(list(group.commands))]
        behind = first > 0
        first += len(commands)
        if ends is None:
            taken = cycles(commands, abilities, behind_others=behind)
        else:
            end = ends[first - 1] if first else 0
            taken, spent = end - spent, end
        result.append(_cost(step, commands, taken))
    return result


def _record(command: Command) -> bytes:
    """Return a record as long as the command's. Dry commands lie above the range of addresses."""
    b = None if command.b is None else _within(command.b)
    words = encode(replace(command, a=_within(command.a), b=b, y=_within(command.y)))
    return words.tobytes().ljust(RECORD_BYTES, b"\0")


def _within(walk: Walk) -> Walk:
    return replace(walk, base=walk.base % _ADDRESSES, last=walk.last % _ADDRESSES)


_ADDRESSES = 1 << 32


def _cost(step: Pass, commands: Sequence[Command], taken: int) -> PassCost:
    shape = " x ".join(map(str, step.shape)) or "1"
    elements = f"{shape} of {8 * step.a.view.itemsize} bits"
    read = written = 0
    for command in commands:
        operands = [walk for walk in (command.a, command.b) if walk is not None]
        read += sum(_bytes(command, walk, command.lane.bytes) for walk in operands)
        written += _bytes(command, command.y, command.out_lane.bytes)
    runs = sum(prod(command.counts) for command in commands)
    return PassCost(step.name, elements, len(commands), runs, read, written, taken)


def _bytes(command: Command, walk: Walk, size: int) -> int:
    elements = 1 if walk.mode in (Mode.REPEAT, Mode.SUM) else command.run
    return prod(command.counts) * elements * size
