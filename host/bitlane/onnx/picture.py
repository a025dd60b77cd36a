"""The groups of a model as text: where each is computed, and why."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ..compiler import Expression
from .dry import DryGroup
from .model import BitGraph, DeviceGroup, Group, quoted
from .worth import RULE

_SHOWN: Final = 6
"""The number of nodes or values that a line lists."""

_LATER: Final = "shapes are known only when the model runs"


def draw_groups(
    groups: Iterable[DryGroup],
    rest: str | None,
    show: Callable[[Sequence[Expression]], str],
) -> str:
    """Return the groups in order, with what ``show`` says of the expressions of the device's."""
    lines = []
    for each in groups:
        lines += [title_of(each.number, each.group, rest), _traffic(each)]
        if isinstance(each.group, DeviceGroup):
            lines += [f"  {_LATER}"] if each.roots is None else [show(each.roots)]
        else:
            lines += [f"  {reason}" for reason in each.group.reasons]
    return "\n".join([*lines, f"rule: {RULE}"])


def list_groups(graph: BitGraph, rest: str | None) -> str:
    """Return a line for each group, and the reason of each node that is not the device's."""
    lines = []
    for number, group in enumerate(graph.groups, 1):
        lines.append(title_of(number, group, rest))
        if not isinstance(group, DeviceGroup):
            lines += [f"  {reason}" for reason in group.reasons]
    return "\n".join(lines)


def title_of(number: int, group: Group, rest: str | None) -> str:
    """Return a group's number, backend and nodes: ``group 1, device: node 0 (BitwiseXor)``."""
    if isinstance(group, DeviceGroup):
        nodes = _some([node.label for node in group.nodes]) or "no nodes"
        return f"group {number}, device: {nodes}"
    count = len(group.reasons)
    return f"group {number}, {rest}: {count} {'node' if count == 1 else 'nodes'}"


def _traffic(each: DryGroup) -> str:
    sides = (("reads", each.group.inputs, each.read), ("gives", each.group.outputs, each.written))
    parts = []
    for verb, names, size in sides:
        listed = _some([quoted(name) for name in names]) or "nothing"
        parts.append(f"{verb} {listed}" + ("" if size is None else f" ({size:,} bytes)"))
    return f"  {', '.join(parts)}"


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_SHOWN])
    return listed if len(names) <= _SHOWN else f"{listed} and {len(names) - _SHOWN} more"
