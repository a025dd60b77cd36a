"""The face of a pool: calls of ``Device`` on NumPy's arrays, cut into pieces and put together.

Checks what is given before anything is sent; every bit of every result comes from the devices.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arrays import Array
from ..arrays.elementwise import Axes, chosen_axes
from ..closeable import Closing
from ..device import Device
from ..driver.driver import expected_timeout
from ..errors import OtherDeviceError, SettingError
from ..search import Asked, as_rows
from ..signatures import Binary, Count, Unary, binary, count, unary
from ..streaming.operands import as_array, count_type, result_shape, use_output
from ..streaming.promotion import Casting, as_pair
from .split import part, pieces, split_axis

if TYPE_CHECKING:
    from .workers import Crew


_QUERIES: Final = 256
"""That a piece of a search has at most."""


def _one(op: Op) -> Unary:
    def call(pool: "Pool", a: ArrayLike, /, *, out: AnyArray | None = None) -> AnyArray:
        array = pool._operand("a", a)
        return pool._element_wise(op, (array,), array.dtype, out, {})

    return unary(_documented(call, op))


def _two(op: Op) -> Binary:
    def call(
        pool: "Pool",
        a: ArrayLike,
        b: ArrayLike,
        /,
        *,
        out: AnyArray | None = None,
        casting: Casting = "safe",
    ) -> AnyArray:
        first, second, dtype = as_pair(op, pool._given("a", a), pool._given("b", b), casting)
        return pool._element_wise(op, (first, second), dtype, out, {})

    return binary(_documented(call, op))


def _counts() -> Count:
    def call(
        pool: "Pool",
        a: ArrayLike,
        /,
        dtype: DTypeLike | None = None,
        *,
        out: AnyArray | None = None,
    ) -> AnyArray:
        chosen = count_type(dtype, out)
        operands = (pool._operand("a", a),)
        return pool._element_wise(Op.COUNT, operands, chosen, out, {"dtype": chosen})

    return count(_documented(call, Op.COUNT))


def _documented(call: Callable[..., AnyArray], op: Op) -> Callable[..., AnyArray]:
    """``call``, with the name of ``op`` in ``Device`` and what is said of it there."""
    call.__name__ = f"bit_{op.name.lower()}"
    call.__qualname__ = f"Pool.{call.__name__}"
    call.__doc__ = getattr(Device, call.__name__).__doc__
    return call


class Pool(Closing):
    """The devices ``urls`` as one: ``Pool(["sim", "sim", "serial:/dev/ttyUSB1"])``.

    Each is opened by a process of its own. Calls take and give what ``Device``'s do, of NumPy's
    arrays: they are cut along an axis into pieces of up to about 1 MiB, and each device takes the
    next piece when it is done with the last. ``timeout``: seconds that it may take over one.

    A device is lost if its process ends, its link fails or it takes too long: the others do what
    it was doing, and `lost` tells of it. Threads may share a pool. Leaving its ``with`` statement
    ends the processes.

    Raises ``SettingError``, ``LinkError`` if a device cannot be opened, and in calls what
    ``Device`` raises; ``LinkError`` says which devices were lost if none is left.
    """

    _crew: "Crew"

    def __init__(self, urls: Sequence[str], *, timeout: float = 600.0) -> None:
        if isinstance(urls, str) or not urls or not all(isinstance(url, str) for url in urls):
            raise SettingError(f"pool: {urls!r}; expected URLs of devices, like ['sim', 'sim']")
        seconds = expected_timeout(timeout)
        # What starts processes is slow to import.
        from .workers import Crew

        self._crew = Crew(urls, seconds)

    @property
    def closed(self) -> bool:
        """Whether the pool has been closed: it cannot be used again."""
        return self._crew.closed

    @property
    def devices(self) -> tuple[str, ...]:
        """The URLs of the devices that are there."""
        return tuple(member.url for member in self._crew.members)

    @property
    def lost(self) -> tuple[str, ...]:
        """A line for each device that was lost: which, and why."""
        return self._crew.lost

    @property
    def processes(self) -> tuple[int, ...]:
        """The number of each device's process."""
        return tuple(member.pid for member in self._crew.members)

    bit_not = _one(Op.NOT)
    bit_copy = _one(Op.COPY)
    bit_and = _two(Op.AND)
    bit_or = _two(Op.OR)
    bit_xor = _two(Op.XOR)
    bit_nand = _two(Op.NAND)
    bit_nor = _two(Op.NOR)
    bit_xnor = _two(Op.XNOR)
    bit_shift_left = _two(Op.SHIFT_LEFT)
    bit_shift_right = _two(Op.SHIFT_RIGHT)
    bit_count = _counts()

    def cardinality(
        self,
        a: ArrayLike,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> AnyArray:
        """See ``Device.cardinality``."""
        operands = (self._operand("a", a),)
        return self._along("cardinality", operands, axis, {"dtype": dtype, "keepdims": keepdims})

    def hamming(
        self,
        a: ArrayLike,
        b: ArrayLike,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> AnyArray:
        """See ``Device.hamming``."""
        operands = self._pair(a, b)
        return self._along("hamming", operands, axis, {"dtype": dtype, "keepdims": keepdims})

    def jaccard(
        self, a: ArrayLike, b: ArrayLike, axis: Axes = -1, *, keepdims: bool = False
    ) -> NDArray[np.float64]:
        """See ``Device.jaccard``."""
        return self._along("jaccard", self._pair(a, b), axis, {"keepdims": keepdims})

    def search(
        self,
        queries: ArrayLike,
        database: ArrayLike,
        k: int | None = None,
        *,
        radius: float | None = None,
        metric: str = "hamming",
    ) -> tuple[AnyArray, ...]:
        """See ``Device.search``: each device searches pieces of ``database``."""
        asked = Asked(self._given("queries", queries), k, radius, metric)
        rows = as_rows("database", self._given("database", database))
        axis = split_axis(rows.shape, (0,))
        cuts = [slice(0, len(rows))] if axis is None else self._pieces(rows.shape, axis, 1)
        corners = [
            (query, cut) for query in range(0, max(1, len(asked.queries)), _QUERIES) for cut in cuts
        ]
        found = self._crew.run(
            [
                (
                    "search",
                    (asked.queries[query : query + _QUERIES], np.asarray(rows[cut])),
                    asked.keywords,
                )
                for query, cut in corners
            ]
        )
        return asked.joined(
            (query, cut.start, answer) for (query, cut), answer in zip(corners, found, strict=True)
        )

    def _given(self, name: str, x: ArrayLike) -> ArrayLike:
        if isinstance(x, Array):
            raise OtherDeviceError(
                f"{name}: an array on a device; expected one of NumPy's ({name}.get() gives it)"
            )
        return x

    def _operand(self, name: str, x: ArrayLike) -> AnyArray:
        return as_array(name, self._given(name, x))

    def _pair(self, a: ArrayLike, b: ArrayLike) -> tuple[AnyArray, AnyArray]:
        return as_pair(Op.XOR, self._given("a", a), self._given("b", b), "safe")[:2]

    def _element_wise(
        self,
        op: Op,
        operands: tuple[AnyArray, ...],
        dtype: np.dtype[Any],
        out: AnyArray | None,
        keywords: dict[str, Any],
    ) -> AnyArray:
        shape = result_shape(operands[0], operands[-1])
        output = None if out is None else use_output(out, shape, dtype.newbyteorder("="))
        axis = split_axis(shape, range(len(shape)))
        name = f"bit_{op.name.lower()}"
        if axis is None:
            (result,) = self._crew.run([(name, operands, keywords)])
            if output is None:
                return np.asarray(result)
            output[...] = result
            return output
        cuts = self._pieces(shape, axis, operands[0].itemsize)
        parts = self._crew.run(_calls(name, operands, (len(shape), axis), cuts, keywords))
        # An output may overlap operands: it is written when all are read.
        return np.concatenate(parts, axis, out=output)

    def _along(
        self, name: str, operands: tuple[AnyArray, ...], axes: Axes, keywords: dict[str, Any]
    ) -> AnyArray:
        shape = result_shape(operands[0], operands[-1])
        rank = len(shape)
        chosen = chosen_axes(axes, rank)
        axis = split_axis(shape, [each for each in range(rank) if each not in chosen])
        keywords = keywords | {"axis": chosen}
        if axis is None:
            (whole,) = self._crew.run([(name, operands, keywords)])
            return np.asarray(whole)
        cuts = self._pieces(shape, axis, operands[0].itemsize)
        parts = self._crew.run(_calls(name, operands, (rank, axis), cuts, keywords))
        gone = 0 if keywords["keepdims"] else sum(each < axis for each in chosen)
        return np.concatenate(parts, axis - gone)

    def _pieces(self, shape: tuple[int, ...], axis: int, itemsize: int) -> list[slice]:
        return pieces(shape, axis, itemsize, max(1, len(self._crew.members)))

    def close(self) -> None:
        """Finish the calls that are under way, and end the processes. May be called again."""
        self._crew.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else f", {len(self.lost)} lost" if self.lost else ""
        return f"<bitlane.Pool: {', '.join(self.devices)}{state}>"


def _calls(
    name: str,
    operands: Sequence[AnyArray],
    place: tuple[int, int],
    cuts: Sequence[slice],
    keywords: dict[str, Any],
) -> list[tuple[str, tuple[AnyArray, ...], dict[str, Any]]]:
    """A call of ``name`` for each of ``cuts``; ``place``: rank and axis of what is cut."""
    return [(name, tuple(part(x, *place, cut) for x in operands), keywords) for cut in cuts]
