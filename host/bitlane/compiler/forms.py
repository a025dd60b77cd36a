"""The form of expressions: all that their plan depends on, without the memory of their leaves.

Expressions of one form take the same passes; only addresses differ.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from bitlane_rtl.abi import Op

from ..driver import Storage
from ..lowering import Options, View
from .nodes import (
    COMPUTED,
    Applied,
    Argument,
    Constant,
    Expression,
    Joined,
    Stored,
    Viewed,
    VirtualBuffer,
    Widened,
    join,
    window,
)

# A tuple, as `isinstance` takes three times as long for a union of types.
_OF_ONE: Final = (Widened, Viewed)

Row: TypeAlias = tuple[Any, ...]
"""A node: its class and its fields. An operand is the number of an earlier row."""


class Form(NamedTuple):
    """Expressions as a table. A plan is made from the table alone: what it lacks has no effect."""

    areas: tuple[int, ...]
    """Bytes of each storage that holds leaves, in the order of their first leaves. No two of them
    share a byte, and each starts at a multiple of 64."""
    rows: tuple[Row, ...]
    roots: tuple[int, ...]
    target: int | None
    """The leaf that takes the value of the root, or None for results in memory of their own."""

    def build(self) -> tuple[list[VirtualBuffer], list[Expression]]:
        """Return a buffer for each area, and the nodes, whose leaves are in these buffers."""
        buffers = [VirtualBuffer(size) for size in self.areas]
        nodes: list[Expression] = []
        for kind, *fields in self.rows:
            nodes.append(_node(kind, fields, buffers, nodes))
        return buffers, nodes


def _node(
    kind: type[Expression],
    fields: Sequence[Any],
    buffers: Sequence[VirtualBuffer],
    nodes: Sequence[Expression],
) -> Expression:
    if kind is Stored:
        area, offset, shape, strides, itemsize = fields
        return Argument(buffers[area], View(offset, strides, itemsize), shape)
    if kind is Constant:
        return Constant(*fields)
    first, *rest = fields
    if kind is Joined:
        return join([nodes[part] for part in first], *rest)
    if kind is Viewed:
        return window(nodes[first], *rest)
    if kind is Widened:
        return Widened(nodes[first], *rest)
    op, second, shape, strides, itemsize, options, summed = rest
    b = None if second is None else nodes[second]
    return Applied(Op(op), nodes[first], b, shape, strides, itemsize, Options(options), summed)


def describe(
    roots: Sequence[Expression], target: Stored | None = None
) -> tuple[Form, list[Storage]]:
    """Return the form of ``roots``, and the storage of each area.

    Nodes that cache their values are leaves; a root that does is a copy of its value, unless it is
    written to ``target``.
    """
    areas: dict[Storage, int] = {}
    rows: list[Row] = []
    numbers: dict[Expression, int] = {}
    # Not recursive: programs build chains of any length.
    waiting = list(roots) if target is None else [*roots, target]
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        if node in numbers:
            continue
        leaf = node if isinstance(node, Stored) else _cached(node)
        row: Row
        if leaf is not None:
            view, storage = leaf.view, leaf.storage
            area = areas.setdefault(storage, len(areas))
            offset = view.address - storage.address
            row = (Stored, area, offset, leaf.shape, view.strides, view.itemsize)
        elif isinstance(node, Applied):
            a, b = node.a, node.b
            if a not in numbers or (b is not None and b not in numbers):
                waiting += (node, a) if b is None else (node, b, a)
                continue
            second = None if b is None else numbers[b]
            row = (
                *(Applied, numbers[a], int(node.op), second),
                *(node.shape, node.strides, node.itemsize, int(node.options), node.summed),
            )
        elif isinstance(node, _OF_ONE):
            if node.source not in numbers:
                waiting += (node, node.source)
                continue
            row = _row_of(node, numbers[node.source])
        elif isinstance(node, Joined):
            if missing := [part for part in node.parts if part not in numbers]:
                waiting += (node, *reversed(missing))
                continue
            parts = tuple([numbers[part] for part in node.parts])
            row = (Joined, parts, node.axis)
        else:
            assert isinstance(node, Constant), "others are bound or computed before"
            row = (Constant, node.content)
        numbers[node] = len(rows)
        rows.append(row)
    if target is None:
        chosen, written = _with_copies(roots, rows, numbers), None
    else:
        chosen, written = tuple([numbers[root] for root in roots]), numbers[target]
    sizes = tuple([storage.size for storage in areas])
    return Form(sizes, tuple(rows), chosen, written), list(areas)


def _cached(node: Expression) -> Stored | None:
    return node.cached if isinstance(node, COMPUTED) else None


def _row_of(node: Widened | Viewed, source: int) -> Row:
    if isinstance(node, Widened):
        return Widened, source, node.shape, node.strides, node.itemsize, node.signed
    return Viewed, source, node.offset, node.shape, node.strides, node.itemsize


def _with_copies(
    roots: Sequence[Expression], rows: list[Row], numbers: dict[Expression, int]
) -> tuple[int, ...]:
    """Return the rows of ``roots``; append copies of cached values, which results do not share."""
    copies: dict[int, int] = {}
    chosen = []
    for root in roots:
        source = root.source if isinstance(root, Viewed) else root
        number = numbers[source]
        if rows[number][0] is Stored and isinstance(source, COMPUTED):
            if number not in copies:
                copies[number] = len(rows)
                layout = source.shape, source.strides, source.itemsize
                rows.append((Applied, number, int(Op.COPY), None, *layout, 0, ()))
            number = copies[number]
            if isinstance(root, Viewed):
                rows.append(_row_of(root, number))
                number = len(rows) - 1
            chosen.append(number)
        else:
            chosen.append(numbers[root])
    return tuple(chosen)
