"""bitlane's functions on the blocks of Dask's arrays: elements, distances, searches."""

# Dask's parameters have the types of their defaults, as far as pyright sees.
# pyright: reportArgumentType=false, reportIndexIssue=false

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, DTypeLike

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..api import Chunked, Output, call_of, default_device, expect_on_host
from ..arguments.axes import Axes
from ..arguments.operands import as_array, result_shape
from ..errors import NotOfferedError, ShapeError
from ..search import SearchRequest, Selection, as_rows
from ..search.blocks import Numbers


class Blocks(Chunked[da.Array]):
    """The operators on the blocks of Dask's arrays, each on the device of its process."""

    def _operand(self, name: str, x: Any) -> da.Array:
        expect_on_host(name, x, "Dask's or NumPy's")
        if not isinstance(x, da.Array):
            return da.asarray(as_array(name, x))
        as_array(name, np.empty(0, x.dtype))
        return x

    def _element_wise(
        self, op: Op, operands: Sequence[da.Array], dtype: np.dtype[Any], out: Output | None
    ) -> Any:
        if out is not None:
            raise NotOfferedError("out: not offered for Dask's arrays; the result is a new one")
        _broadcast_shape(operands)
        name, keywords = call_of(op, dtype)
        return _on_blocks(name, operands, dtype, partial(_on_device, name, keywords))

    def _rows(self, operands: Sequence[da.Array]) -> tuple[Sequence[da.Array], tuple[int, ...]]:
        for name, x in zip("ab", operands, strict=False):
            _expect_known(name, x)
        shape = _broadcast_shape(operands)
        return da.broadcast_arrays(*operands), shape

    def _along(
        self,
        name: str,
        operands: Sequence[da.Array],
        dtype: np.dtype[Any],
        keywords: dict[str, Any],
    ) -> Any:
        axes = keywords["axis"]
        whole = [x.rechunk(dict.fromkeys(axes, -1)) for x in operands]
        compute = partial(_on_device, name, keywords | {"keepdims": True})
        sums = _on_blocks(name, whole, dtype, compute, axes)
        if keywords["keepdims"]:
            return sums
        return sums[tuple(0 if axis in axes else slice(None) for axis in range(sums.ndim))]

    def where(
        self,
        condition: Any,
        a: Any,
        b: Any,
    ) -> da.Array:
        """Choose the elements of ``a`` where ``condition`` is not 0, else those of ``b``.

        ``where(mask, a, b)`` is what ``np.copyto(b, a, where=mask)`` stores, as a new array. Raises
        as the operators do.
        """
        chosen = self._operand("condition", condition)
        (x, y), dtype = self._pair(Op.XOR, a, b, "safe")
        _broadcast_shape([chosen, x])
        _broadcast_shape([chosen, y])
        return _on_blocks("where", (chosen, x, y), dtype, _choose)

    def cardinality(
        self,
        a: Any,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        where: Any = True,
    ) -> Any:
        """See ``Device.cardinality``. Elements where ``where`` is 0 count as 0."""
        some = self._only("a", a, where)
        return super().cardinality(some, axis, dtype=dtype, keepdims=keepdims)

    def hamming(
        self,
        a: Any,
        b: Any,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        where: Any = True,
    ) -> Any:
        """See ``Device.hamming``. Elements where ``where`` is 0 do not differ."""
        if where is not True:
            differences = self._only("a ^ b", self.bit_xor(a, b), where)
            return super().cardinality(differences, axis, dtype=dtype, keepdims=keepdims)
        return super().hamming(a, b, axis, dtype=dtype, keepdims=keepdims)

    def jaccard(
        self,
        a: Any,
        b: Any,
        axis: Axes = -1,
        *,
        keepdims: bool = False,
        where: Any = True,
    ) -> Any:
        """See ``Device.jaccard``. Elements where ``where`` is 0 count as 0."""
        if where is not True:
            a, b = self._rows(self._pair(Op.AND, a, b, "safe")[0])[0]
            a, b = self._only("a", a, where), self._only("b", b, where)
        return super().jaccard(a, b, axis, keepdims=keepdims)

    def _only(self, name: str, x: Any, where: Any) -> da.Array:
        """Return ``x`` with all bits 0 where ``where`` is 0; True leaves none out.

        Raises ``ShapeError`` unless ``where`` broadcasts to the shape of ``x``.
        """
        array = self._operand(name, x)
        if where is True:
            return array
        chosen = self._operand("where", where)
        for each, given in ((name, array), ("where", chosen)):
            _expect_known(each, given)
        try:
            fits = _broadcast_shape([chosen, array]) == array.shape
        except ShapeError:
            fits = False
        if not fits:
            raise ShapeError(
                f"where: shape {chosen.shape}; expected one that broadcasts to {array.shape}"
            )
        return self.where(chosen, array, np.zeros((), array.dtype))

    def search(
        self,
        queries: ArrayLike,
        database: Any,
        k: int | None = None,
        *,
        radius: float | None = None,
        metric: str = "hamming",
        ids: ArrayLike | None = None,
        select: Selection | None = None,
    ) -> tuple[da.Array, ...]:
        """Search each chunk of the rows of ``database``; join what ``Device.search`` finds in them.

        ``queries`` are sent to every chunk; ``ids`` and ``select`` are arrays of NumPy's or
        selectors. Chunks without a row that counts are not computed. Raises as ``Device.search``
        does.
        """
        request = SearchRequest(queries, k, radius, metric)
        rows = self._operand("database", database)
        _expect_known("database", rows)
        as_rows("database", np.empty((0,) * rows.ndim, rows.dtype))
        if rows.shape[1] != request.queries.shape[1]:
            raise ShapeError(
                f"queries: shape {request.queries.shape}; expected (n, {rows.shape[1]}): rows of"
                f" {8 * rows.shape[1]} bits"
            )
        request.expect_rows(rows.shape[0], ids, select)
        rows = rows.rechunk({1: -1})
        shared = delayed(request.queries)
        parts = _chosen(rows.chunks[0], request.chosen)
        answers = [
            _search(shared, first, block, some, request.keywords(count))
            for (first, count, some), block in zip(parts, rows.to_delayed().ravel(), strict=True)
            if count
        ]
        joined = _join(request, answers)
        return tuple(
            da.from_delayed(joined[number], shape, dtype)
            for number, (shape, dtype) in enumerate(zip(request.shapes, request.types, strict=True))
        )

    def __repr__(self) -> str:
        return "bitlane.dask"


