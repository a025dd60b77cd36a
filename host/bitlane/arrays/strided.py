"""Shapes and strides of arrays in memory, and the views that indices and other shapes make.

Arithmetic on descriptions alone: no memory, no device, no data types but their size.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from operator import index as as_index
from types import EllipsisType
from typing import Any, Self

from ..arguments.axes import as_list, normalize_axes
from ..arguments.operands import plain_index, shown
from ..errors import ArrayIndexError, DataTypeError, ShapeError
from ..lowering import packed_strides, span


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements of ``itemsize`` bytes, ``strides`` apart; element 0 at ``offset``. All in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    offset: int = 0

    @classmethod
    def packed(cls, shape: tuple[int, ...], itemsize: int) -> Self:
        """Return a description of elements without gaps, in C's order."""
        return cls(shape, packed_strides(shape, itemsize=itemsize), itemsize)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements; a repeated element counts each time."""
        return self.size * self.itemsize

    @property
    def span(self) -> range:
        """The range from the first byte of the elements to the last."""
        if not self.size:
            return range(self.offset, self.offset)
        return span(self.shape, self.strides, self.itemsize, self.offset)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in C's order without gaps."""
        step = self.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1 and stride != step:
                return self.size == 0
            step *= n
        return True

    @property
    def repeats(self) -> bool:
        """Whether an axis shows the same elements several times, as `broadcast` makes it do."""
        return any(n > 1 and not stride for n, stride in zip(self.shape, self.strides, strict=True))

    def index(self, key: Any) -> "Strided":
        """Return the view that integers, slices, ``...`` and ``None`` select.

        Raises ``ArrayIndexError``, or ``ShapeError`` for a step of 0.
        """
        parts = _expand_ellipsis(key if isinstance(key, tuple) else (key,), len(self.shape))
        shape, strides, offset, axis = [], [], self.offset, 0
        for part in parts:
            if part is None:
                shape.append(1)
                strides.append(0)
                continue
            n, stride = self.shape[axis], self.strides[axis]
            if isinstance(part, slice):
                try:
                    start, stop, step = part.indices(n)
                except ValueError:
                    raise ShapeError(f"index: {part} has a step of 0; expected another") from None
                except TypeError:
                    raise DataTypeError(f"index: {part}; expected integers or None in it") from None
                count = len(range(start, stop, step))
                shape.append(count)
                strides.append(stride * step)
                offset += start * stride if count else 0
            else:
                if not -n <= part < n:
                    raise ArrayIndexError(
                        f"index: {part} for axis {axis} of {n}; expected {-n} to {n - 1}"
                        if n
                        else f"index: {part} for axis {axis}, which has no elements"
                    )
                offset += part % n * stride
            axis += 1
        return replace(self, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def transpose(self, axes: Sequence[int] | None = None) -> "Strided":
        """Return the view with axes reversed, or in the order ``axes``. Raises ``ShapeError``."""
        rank = len(self.shape)
        order = tuple(reversed(range(rank))) if axes is None else normalize_axes(axes, rank)
        if len(order) != rank:
            raise ShapeError(f"axes: {order}; expected each of the {rank} axes once")
        return replace(
            self,
            shape=tuple(self.shape[axis] for axis in order),
            strides=tuple(self.strides[axis] for axis in order),
        )

    def broadcast(self, shape: tuple[int, ...]) -> "Strided":
        """Return the view repeated to ``shape`` by NumPy's rules. Raises ``ShapeError``."""
        extra = len(shape) - len(self.shape)
        if extra < 0 or any(
            n not in (1, m) for n, m in zip(self.shape, shape[max(0, extra) :], strict=False)
        ):
            raise ShapeError(f"shape: {self.shape} does not broadcast to {shape}")
        strides = [
            0 if n != m else stride
            for n, m, stride in zip(self.shape, shape[extra:], self.strides, strict=True)
        ]
        return replace(self, shape=shape, strides=(0,) * extra + tuple(strides))

    def reshape(self, shape: tuple[int, ...]) -> "Strided | None":
        """Return the view of the elements, in C's order, as ``shape``; None if it takes a copy.

        ``shape`` has as many elements: see `infer_shape`.
        """
        if not self.size:
            return replace(self, shape=shape, strides=packed_strides(shape))
        old = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n > 1]
        strides: list[int] = []
        rest = list(shape)
        while rest:
            # The fewest axes on both sides with as many elements.
            new = [rest.pop(0)]
            taken = [old.pop(0)] if new[0] > 1 else []
            while prod(new) != prod(n for n, _ in taken):
                if prod(new) < prod(n for n, _ in taken):
                    new.append(rest.pop(0))
                else:
                    taken.append(old.pop(0))
            for (_, outer), (n, inner) in pairwise(taken):
                if outer != n * inner:
                    return None
            step = taken[-1][1] if taken else 0
            strides += (stride * step for stride in packed_strides(new))
        return replace(self, shape=shape, strides=tuple(strides))

    def infer_shape(self, shape: int | Sequence[int]) -> tuple[int, ...]:
        """Return ``shape`` with its -1 replaced by the length that fits. Raises ``ShapeError``."""
        try:
            wanted = [plain_index(n) for n in as_list(shape)]
        except TypeError:
            raise ShapeError(f"shape: {shown(shape)}; expected integers") from None
        known = prod(n for n in wanted if n != -1)
        if wanted.count(-1) == 1 and known and self.size % known == 0:
            wanted[wanted.index(-1)] = self.size // known
        if min(wanted, default=0) < 0 or prod(wanted) != self.size:
            raise ShapeError(f"shape: {shape}; {self.shape} has {self.size} elements")
        return tuple(wanted)

    def recast(self, itemsize: int) -> "Strided":
        """Return the view of the bytes as elements of another size along the last axis.

        Raises ``ShapeError``.
        """
        if itemsize == self.itemsize:
            return self
        gaps = self.size and self.shape[-1:] != (1,) and self.strides[-1:] != (self.itemsize,)
        if gaps or not self.shape:
            raise ShapeError(
                f"view: elements of {itemsize} bytes for {self.itemsize}; expected a last axis"
                " without gaps (copy() makes one)"
            )
        count, rest = divmod(self.shape[-1] * self.itemsize, itemsize)
        if rest:
            raise ShapeError(
                f"view: {self.shape[-1]} elements of {self.itemsize} bytes in the last axis do not"
                f" divide into elements of {itemsize}"
            )
        return Strided(
            (*self.shape[:-1], count), (*self.strides[:-1], itemsize), itemsize, self.offset
        )


