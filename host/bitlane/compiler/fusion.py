"""Expressions with the same value that need fewer passes over memory.

Inversions go into the operations around them: NAND, NOR, XNOR, De Morgan's laws. Logic goes into
the count behind it where the circuit does both at once. Rewrites trees; computes nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, TypeAlias

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..driver.geometry import Abilities
from ..lowering.routes import Shift
from .nodes import Applied, Constant, Expression, Stored, Viewed, Widened, apply, window
from .passes import kept_values, operands, operands_first

Wanted: TypeAlias = tuple[Expression, bool]
"""A node, and whether its value is wanted rather than the inverse of it."""

_PASS_COST: Final = 32
"""Cycles that a pass takes beside its data, about."""

_INVERSE: Final = {op: Op(op ^ 4) for op in LOGIC_OPS}
"""What gives the inverse of an operation's result."""

_DUAL: Final = {Op.AND: Op.NOR, Op.OR: Op.NAND, Op.NAND: Op.OR, Op.NOR: Op.AND}
"""De Morgan: what gives the same result from inverted operands."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How to get a node's value, or its inverse: ``op`` of ``operands``."""

    cost: int
    """Cycles, about, with those for operands that nothing else needs."""
    op: Op
    operands: tuple[Wanted, ...]


def fused(roots: Sequence[Expression], abilities: Abilities) -> list[Expression]:
    """Expressions that give what ``roots`` give, in the same layouts, on a circuit.

    What is kept is not computed again. No two of them share memory unless they are the same node,
    nor do they share that of a leaf or of what is kept, but for roots that are leaves.
    """
    if len(roots) == 1 and _is_simple(roots[0], abilities):
        return list(roots)
    rewriting = _Rewriting(roots, abilities)
    rewriting.build()
    return rewriting.roots()


def _is_simple(root: Expression, abilities: Abilities) -> bool:
    """Whether it is one operation on what is there: often so, and nothing can be better."""
    return (
        isinstance(root, Applied)
        and root.op in abilities.ops
        and not any(operands(each) for each in operands(root))
    )


