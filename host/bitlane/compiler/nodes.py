"""Expressions: values to be computed from tensors in the device's memory, as immutable trees.

Shapes, bytes and lanes alone: no data types. Nothing here computes, or talks to a device.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final, TypeAlias
from weakref import ref

from bitlane_rtl.abi import Op

from ..driver import Storage
from ..errors import LayoutError, ShapeError
from ..lowering import (
    BlockOffsets,
    MovedBlock,
    Options,
    View,
    broadcast_shapes,
    broadcast_strides,
    order_of,
    packed_strides,
    span,
)
from ..lowering.strided import WIDTHS

_SUM = 4
"""Bytes of a sum."""


@dataclass(slots=True, eq=False)
class VirtualBuffer:
    """``size`` bytes of memory that get their address later; ``content``: their initial value."""

    size: int
    content: bytes | bytearray = b""


class _Node:
    """Base of all nodes, which have a ``shape``, ``strides`` and an ``itemsize``, in bytes.

    Nodes are compared by identity: the same node in two places is computed once.
    """

    __slots__ = ()

    @property
    def operands(self) -> "tuple[Expression, ...]":
        """The nodes that this one is computed from."""
        return ()

    def __repr__(self) -> str:
        return f"<bitlane expression: {type(self).__name__} at {id(self):#x}>"


class _Leaf(_Node):
    """Base of tensors that exist already."""

    __slots__ = ()

    view: View

    @property
    def strides(self) -> tuple[int, ...]:
        return self.view.strides

    @property
    def itemsize(self) -> int:
        return self.view.itemsize


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Stored(_Leaf):
    """A tensor in the device's memory. ``storage`` keeps the bytes of ``view``."""

    storage: Storage
    view: View
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Argument(_Leaf):
    """A tensor in a buffer that is bound later. ``view`` counts addresses from its start."""

    buffer: VirtualBuffer
    view: View
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Constant(_Node):
    """One element: its 1, 2, 4 or 8 bytes, the lowest first. Without axes."""

    content: bytes

    def __post_init__(self) -> None:
        _expect_width(len(self.content))

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def strides(self) -> tuple[int, ...]:
        return ()

    @property
    def itemsize(self) -> int:
        return len(self.content)


class _Computed(_Node):
    """Base of nodes that take a pass over memory. A node caches its value while it exists."""

    __slots__ = ()

    _cached: "ref[Stored] | None"

    @property
    def cached(self) -> "Stored | None":
        """The value, if it has been computed and its memory is still held."""
        stored = None if self._cached is None else self._cached()
        return None if stored is None or stored.storage.closed else stored

    def cache(self, stored: "Stored") -> None:
        """Remember the value as long as another object holds it."""
        object.__setattr__(self, "_cached", ref(stored))


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Applied(_Computed):
    """``op`` of the same elements of ``a`` and ``b``, packed. Made by ``apply`` and ``add_up``."""

    op: Op
    a: "Expression"
    b: "Expression | None"
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    options: Options = Options.NONE
    summed: tuple[int, ...] = ()
    """Axes of the operands along which the results, which are counts, are added up."""
    _cached: "ref[Stored] | None" = field(default=None, init=False)

    @property
    def operands(self) -> "tuple[Expression, ...]":
        return (self.a,) if self.b is None else (self.a, self.b)

    @property
    def operand_shape(self) -> tuple[int, ...]:
        """The shape that the operands broadcast to."""
        return self.a.shape if self.b is None else broadcast_shapes(self.a.shape, self.b.shape)


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Widened(_Computed):
    """Each element of ``source`` in more bytes, packed. Made by ``widen``."""

    source: "Expression"
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    signed: bool
    _cached: "ref[Stored] | None" = field(default=None, init=False)

    @property
    def operands(self) -> "tuple[Expression, ...]":
        return (self.source,)


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Joined(_Computed):
    """The elements of ``parts`` one part behind the other along ``axis``, packed. See `join`."""

    parts: "tuple[Expression, ...]"
    axis: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    _cached: "ref[Stored] | None" = field(default=None, init=False)

    @property
    def operands(self) -> "tuple[Expression, ...]":
        return self.parts


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class HostSum(_Computed):
    """Sums of ``parts``, each times its weight, which the host adds up; packed.

    The elements of a part, sums of 4 bytes, are in the order of the results: one or more for each
    result, one behind the other.
    """

    parts: tuple[Applied, ...]
    weights: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    """Bytes of a result, which is the sum modulo 256**itemsize."""
    _cached: "ref[Stored] | None" = field(default=None, init=False)

    @property
    def operands(self) -> "tuple[Expression, ...]":
        return self.parts


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Selected(_Computed):
    """Blocks of ``source`` at irregular distances, one behind the other.

    It is computed before the expressions that need it, by moves or by the host.
    """

    source: Stored
    offsets: BlockOffsets
    """From element 0 of ``source`` to element 0 of each block."""
    block: MovedBlock
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    _cached: "ref[Stored] | None" = field(default=None, init=False)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Viewed(_Node):
    """The memory of ``source`` from ``offset`` bytes on, as other elements. Made by ``window``."""

    source: "Applied | Widened | Joined | HostSum | Selected | Constant"
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def operands(self) -> "tuple[Expression, ...]":
        return (self.source,)