def as_shape(shape: int | Sequence[int], name: str = "shape") -> tuple[int, ...]:
    """Return ``shape`` as integers that are not negative. Raises ``ShapeError``."""
    try:
        wanted = tuple(plain_index(n) for n in as_list(shape))
    except TypeError:
        raise ShapeError(f"{name}: {shown(shape)}; expected integers") from None
    if min(wanted, default=0) < 0:
        raise ShapeError(f"{name}: {wanted}; expected none below 0")
    return wanted


def is_integer(number: object) -> bool:
    """Return whether ``number`` is one integer, also of NumPy's or in an array without axes."""
    try:
        as_index(number)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _expand_ellipsis(parts: tuple[Any, ...], rank: int) -> list[int | slice | None]:
    """Return an index with one integer or slice per axis, and its None."""
    known = [parse_part(part) for part in parts]
    dots = known.count(...)
    if dots > 1:
        raise ArrayIndexError("index: more than one ...; expected one at most")
    given = sum(part is not None for part in known) - dots
    if given > rank:
        raise ArrayIndexError(f"index: {given} axes; the array has {rank}")
    whole: list[int | slice | None] = []
    for part in known if dots else (*known, ...):
        if isinstance(part, EllipsisType):
            whole += [slice(None)] * (rank - given)
        else:
            whole.append(part)
    return whole


def parse_part(part: Any) -> int | slice | EllipsisType | None:
    """Return one part of a basic index. Raises ``ArrayIndexError``."""
    if part is None or isinstance(part, slice | EllipsisType):
        return part
    if not isinstance(part, bool) and getattr(part, "ndim", 0) == 0:
        with suppress(TypeError):
            return as_index(part)
    raise ArrayIndexError(
        f"index: of type {type(part).__name__}; expected integers, slices, ..., None, and arrays"
        " of integers or truth values"
    )
