"""Rewriting of expressions to equal ones that need fewer passes over memory.

Inversions go into the operations around them: NAND, NOR, XNOR, De Morgan's laws. Logic goes into
the count behind it where the circuit does both at once, and tests of counts go into the sum or the
inversion of their truth values. Rewrites trees; computes nothing.

Example: the count of ``~(a ^ b)``, of 1,024 elements of 4 bytes, on a circuit of 8 data bytes. It
takes three passes as written.

>>> xor = apply(Op.XOR, a, b)
>>> inverse = apply(Op.NOT, xor)
>>> count = apply(Op.COUNT, inverse)

Step 1 finds the signals. ``inverse`` is the signal (``xor``, False), so the NOT is gone, and
``xor`` has one reader.

>>> graph = _canonicalize([count])
>>> graph.canonical[inverse] == (xor, False), inverse in graph.nodes, graph.readers[xor]
(True, False, 1)

Step 2 chooses the cheapest candidate for each signal, operands first. A pass costs 32 cycles and
one for each word of its result: 544 for ``xor`` in either polarity, 160 for the count.

>>> choice = _Choice(graph, abilities)
>>> choice.choose()
>>> choice.best[xor, False].op.name, choice.best[xor, False].cost
('XNOR', 544)

The count may be COUNT of the XNOR, COUNT_XOR of ``xor`` and a constant of all ones, or COUNT_XOR
of ``a`` and the inverse of ``b``. Each takes two passes and 704 cycles; the first one found wins.

>>> choice.best[count, True].op.name, choice.best[count, True].cost
('COUNT', 704)
>>> choice.best[count, True].operands == ((xor, False),)
True

Step 3 makes new nodes for the signals that the roots read, directly or not.

>>> [new] = fuse([count], abilities)
>>> new.op.name, new.a.op.name, new.a.a is a, new.a.b is b
('COUNT', 'XNOR', True, True)
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, TypeAlias

from bitlane_rtl.abi import LOGIC_OPS, Op

from ..driver import Abilities
from ..lowering import Options
from .nodes import (
    Applied,
    Argument,
    Constant,
    Expression,
    HostSum,
    Joined,
    Selected,
    Stored,
    Viewed,
    Widened,
    apply,
    operands_first,
    reach,
    window,
)

Signal: TypeAlias = tuple[Expression, bool]
"""A node and its polarity: True for its value, False for the inverse of it."""

_PASS_COST: Final = 32
"""Cycles that a pass takes beside its data, about."""

_INVERSE: Final = {op: Op(op ^ 4) for op in LOGIC_OPS if op < 8}
"""Operations with the inverse result."""

_DUAL: Final = {Op.AND: Op.NOR, Op.OR: Op.NAND, Op.NAND: Op.OR, Op.NOR: Op.AND}
"""De Morgan's laws: operations with the same result on inverted operands."""


def fuse(roots: Sequence[Expression], abilities: Abilities) -> list[Expression]:
    """Return expressions with the values and the layouts of ``roots`` that need fewer passes.

    Cached values are not computed again. Results never alias each other, a leaf or a cached value,
    except roots that are leaves.
    """
    if len(roots) == 1 and _is_simple(roots[0], abilities):
        return list(roots)
    graph = _canonicalize(roots)
    choice = _Choice(graph, abilities)
    choice.choose()
    rewriting = _Rewriting(graph, choice)
    rewriting.build()
    return rewriting.roots()


def _is_simple(root: Expression, abilities: Abilities) -> bool:
    """Return whether ``root`` is one operation on leaves, which nothing can improve."""
    return (
        isinstance(root, Applied)
        and root.op in abilities.ops
        and not any(each.operands for each in root.operands)
    )


# --- 1: signals -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Graph:
    """The nodes that ``roots`` depend on, except those that only copy or invert another node."""

    roots: Sequence[Expression]
    cached: Mapping[Expression, Stored]
    """The values of nodes that have been computed."""
    canonical: Mapping[Expression, Signal]
    """Maps a node that copies or inverts another to the first node of such a chain.

    A node that does neither is mapped to itself, and a cached node to the leaf with its value.
    """
    nodes: Sequence[Expression]
    """The canonical nodes, each after its operands."""
    readers: Counter[Expression]
    """How many canonical nodes and roots read each canonical node."""