def _expect_known(name: str, x: da.Array) -> None:
    """Raise ``ShapeError`` if the size of a chunk is unknown."""
    if np.isnan(x.shape).any():
        raise ShapeError(f"{name}: shape {x.shape}; expected known sizes of chunks")


def _broadcast_shape(operands: Sequence[da.Array]) -> tuple[int, ...]:
    """Return the shape of the result, with 1 for unknown sizes. Raises ``ShapeError``."""
    shapes = [tuple(1 if np.isnan(n) else int(n) for n in x.shape) for x in operands]
    first, last = (np.broadcast_to(np.uint8(0), shapes[number]) for number in (0, -1))
    return result_shape(first, last)


def _on_device(name: str, keywords: dict[str, Any], *operands: AnyArray) -> AnyArray:
    """Call the method ``name`` of the device of this process; open the device if need be."""
    return np.asarray(getattr(default_device(), name)(*operands, **keywords))


def _choose(condition: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
    """Return ``np.where`` of its operands, on the device of this process."""
    chosen: Any = np.where(*map(default_device().asarray, (condition, a, b)))
    return np.asarray(chosen)


def _on_blocks(
    name: str,
    operands: Sequence[da.Array],
    dtype: np.dtype[Any],
    compute: Callable[..., AnyArray],
    single: Collection[int] = (),
) -> da.Array:
    """Return an array of ``dtype`` whose blocks are results of ``compute``.

    ``name``: what Dask calls the blocks. ``single``: axes of which each block of the result has one
    element. Blocks broadcast as arrays do, and blocks that do not match are cut until they do.
    """
    rank = max(x.ndim for x in operands)
    indexed: list[object] = []
    for x in operands:
        indexed += [x, tuple(range(rank - x.ndim, rank))]
    return da.blockwise(
        compute,
        tuple(range(rank)),
        *indexed,
        token=f"bitlane-{name}",
        dtype=dtype,
        adjust_chunks={axis: lambda size: 1 for axis in single},
        # Without it Dask would try the method on nothing, here.
        meta=np.empty((0,) * rank, dtype),
    )


def _chosen(
    sizes: Sequence[int], chosen: Numbers | None
) -> Iterator[tuple[int, int, Numbers | slice]]:
    """Yield the rows to search in each block: the first one, their number, and their places there.

    The first one counts ``chosen`` rows, or all if ``chosen`` is None.
    """
    for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        if chosen is None:
            yield start, size, slice(None)
        else:
            low, high = np.searchsorted(chosen, [start, start + size]).tolist()
            yield low, high - low, chosen[low:high] - start


@delayed
def _search(
    queries: AnyArray,
    first: int,
    block: AnyArray,
    some: Numbers | slice,
    keywords: dict[str, Any],
) -> tuple[int, int, tuple[AnyArray, ...]]:
    """Search ``some`` rows of ``block`` on the device of this process; ``first`` is the first."""
    return 0, first, default_device().search(queries, block[some], **keywords)


@delayed
def _join(
    request: SearchRequest, answers: list[tuple[int, int, tuple[AnyArray, ...]]]
) -> tuple[AnyArray, ...]:
    return request.join(answers)