Expression: TypeAlias = (
    Stored | Argument | Constant | Applied | Widened | Joined | HostSum | Selected | Viewed
)

COMPUTED: Final = (Applied, Widened, Joined, HostSum, Selected)
"""The nodes that cache their values. A tuple: `isinstance` takes three times as long for a union of
types."""


def apply(
    op: Op,
    a: Expression,
    b: Expression | None = None,
    *,
    itemsize: int | None = None,
    options: Options = Options.SATURATE,
) -> Applied:
    """Return ``op`` of ``a`` and ``b``, which broadcast as NumPy's operands do.

    ``itemsize``: bytes of a count, 1 or 4 (1 if None). The layout is that of the first
    operand that has the result's shape and repeats none.

    Raises ``ShapeError``, or ``LayoutError`` for element sizes that the operation does not
    support.
    """
    if op.reads_b != (b is not None):
        raise LayoutError(f"b: {op.name} takes {1 + op.reads_b} operands")
    if b is not None and a.itemsize != b.itemsize:
        raise LayoutError(f"a, b: elements of {a.itemsize} and {b.itemsize} bytes; expected alike")
    if itemsize is None:
        itemsize = 1 if op.counts else a.itemsize
    if itemsize not in ((1, 4) if op.counts else (a.itemsize,)):
        raise LayoutError(f"itemsize: {itemsize} bytes for the result of {op.name}")
    operands = (a,) if b is None else (a, b)
    shape = a.shape if b is None else broadcast_shapes(a.shape, b.shape)
    order = _order(shape, operands)
    strides = packed_strides(shape, order, itemsize)
    return Applied(op, a, b, shape, strides, itemsize, options)


def add_up(count: Applied, axes: tuple[int, ...]) -> Applied:
    """Return the sums of counts along ``axes``, none of them empty, in 4 bytes modulo 2**32.

    The counts, or the results of their tests, are not stored. Raises ``LayoutError`` unless
    ``count`` counts.
    """
    if not count.op.counts or count.summed:
        raise LayoutError(f"count: {count.op.name}; expected an operation that counts, unsummed")
    remaining = [axis for axis in range(len(count.shape)) if axis not in axes]
    shape = tuple([count.shape[axis] for axis in remaining])
    order = order_of(tuple([count.strides[axis] for axis in remaining]))
    strides = packed_strides(shape, order, _SUM)
    return Applied(count.op, count.a, count.b, shape, strides, _SUM, count.options, axes)


def add_on_host(
    parts: Sequence[Applied], weights: Sequence[int], shape: tuple[int, ...], itemsize: int
) -> HostSum:
    """Return the sums of ``shape`` that the host makes of ``parts``. See `HostSum`."""
    strides = packed_strides(shape, itemsize=itemsize)
    return HostSum(tuple(parts), tuple(weights), shape, strides, itemsize)


def truth_of(source: Expression, *, negate: bool = False) -> Applied:
    """Return 1 for each element of ``source`` that is not 0, else 0, in a byte.

    ``negate``: 1 for each that is 0.
    """
    return apply(Op.COUNT, source, options=Options.of(test=True, negate=negate))


def copy_ordered(source: Expression, order: tuple[int, ...]) -> Applied:
    """Return a copy whose axes are in ``order``, the outermost in memory first."""
    strides = packed_strides(source.shape, order, source.itemsize)
    return Applied(Op.COPY, source, None, source.shape, strides, source.itemsize)


def narrow(source: Expression, itemsize: int) -> Expression:
    """Return the lowest ``itemsize`` bytes of each element, packed. Raises ``LayoutError``."""
    if itemsize > source.itemsize:
        raise LayoutError(f"itemsize: elements of {source.itemsize} bytes have no {itemsize}")
    if itemsize == source.itemsize:
        return source
    return apply(Op.COPY, window(source, 0, source.shape, source.strides, itemsize))


def widen(source: Expression, itemsize: int, *, signed: bool) -> Expression:
    """Return each element of ``source`` in ``itemsize`` bytes: with its sign, or zeros on top.

    Raises ``LayoutError`` for fewer bytes than it has.
    """
    _expect_width(itemsize)
    if itemsize < source.itemsize:
        raise LayoutError(f"itemsize: {itemsize} bytes hold no element of {source.itemsize}")
    if itemsize == source.itemsize:
        return source
    order = _order(source.shape, (source,))
    strides = packed_strides(source.shape, order, itemsize)
    return Widened(source, source.shape, strides, itemsize, signed)