def _canonicalize(roots: Sequence[Expression]) -> _Graph:
    """Return the graph of ``roots``: step 1."""
    _, cached = reach(roots)
    order = operands_first(roots, cached)
    readers = Counter(each for node in order for each in node.operands)
    canonical: dict[Expression, Signal] = {}
    for node in order:
        canonical[node] = (node, True)
        if leaf := cached.get(node):
            canonical[node] = canonical[leaf] = (leaf, True)
            continue
        source, copied = _passed_through(node)
        # A copy that many read in another layout pays.
        if source and (not copied or readers[node] < 2 or node.strides == source.strides):
            inner, same = canonical[source]
            canonical[node] = (inner, same == copied)
    nodes = [node for node, (inner, _) in canonical.items() if node is inner]
    readers = Counter(canonical[each][0] for node in nodes for each in node.operands)
    readers.update(canonical[root][0] for root in roots)
    return _Graph(roots, cached, canonical, nodes, readers)


def _passed_through(node: Expression) -> tuple[Expression | None, bool]:
    """Return the operand that a node merely copies (True) or inverts (False), or None."""
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


# --- 2: candidates --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One way to compute a signal: ``op`` of ``operands``, with ``options``."""

    cost: int
    """Estimated cycles, with those for operands that nothing else uses."""
    op: Op
    operands: tuple[Signal, ...]
    options: Options


def _cost_of(candidate: _Candidate) -> int:
    return candidate.cost


class _Choice:
    """The cheapest way to compute each signal of ``graph``, once `choose` has been called."""

    def __init__(self, graph: _Graph, abilities: Abilities) -> None:
        self._graph = graph
        self._abilities = abilities
        self.best: dict[Signal, _Candidate] = {}
        self.ones: dict[int, Constant] = {}
        """Constants of all ones that candidates read, by their bytes."""

    def choose(self) -> None:
        """Find the cheapest candidate for each signal that an operation computes: step 2."""
        for node in self._graph.nodes:
            if isinstance(node, Applied):
                self._choose(node)

    def _choose(self, node: Applied) -> None:
        """Find the cheapest way to compute each polarity of ``node``."""
        own = self._weight(node)
        for polarity in (True, False):
            candidates = [
                *self._logic_candidates(node, polarity),
                *self._count_candidates(node, polarity),
                *self._test_candidates(node, polarity),
            ]
            if candidates:
                self.best[node, polarity] = min(candidates, key=_cost_of)
        if (node, True) not in self.best and (node, False) not in self.best:
            # The circuit cannot do it: lowering says so.
            signals = self._signals(node, (True, True))
            self.best[node, True] = self._candidate(node, node.op, signals)
        for polarity in (True, False):
            other = self.best.get((node, not polarity))
            if other and other.op is not Op.NOT:
                cost, inverse = other.cost + own, ((node, not polarity),)
                candidate = _Candidate(cost, Op.NOT, inverse, Options.NONE)
                known = self.best.get((node, polarity), candidate)
                self.best[node, polarity] = min(known, candidate, key=_cost_of)

    def _logic_candidates(self, node: Applied, polarity: bool) -> Iterator[_Candidate]:
        for op, signs in _equivalents(node, polarity):
            if op in self._abilities.ops:
                yield self._candidate(node, op, self._signals(node, signs))

    def _count_candidates(self, node: Applied, polarity: bool) -> Iterator[_Candidate]:
        """Yield ways to count the result of a logic operation without writing it."""
        counts = {op.counted: op for op in self._abilities.ops if op.counts}
        if node.op is not Op.COUNT or not polarity:
            return
        inner, same = self._graph.canonical[node.a]
        if op := counts.get(Op.XOR):
            ones = self.ones.setdefault(inner.itemsize, Constant(b"\xff" * inner.itemsize))
            yield self._candidate(node, op, ((inner, not same), (ones, True)))
        if isinstance(inner, Applied) and self._graph.readers[inner] == 1 and inner.op in LOGIC_OPS:
            for logic, signs in _equivalents(inner, same):
                if op := counts.get(logic):
                    yield self._candidate(node, op, self._signals(inner, signs))

    def _test_candidates(self, node: Applied, polarity: bool) -> Iterator[_Candidate]:
        """Yield ways to add up or to invert the truth values of a test without writing them."""
        if not polarity:
            return
        toggled = Options.NONE
        source, inverts = _inverted_truth(node)
        if inverts:
            toggled = Options.NEGATE
        elif not (node.op is Op.COUNT and node.summed and Options.TEST not in node.options):
            return
        inner, same = self._graph.canonical[source]
        known = self.best.get((inner, True))
        added_up = isinstance(inner, Applied) and inner.summed
        alone = same and self._graph.readers[inner] == 1 and not added_up
        if alone and known and Options.TEST in known.options:
            cost = known.cost - self._weight(inner) + self._weight(node)
            yield replace(known, cost=cost, options=known.options ^ toggled)

    def _signals(self, node: Applied, signs: tuple[bool, bool]) -> tuple[Signal, ...]:
        """Return the operands of ``node``, inverted where ``signs`` has False."""
        known = [self._graph.canonical[each] for each in node.operands]
        return tuple(
            [(inner, same == sign) for (inner, same), sign in zip(known, signs, strict=False)]
        )

    def _candidate(self, node: Applied, op: Op, signals: tuple[Signal, ...]) -> _Candidate:
        """Return the candidate that computes ``node`` by ``op`` of ``signals``."""
        cost = self._weight(node) + sum(map(self._cost, signals))
        return _Candidate(cost, op, signals, node.options)

    def _cost(self, signal: Signal) -> int:
        """Return the cycles that an operand adds to the node that reads it."""
        node, polarity = signal
        if self._graph.readers[node] == 1 and signal in self.best:
            return self.best[signal].cost
        return 0 if polarity else self._weight(node)

    def _weight(self, node: Expression) -> int:
        return _PASS_COST + prod(node.shape) * node.itemsize // self._abilities.data_bytes


