"""The nodes that expressions are made of, in orders that are useful. Changes nothing."""

from collections.abc import Sequence
from math import prod

from .form import Applied, Expression, Widened, Window

__all__ = ["operands", "operands_first"]


def operands(node: Expression) -> tuple[Expression, ...]:
    """What a node needs."""
    if isinstance(node, Applied):
        return (node.a,) if node.b is None else (node.a, node.b)
    return (node.source,) if isinstance(node, Widened | Window) else ()


def operands_first(roots: Sequence[Expression]) -> list[Expression]:
    """Every node that ``roots`` need, once, each behind its operands.

    Of two operands that comes first which needs more memory, beyond what is left of it: then all
    of them need little.
    """
    needs: dict[Expression, int] = {}
    for node in _depth_first(roots, {}):
        held, most = 0, 0
        for each in sorted(operands(node), key=lambda x: _size(x) - needs[x]):
            most = max(most, held + needs[each])
            held += _size(each)
        needs[node] = max(most, held + _size(node))
    return _depth_first(roots, needs)


def _depth_first(roots: Sequence[Expression], needs: dict[Expression, int]) -> list[Expression]:
    order: dict[Expression, None] = {}
    # Not recursive: programs build chains of any length.
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, ready = waiting.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
            continue
        waiting.append((node, True))
        following = [each for each in reversed(operands(node)) if each not in order]
        if needs:
            following.sort(key=lambda x: needs[x] - _size(x))
        waiting += [(each, False) for each in following]
    return list(order)


def _size(node: Expression) -> int:
    """Bytes of temporary memory that a node's value takes."""
    return prod(node.shape) * node.itemsize if isinstance(node, Applied | Widened) else 0