class _Rewriting:
    def __init__(self, roots: Sequence[Expression], abilities: Abilities) -> None:
        self._roots = roots
        self._abilities = abilities
        self._known = kept_values(roots)
        self._order = operands_first(roots, self._known)
        self._meaning = _meanings(self._order, self._known)
        # Nodes that only copy or invert are gone from here on.
        self._nodes = [node for node, (inner, _) in self._meaning.items() if node is inner]
        self._readers = Counter(
            self._meaning[each][0] for node in self._nodes for each in operands(node)
        )
        self._readers.update(self._meaning[root][0] for root in roots)
        self._ones: dict[int, Expression] = {}
        self._ways: dict[Wanted, _Way] = {}
        for node in self._nodes:
            if isinstance(node, Applied):
                self._consider(node)
        self._built: dict[Wanted, Expression] = {}
        self._copies: dict[Expression, Expression] = {}

    def _consider(self, node: Applied) -> None:
        """Find the cheapest way to a node's value, and to its inverse."""
        own = self._weight(node)
        for wanted in (True, False):
            ways = [*self._direct(node, wanted), *self._counted(node, wanted)]
            if ways:
                self._ways[node, wanted] = min(ways, key=lambda way: way.cost)
        if (node, True) not in self._ways and (node, False) not in self._ways:
            # The circuit cannot do it: lowering says so.
            self._ways[node, True] = self._way(own, node.op, operands(node), (True, True))
        for wanted in (True, False):
            other = self._ways.get((node, not wanted))
            if other and other.op is not Op.NOT:
                way = _Way(other.cost + own, Op.NOT, ((node, not wanted),))
                known = self._ways.get((node, wanted), way)
                self._ways[node, wanted] = min(known, way, key=lambda way: way.cost)

    def _direct(self, node: Applied, wanted: bool) -> Iterator[_Way]:
        for op, signs in _forms(node, wanted):
            if op in self._abilities.ops:
                yield self._way(self._weight(node), op, operands(node), signs)

    def _counted(self, node: Applied, wanted: bool) -> Iterator[_Way]:
        """Ways to count what a logic operation gives without writing it."""
        counts = {op.counted: op for op in self._abilities.ops if op.counts}
        if node.op is not Op.COUNT or not wanted:
            return
        own = self._weight(node)
        inner, same = self._meaning[node.a]
        if op := counts.get(Op.XOR):
            ones = self._ones.setdefault(inner.itemsize, Constant(b"\xff" * inner.itemsize))
            self._meaning[ones] = (ones, True)
            yield self._way(own, op, (inner, ones), (not same, True))
        if isinstance(inner, Applied) and self._readers[inner] == 1 and inner.op in LOGIC_OPS:
            for logic, signs in _forms(inner, same):
                if op := counts.get(logic):
                    yield self._way(own, op, operands(inner), signs)

    def _way(
        self, own: int, op: Op, nodes: tuple[Expression, ...], signs: tuple[bool, ...]
    ) -> _Way:
        needed = []
        for node, sign in zip(nodes, signs, strict=False):
            inner, same = self._meaning[node]
            needed.append((inner, same == sign))
        return _Way(own + sum(map(self._cost, needed)), op, tuple(needed))

    def _cost(self, wanted: Wanted) -> int:
        node, same = wanted
        if self._readers[node] == 1 and wanted in self._ways:
            return self._ways[wanted].cost
        return 0 if same else self._weight(node)

    def _weight(self, node: Expression) -> int:
        return _PASS_COST + prod(node.shape) * node.itemsize // self._abilities.data_bytes

    # --- the new trees ------------------------------------------------------------------------

    def build(self) -> None:
        """Make new nodes for all that the roots need."""
        needs: defaultdict[Expression, set[bool]] = defaultdict(set)
        for root in self._roots:
            node, same = self._meaning[root]
            needs[node].add(same)
        chosen: dict[Expression, Wanted] = {}
        for node in [*reversed(self._nodes), *self._ones.values()]:
            if not needs[node]:
                continue
            native = chosen[node] = self._native(node, needs[node])
            if native in self._ways:
                needed = self._ways[native].operands
            else:
                needed = tuple(self._meaning[each] for each in operands(node))
            for inner, same in needed:
                needs[inner].add(same)
        for node in [*self._ones.values(), *self._nodes]:
            if node in chosen:
                self._make(chosen[node], needs[node])

    def _native(self, node: Expression, needed: set[bool]) -> Wanted:
        """Whether a node's value is computed first, or its inverse."""
        options = [
            (node, wanted)
            for wanted in (True, False)
            if (way := self._ways.get((node, wanted))) and way.operands != ((node, not wanted),)
        ]
        preferred = [option for option in options if option[1] in needed]
        if not options:
            return node, True
        return min(preferred or options, key=lambda option: self._ways[option].cost)

    def _make(self, native: Wanted, needed: set[bool]) -> None:
        node, wanted = native
        new: Expression = node
        if isinstance(node, Applied):
            way = self._ways[native]
            a, *rest = (self._built[each] for each in way.operands)
            b = rest[0] if rest else None
            if (way.op, a, b) != (node.op, node.a, node.b):
                new = replace(node, op=way.op, a=a, b=b)
        elif isinstance(node, Widened):
            new = replace(node, source=self._built[self._meaning[node.source]])
        elif isinstance(node, Viewed):
            new = self._window(node)
        self._built[node, wanted] = new
        if (not wanted) in needed:
            self._built[node, not wanted] = _copied(Op.NOT, new, node)

    def _window(self, node: Viewed) -> Expression:
        known = self._known.get(node.source)
        if known is not None:
            return window(known, node.offset, node.shape, node.strides, node.itemsize)
        return replace(node, source=self._laid_out(node.source))

    def _laid_out(self, node: Applied | Widened | Constant) -> Applied | Widened | Constant:
        """What gives a node's value in its very layout, in memory of its own."""
        inner, same = self._meaning[node]
        new = self._built[inner, same]
        if isinstance(new, Stored | Viewed) or new.strides != node.strides:
            new = self._copies.setdefault(node, self._moved(new, inner, node))
        assert not isinstance(new, Stored | Viewed)
        return new

    def _moved(self, new: Expression, inner: Expression, like: Expression) -> Applied:
        """``new``, which is the value of ``inner``, in the layout of ``like``.

        What nothing else needs is computed there, and if only parts of its elements are wanted,
        only these are.
        """
        if self._readers[inner] == 1:
            if isinstance(new, Applied):
                return replace(new, strides=like.strides)
            if isinstance(new, Viewed) and isinstance(inner, Viewed):
                source, _ = self._meaning[inner.source]
                part = _part(new) if self._readers[source] == 1 else None
                if part is not None:
                    return replace(part, strides=like.strides)
        return _copied(Op.COPY, new, like)

    def roots(self) -> list[Expression]:
        """The new roots, once all is built."""
        owners: dict[Expression, Expression] = {}
        roots: list[Expression] = []
        for root in self._roots:
            node = root.source if isinstance(root, Viewed) else root
            if isinstance(node, Stored | Constant):
                roots.append(root)
                continue
            new: Applied | Widened | Constant = self._laid_out(node)
            if owners.setdefault(new, root) is not root or isinstance(new, Constant):
                new = _copied(Op.COPY, new, node)
                owners[new] = root
            roots.append(replace(root, source=new) if isinstance(root, Viewed) else new)
        return roots