def join(parts: Sequence[Expression], axis: int) -> Joined:
    """Return ``parts``, one or more, one behind the other along ``axis``, 0 or more.

    Raises ``ShapeError`` for shapes that differ along other axes, ``LayoutError`` for elements of
    different sizes.
    """
    first = parts[0]
    for part in parts:
        alike = len(part.shape) == len(first.shape) > axis and all(
            n == m or at == axis
            for at, (n, m) in enumerate(zip(part.shape, first.shape, strict=True))
        )
        if not alike:
            raise ShapeError(
                f"parts: shapes {first.shape} and {part.shape}; expected alike but for axis {axis}"
            )
        if part.itemsize != first.itemsize:
            raise LayoutError(
                f"parts: elements of {first.itemsize} and {part.itemsize} bytes; expected alike"
            )
    length = sum(part.shape[axis] for part in parts)
    shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
    strides = packed_strides(shape, itemsize=first.itemsize)
    return Joined(tuple(parts), axis, shape, strides, first.itemsize)


def window(
    source: Expression,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    itemsize: int | None = None,
) -> Expression:
    """Return other elements of the same memory, without a copy: slices, other axes or sizes.

    ``offset``: bytes from element 0 of ``source``, whose layout is ``source.strides``. Raises
    ``LayoutError`` for elements outside its memory.
    """
    itemsize = source.itemsize if itemsize is None else itemsize
    _expect_width(itemsize)
    if isinstance(source, Viewed):
        offset += source.offset
        source = source.source
    start = offset
    if isinstance(source, Stored):
        start, size = offset + source.view.address - source.storage.address, source.storage.size
    elif isinstance(source, Argument):
        start, size = offset + source.view.address, source.buffer.size
    else:
        size = prod(source.shape) * source.itemsize
    reach = span(shape, strides, itemsize, start)
    if 0 not in shape and not (reach.start >= 0 and reach.stop <= size):
        raise LayoutError(
            f"window: bytes {reach.start} to {reach.stop - 1}; expected 0 to {size - 1}"
        )
    if isinstance(source, Stored | Argument):
        view = View(source.view.address + offset, strides, itemsize)
        return replace(source, view=view, shape=shape)
    return Viewed(source, offset, shape, strides, itemsize)


def broadcast(source: Expression, shape: tuple[int, ...]) -> Expression:
    """Return ``source`` with further axes, and repeated along those of length 1. ``ShapeError``."""
    if source.shape == shape:
        return source
    if broadcast_shapes(source.shape, shape) != shape:
        raise ShapeError(f"shape: {source.shape} does not broadcast to {shape}")
    return window(source, 0, shape, broadcast_strides(source.shape, source.strides, shape))


def _order(shape: tuple[int, ...], operands: tuple[Expression, ...]) -> tuple[int, ...]:
    """Return the axes of a result, outermost in memory first."""
    for x in operands:
        moving = all(step for count, step in zip(x.shape, x.strides, strict=True) if count > 1)
        if x.shape == shape and moving:
            return order_of(x.strides)
    return tuple(range(len(shape)))


def _expect_width(itemsize: int) -> None:
    if itemsize not in WIDTHS:
        raise LayoutError(f"itemsize: {itemsize} bytes; expected 1, 2, 4 or 8")


# --- traversal ----------------------------------------------------------------------------------


def reach(roots: Sequence[Expression]) -> tuple[set[Expression], dict[Expression, Stored]]:
    """Return the nodes that ``roots`` need, and the values of those that are cached.

    The operands of cached nodes are left out, unless others need them.
    """
    waiting, needed = list(roots), set(roots)
    cached: dict[Expression, Stored] = {}
    while waiting:
        node = waiting.pop()
        if isinstance(node, COMPUTED) and (stored := node.cached):
            cached[node] = stored
            continue
        fresh = [each for each in node.operands if each not in needed]
        waiting += fresh
        needed.update(fresh)
    return needed, cached


def count_pending(root: Expression) -> int:
    """Return how many operations ``root`` needs that have not been computed yet."""
    needed, cached = reach([root])
    return sum(isinstance(node, COMPUTED) for node in needed) - len(cached)


def operands_first(
    roots: Sequence[Expression], known: Container[Expression] = ()
) -> list[Expression]:
    """Return the nodes that ``roots`` need, each once, after its operands.

    The operand that needs more memory beyond its own value comes first, so that the peak is low.
    Operands of ``known`` nodes are left out.
    """
    needs: dict[Expression, int] = {}
    for node in _depth_first(roots, known, {}):
        held, most = 0, 0
        below = () if node in known else node.operands
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
        below = () if node in known else node.operands
        following = [each for each in reversed(below) if each not in order]
        if needs:
            following.sort(key=lambda x: needs[x] - _size(x))
        waiting += [(each, False) for each in following]
    return list(order)


def _size(node: Expression) -> int:
    """Return the bytes of temporary memory that a node's value takes."""
    return prod(node.shape) * node.itemsize if isinstance(node, Applied | Widened | Joined) else 0