def _inverted_truth(node: Applied) -> tuple[Expression, bool]:
    """Return the operand whose truth values ``node`` inverts and True, or an operand and False."""
    if node.op is Op.XOR and node.b is not None:
        for x, y in ((node.a, node.b), (node.b, node.a)):
            if isinstance(y, Constant) and y.content == b"\1":
                return x, True
    return node.a, False


def _equivalents(node: Applied, polarity: bool) -> Iterator[tuple[Op, tuple[bool, bool]]]:
    """Yield the operations that compute a polarity of ``node``, and the polarities of operands."""
    if node.op in _INVERSE:
        op = node.op if polarity else _INVERSE[node.op]
        yield op, (True, True)
        if op in _DUAL:
            yield _DUAL[op], (False, False)
        else:
            yield _INVERSE[op], (False, True)
        if op in (Op.XOR, Op.XNOR):
            yield _INVERSE[op], (True, False)
            yield op, (False, False)
    elif node.op is Op.SHIFT_RIGHT and Options.ARITHMETIC in node.options:
        yield node.op, (polarity, True)
    elif polarity:
        yield node.op, (True, True)


# --- 3: new trees ---------------------------------------------------------------------------------


class _Rewriting:
    """New trees for the roots of ``graph``, made by `build` as ``choice`` says."""

    def __init__(self, graph: _Graph, choice: _Choice) -> None:
        self._graph = graph
        self._choice = choice
        self._built: dict[Signal, Expression] = {}
        self._copies: dict[Expression, Expression] = {}

    def build(self) -> None:
        """Make new nodes for all that the roots need: step 3."""
        uses: defaultdict[Expression, set[bool]] = defaultdict(set)
        for root in self._graph.roots:
            node, same = self._graph.canonical[root]
            uses[node].add(same)
        stored: dict[Expression, Signal] = {}
        for node in [*reversed(self._graph.nodes), *self._choice.ones.values()]:
            if not uses[node]:
                continue
            signal = stored[node] = self._stored_polarity(node, uses[node])
            if signal in self._choice.best:
                needed = self._choice.best[signal].operands
            else:
                needed = tuple(self._graph.canonical[each] for each in node.operands)
            for inner, same in needed:
                uses[inner].add(same)
        for node in [*self._choice.ones.values(), *self._graph.nodes]:
            if node in stored:
                self._make(stored[node], uses[node])

    def _stored_polarity(self, node: Expression, needed: set[bool]) -> Signal:
        """Return the polarity of ``node`` that is computed first."""
        options = [
            (node, polarity)
            for polarity in (True, False)
            if (candidate := self._choice.best.get((node, polarity)))
            and candidate.operands != ((node, not polarity),)
        ]
        preferred = [option for option in options if option[1] in needed]
        if not options:
            return node, True
        return min(preferred or options, key=lambda option: self._choice.best[option].cost)

    def _make(self, signal: Signal, needed: set[bool]) -> None:
        node, polarity = signal
        new: Expression = node
        if isinstance(node, Applied):
            candidate = self._choice.best[signal]
            a, *rest = (self._built[each] for each in candidate.operands)
            b = rest[0] if rest else None
            made = (candidate.op, a, b, candidate.options)
            if made != (node.op, node.a, node.b, node.options):
                new = replace(node, op=candidate.op, a=a, b=b, options=candidate.options)
        elif isinstance(node, Widened):
            new = replace(node, source=self._built[self._graph.canonical[node.source]])
        elif isinstance(node, Joined):
            parts = [self._built[self._graph.canonical[part]] for part in node.parts]
            new = replace(node, parts=tuple(parts))
        elif isinstance(node, Viewed):
            new = self._window(node)
        self._built[node, polarity] = new
        if (not polarity) in needed:
            self._built[node, not polarity] = _copy(Op.NOT, new, node)

    def _window(self, node: Viewed) -> Expression:
        known = self._graph.cached.get(node.source)
        if known is not None:
            return window(known, node.offset, node.shape, node.strides, node.itemsize)
        return replace(node, source=self._in_layout(node.source))

    def _in_layout(
        self, node: Applied | Widened | Joined | HostSum | Selected | Constant
    ) -> Applied | Widened | Joined | Constant:
        """Return a node with the value and the layout of ``node``, in memory of its own."""
        inner, same = self._graph.canonical[node]
        new = self._built[inner, same]
        if isinstance(new, Stored | Argument | Viewed) or new.strides != node.strides:
            new = self._copies.setdefault(node, self._relocate(new, inner, node))
        assert not isinstance(new, Stored | Argument | HostSum | Selected | Viewed)
        return new

    def _relocate(self, new: Expression, inner: Expression, like: Expression) -> Applied:
        """Return ``new``, which is the value of ``inner``, in the layout of ``like``.

        A value without other readers is computed there, and only the bytes of its elements that
        are read.
        """
        if self._graph.readers[inner] == 1:
            if isinstance(new, Applied):
                return replace(new, strides=like.strides)
            if isinstance(new, Viewed) and isinstance(inner, Viewed):
                source, _ = self._graph.canonical[inner.source]
                narrow = _narrow_logic(new) if self._graph.readers[source] == 1 else None
                if narrow is not None:
                    return replace(narrow, strides=like.strides)
        return _copy(Op.COPY, new, like)

    def roots(self) -> list[Expression]:
        """Return the new roots, once all is built."""
        owners: dict[Expression, Expression] = {}
        roots: list[Expression] = []
        for root in self._graph.roots:
            node = root.source if isinstance(root, Viewed) else root
            if isinstance(node, Stored | Argument | Constant):
                roots.append(root)
                continue
            new: Applied | Widened | Joined | Constant = self._in_layout(node)
            if owners.setdefault(new, root) is not root or isinstance(new, Constant):
                new = _copy(Op.COPY, new, node)
                owners[new] = root
            roots.append(replace(root, source=new) if isinstance(root, Viewed) else new)
        return roots


def _narrow_logic(view: Viewed) -> Applied | None:
    """Return logic on the bytes of each element that ``view`` shows, if it shows these alone."""
    whole = view.source
    if not isinstance(whole, Applied) or whole.op not in LOGIC_OPS:
        return None
    if (view.shape, view.strides) != (whole.shape, whole.strides):
        return None
    a, *rest = (window(x, view.offset, x.shape, x.strides, view.itemsize) for x in whole.operands)
    return replace(whole, a=a, b=rest[0] if rest else None, itemsize=view.itemsize)


def _copy(op: Op, source: Expression, like: Expression) -> Applied:
    """Return COPY or NOT of ``source``, in the layout of ``like`` if that is packed."""
    if not isinstance(like, Applied | Widened | Joined | HostSum):
        return apply(op, source)
    return Applied(op, source, None, like.shape, like.strides, like.itemsize)
