"""The nodes that expressions are made of, in orders that are useful. Changes nothing."""

from collections.abc import Container, Sequence
from math import prod

from .form import Applied, Expression, Stored, Viewed, Widened

__all__ = ["count_pending", "kept_values", "operands", "operands_first"]


def operands(node: Expression) -> tuple[Expression, ...]:
    """What a node needs."""
    if isinstance(node, Applied):
        return (node.a,) if node.b is None else (node.a, node.b)
    return (node.source,) if isinstance(node, Widened | Viewed) else ()


def count_pending(root: Expression) -> int:
    """How many operations ``root`` needs that are not computed yet."""
    waiting, seen = [root], {root}
    count = 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, Applied | Widened):
            if node.kept:
                continue
            count += 1
        fresh = [each for each in operands(node) if each not in seen]
        waiting += fresh
        seen.update(fresh)
    return count


def kept_values(roots: Sequence[Expression]) -> dict[Expression, Stored]:
    """What ``roots`` need and need not be computed again."""
    known: dict[Expression, Stored] = {}
    waiting, seen = list(roots), set(roots)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Applied | Widened) and (stored := node.kept):
            known[node] = stored
            continue
        fresh = [each for each in operands(node) if each not in seen]
        waiting += fresh
        seen.update(fresh)
    return known


def operands_first(
    roots: Sequence[Expression], known: Container[Expression] = ()
) -> list[Expression]:
    """Every node that ``roots`` need, once, each behind its operands; those of ``known`` alone.

    Of two operands that comes first which needs more memory, beyond what is left of it: then all
    of them need little.
    """
    needs: dict[Expression, int] = {}
    for node in _depth_first(roots, known, {}):
        held, most = 0, 0
        below = () if node in known else operands(node)
        for each in sorted(below, key=lambda x: _size(x) - needs[x]):
            most = max(most, held + needs[each])
            held += _size(each)
        needs[node] = max(most, held + _size(node))
    return _depth_first(roots, known, needs)


def _depth_first(
    roots: Sequence[Expression], known: Container[Expression], needs: dict[Expression, int]
) -> list[Expression]:
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
        below = () if node in known else operands(node)
        following = [each for each in reversed(below) if each not in order]
        if needs:
            following.sort(key=lambda x: needs[x] - _size(x))
        waiting += [(each, False) for each in following]
    return list(order)


def _size(node: Expression) -> int:
    """Bytes of temporary memory that a node's value takes."""
    return prod(node.shape) * node.itemsize if isinstance(node, Applied | Widened) else 0
