"""Cost tables: the passes of a device for expressions, and estimated cycles. Executes nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate
from math import prod

from bitlane_rtl.abi import RECORD_BYTES, Mode

from ..driver import Abilities, Command, Walk, encode
from ..links import Link, duration
from ..lowering import View, cycles, insert_fences
from .fusion import fuse
from .memory import allocate
from .nodes import Argument, Expression, HostSum, Selected, VirtualBuffer
from .passes import Plan, plan_passes
from .selections import SelectionPlan, plan_selection, selections_of
from .stages import SumStage, next_stage, replace_nodes


@dataclass(frozen=True, slots=True)
class PassCost:
    """The work of a pass, or of several alike in sequence, and its estimated cycles."""

    name: str
    elements: str
    commands: int
    runs: int
    read: int
    """Bytes."""
    written: int
    """Bytes."""
    cycles: int
    passes: int = 1

    @property
    def title(self) -> str:
        return self.name if self.passes == 1 else f"{self.passes} x {self.name}"

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
    """Return a table of the passes that compute ``roots``, beside those without fusion.

    Selections come first. Sums that the host adds up are between two runs; the last lines have
    their number, and the selections of the host.
    A ``link`` that predicts cycles gives them, and with a board their seconds; else they are
    estimated for a memory that answers at once. Raises ``LayoutError`` or ``UnsupportedError``.
    """
    selections = [plan_selection(x, 0, abilities, link) for x in selections_of(roots)]
    leaves: list[Argument] = []
    known: dict[Expression, Expression] = {x.node: _leaf(x.node, leaves) for x in selections}
    fused = [_move_cost(each, abilities, link) for each in selections if each.commands]
    plain = list(fused)
    added = 0
    waiting = [root for root in roots if root not in known]
    for stage in stages(replace_nodes(waiting, known), leaves):
        wanted, buffers = stage.wanted, tuple([leaf.buffer for leaf in leaves])
        for costs, nodes in ((fused, fuse(wanted, abilities)), (plain, wanted)):
            plan = replace(plan_passes(nodes, abilities), arguments=buffers)
            taken = pass_costs(plan, abilities, link)
            costs += _joined(taken) if stage.sums else taken
        added += sum(prod(part.shape) for total in stage.sums for part in total.parts)
    host = [each.text for each in selections if not each.commands]
    host += [f"adds up {added:,} sums"] if added else []
    return Explanation("\n".join([table(fused, plain, link), *(f"host       {x}" for x in host)]))


def _move_cost(plan: SelectionPlan, abilities: Abilities, link: Link | None) -> PassCost:
    """Return the cost of a selection by commands, which are a run of their own."""
    elements = f"{plan.blocks.size} selected of {8 * plan.node.itemsize} bits"
    return _cost("COPY", elements, plan.commands, _ends(plan.commands, abilities, link)[-1])


def _joined(passes: Sequence[PassCost]) -> list[PassCost]:
    """Return ``passes`` with those in one that have one name and differ in their masks alone."""
    joined: list[PassCost] = []
    for each in passes:
        last = joined[-1] if joined else None
        if last is None or (last.name, last.elements) != (each.name, each.elements):
            joined.append(each)
            continue
        numbers = [x + y for x, y in zip(last.numbers, each.numbers, strict=True)]
        both = PassCost(each.name, each.elements, *numbers)
        joined[-1] = replace(both, passes=last.passes + 1)
    return joined


def stages(roots: Sequence[Expression], leaves: list[Argument]) -> Iterator[SumStage]:
    """Yield the stages of ``roots``; append the sums of the host to ``leaves`` behind each one."""
    waiting = list(roots)
    while waiting:
        yield (stage := next_stage(waiting))
        known: dict[Expression, Expression] = {}
        for total in stage.sums:
            known[total] = _leaf(total, leaves)
        late = [root for root in waiting if root not in stage.roots and root not in known]
        waiting = replace_nodes(late, known)


def _leaf(node: HostSum | Selected, leaves: list[Argument]) -> Argument:
    """Return the result of ``node`` in memory that is bound later; append it to ``leaves``."""
    size = prod(node.shape) * node.itemsize
    leaf = Argument(VirtualBuffer(size), View(0, node.strides, node.itemsize), node.shape)
    leaves.append(leaf)
    return leaf


def table(
    passes: Sequence[PassCost], plain: Sequence[PassCost], link: Link | None = None
) -> Explanation:
    """Return a line for each pass; their sum, and that of ``plain``, the passes without fusion.

    The last line has the seconds of the board whose cycles the ``link`` predicts, if any.
    """
    cells = [["pass", "elements", "commands", "runs", "bytes read", "bytes written", "cycles"]]
    cells += [[x.title, x.elements, *map(_grouped, x.numbers)] for x in passes]
    cells += [_total("fused", passes), _total("unfused", plain)]
    lines = aligned(cells, 2)
    if link is not None and (board := link.prediction):
        seconds = sum(each.cycles for each in passes) / board.clock_hz
        lines.append(f"predicted  {duration(seconds)} at {board.clock}")
    return Explanation("\n".join(lines))


def aligned(cells: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return the lines of a table: the first ``left`` columns of words, the others of numbers."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def _total(name: str, passes: Sequence[PassCost]) -> list[str]:
    numbers = [sum(x.numbers[column] for x in passes) for column in range(5)]
    taken = sum(x.passes for x in passes)
    count = "1 pass" if taken == 1 else f"{taken} passes"
    return [name, count, *map(_grouped, numbers)]


def _grouped(number: int) -> str:
    return f"{number:,}"


def pass_costs(plan: Plan, abilities: Abilities, link: Link | None = None) -> list[PassCost]:
    """Return the costs of the passes of ``plan``, in the order in which they are executed."""
    memory = allocate(plan)
    groups = memory.dry_groups(abilities)
    lowered = [replace(group, commands=list(group.commands)) for group in groups]
    ordered = list(insert_fences(lowered))
    ends = _ends(ordered, abilities, link)
    result = []
    first = spent = 0
    for step, group in zip(memory.passes, lowered, strict=True):
        commands = ordered[first : first + len(list(group.commands))]
        first += len(commands)
        end = ends[first - 1] if first else 0
        shape = " x ".join(map(str, step.shape)) or "1"
        elements = f"{shape} of {8 * step.a.view.itemsize} bits"
        result.append(_cost(step.name, elements, commands, end - spent))
        spent = end
    return result


def _ends(commands: Sequence[Command], abilities: Abilities, link: Link | None) -> list[int]:
    """Return the cycles from the doorbell until each command of one run has retired."""
    ends = None if link is None else link.predict([_record(command) for command in commands])
    if ends is not None:
        return ends
    taken = (cycles([x], abilities, behind_others=at > 0) for at, x in enumerate(commands))
    return list(accumulate(taken))


def _record(command: Command) -> bytes:
    """Return a record as long as the command's. Dry commands lie above the range of addresses."""
    b = None if command.b is None else _within(command.b)
    words = encode(replace(command, a=_within(command.a), b=b, y=_within(command.y)))
    return words.tobytes().ljust(RECORD_BYTES, b"\0")


def _within(walk: Walk) -> Walk:
    return replace(walk, base=walk.base % _ADDRESSES, last=walk.last % _ADDRESSES)


_ADDRESSES = 1 << 32


def _cost(name: str, elements: str, commands: Sequence[Command], taken: int) -> PassCost:
    read, written = traffic(commands)
    runs = sum(prod(command.counts) for command in commands)
    return PassCost(name, elements, len(commands), runs, read, written, taken)


def traffic(commands: Iterable[Command]) -> tuple[int, int]:
    """Return the bytes that ``commands`` read and write."""
    read = written = 0
    for command in commands:
        operands = [walk for walk in (command.a, command.b) if walk is not None]
        read += sum(_bytes(command, walk, command.lane.bytes) for walk in operands)
        written += _bytes(command, command.y, command.out_lane.bytes)
    return read, written


def _bytes(command: Command, walk: Walk, size: int) -> int:
    elements = 1 if walk.mode in (Mode.REPEAT, Mode.SUM) else command.run
    return prod(command.counts) * elements * size