def _meanings(
    order: Sequence[Expression], known: Mapping[Expression, Stored]
) -> dict[Expression, Wanted]:
    """For each node the one that it copies or inverts, over any number of steps; else itself.

    For those that are ``known``, the leaf that they are.
    """
    readers = Counter(each for node in order for each in operands(node))
    meanings: dict[Expression, Wanted] = {}
    for node in order:
        meanings[node] = (node, True)
        if leaf := known.get(node):
            meanings[node] = meanings[leaf] = (leaf, True)
            continue
        source, copied = _passed_on(node)
        # A copy that many read in another layout pays.
        if source and (not copied or readers[node] < 2 or node.strides == source.strides):
            inner, same = meanings[source]
            meanings[node] = (inner, same == copied)
    return meanings


def _passed_on(node: Expression) -> tuple[Expression | None, bool]:
    """The operand that a node gives as it is (True), or inverted, if that is all that it does."""
    if not isinstance(node, Applied):
        return None, False
    if node.op in (Op.COPY, Op.NOT):
        return node.a, node.op is Op.COPY
    if node.op in (Op.XOR, Op.XNOR) and node.b is not None:
        for x, y in ((node.a, node.b), (node.b, node.a)):
            bits = set(y.content) if isinstance(y, Constant) else set()
            if bits in ({0}, {0xFF}):
                return x, (bits == {0}) == (node.op is Op.XOR)
    return None, False


def _forms(node: Applied, wanted: bool) -> Iterator[tuple[Op, tuple[bool, bool]]]:
    """Operations that give a node's value, or its inverse, and of which operands."""
    if node.op in LOGIC_OPS:
        op = node.op if wanted else _INVERSE[node.op]
        yield op, (True, True)
        if op in _DUAL:
            yield _DUAL[op], (False, False)
        else:
            yield _INVERSE[op], (False, True)
        if op in (Op.XOR, Op.XNOR):
            yield _INVERSE[op], (True, False)
            yield op, (False, False)
    elif node.op is Op.SHIFT_RIGHT and Shift.ARITHMETIC in node.shift:
        yield node.op, (wanted, True)
    elif wanted:
        yield node.op, (True, True)


def _part(view: Viewed) -> Applied | None:
    """The same bytes of each operand's elements, if ``view`` shows some of each result of logic."""
    whole = view.source
    if not isinstance(whole, Applied) or whole.op not in LOGIC_OPS:
        return None
    if (view.shape, view.strides) != (whole.shape, whole.strides):
        return None
    a, *rest = (window(x, view.offset, x.shape, x.strides, view.itemsize) for x in operands(whole))
    return replace(whole, a=a, b=rest[0] if rest else None, itemsize=view.itemsize)


def _copied(op: Op, source: Expression, like: Expression) -> Applied:
    """COPY or NOT of ``source`` in the layout of ``like``, if that is packed."""
    if not isinstance(like, Applied | Widened):
        return apply(op, source)
    return Applied(op, source, None, like.shape, like.strides, like.itemsize)
