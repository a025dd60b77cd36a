"""`Device`: the operators on NumPy's arrays of any layout, and arrays on the device.

The device does every bit operation; the host adds up only few sums, never elements.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.operands import (
    as_array,
    count_type,
    new_order,
    result_shape,
    use_output,
)
from ..arguments.promotion import NEGATED, TRUE, Casting, as_pair
from ..arguments.reductions import Reduction
from ..arrays import Array, asarray, from_dlpack
from ..arrays.array import dispatch_encodings
from ..arrays.distances import count_ones, count_shared
from ..closeable import Closeable
from ..driver import Driver
from ..errors import LinkError
from ..links import open_link
from ..search import SearchRequest, Selection, search_once
from ..streaming import Target, compute, jaccard_index, sum_rows
from .catalogue import BitOperators, Output, Result


class Device(BitOperators, Closeable):
    """DirectML's bit operators on NumPy arrays, executed by the device behind ``driver``.

    Operands may have any strides, any rank and either byte order, and broadcast as NumPy's do.
    Their data types are truth values and the eleven of DirectML: integers of 8 to 64 bits, floats
    of 16 to 64, of which only the native encoding counts. Integers of two types are promoted as
    NumPy does, and converted on their way to the device; with ``casting`` "no" they are refused. A
    Python integer takes the type of the other operand, if it fits.

    An operand that is an ``Array`` stays on the device, and the result is an ``Array`` too, which
    is computed when it is needed.

    Results are arrays, also of rank 0, of the native byte order. With ``out``, an array of exactly
    the result's shape and type, they are stored there and ``out`` is returned. It may overlap the
    operands: the result is as if they had been copied first.

    Tensors that exceed the device's memory are processed in tiles: one is computed while the next
    is sent and the result of the last one is read. The host holds no more of them than that: with
    ``np.memmap`` in and out they may exceed its memory too. An operand is copied only if it
    overlaps ``out`` with another layout.

    All methods raise ``DataTypeError``, ``ShapeError`` or ``OutOfRangeError`` for arguments that
    do not fit; ``UnsupportedError`` for operations that the circuit lacks; ``DeviceFault``,
    ``DeviceTimeout`` or ``LinkError`` when the device fails, and ``out`` is then undefined.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    @property
    def closed(self) -> bool:
        """Whether the device has been closed; `bitlane.open` opens it anew."""
        return self.driver.closed

    @property
    def description(self) -> str:
        """The device and its connection, for people."""
        return self.driver.link.description

    @property
    def timeout(self) -> float:
        """Deadline of a command in seconds, above 0. Setting it may raise ``SettingError``."""
        return self.driver.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self.driver.timeout = seconds

    def search(
        self,
        queries: ArrayLike,
        database: ArrayLike,
        k: int | None = None,
        *,
        radius: float | None = None,
        metric: str = "hamming",
        ids: ArrayLike | None = None,
        select: Selection | None = None,
    ) -> tuple[AnyArray, ...]:
        """Find the rows of ``database`` that are nearest to ``queries``: distances and ids.

        Both are uint8 of shape (n, bytes). With ``k`` the result is that of `BinaryIndex.search`,
        with ``radius`` alone that of `BinaryIndex.range_search`. ``ids``: integers, one for each
        row, as of `BinaryIndex.add_with_ids`; else an id is the number of a row. ``select``: the
        rows that count, as in `BinaryIndex.search`; others are not sent to the device. A database
        for many searches belongs in a ``BinaryIndex``.
        """
        request = SearchRequest(queries, k, radius, metric)
        return search_once(self, request, database, ids, select)

    def _unary(self, op: Op, a: ArrayLike, out: Output | None) -> Result:
        if isinstance(a, Array) or isinstance(out, Array):
            return dispatch_encodings(self, op, a, out=out)
        first = as_array("a", a)
        if op is Op.NOT and first.dtype.kind == "b":
            return self._run(Op.XOR, first, TRUE, first.dtype, out)
        return self._run(op, first, None, first.dtype, out)

    def _binary(
        self, op: Op, a: ArrayLike, b: ArrayLike, out: Output | None, casting: Casting
    ) -> Result:
        if isinstance(a, Array) or isinstance(b, Array) or isinstance(out, Array):
            return dispatch_encodings(self, op, a, b, out=out, casting=casting)
        first, second, dtype = as_pair(op, a, b, casting)
        if op in NEGATED and dtype.kind == "b":
            positive = self._run(NEGATED[op], first, second, dtype, None)
            return self._run(Op.XOR, positive, TRUE, dtype, out)
        arithmetic = op is Op.SHIFT_RIGHT and dtype.kind == "i"
        return self._run(op, first, second, dtype, out, arithmetic=arithmetic)

    def _count(self, op: Op, a: ArrayLike, dtype: DTypeLike | None, out: Output | None) -> Result:
        if isinstance(a, Array) or isinstance(out, Array):
            return dispatch_encodings(self, op, a, out=out, dtype=dtype)
        return self._run(op, as_array("a", a), None, count_type(dtype, out), out)

    def _row_sums(self, op: Op, operands: tuple[ArrayLike, ...], reduction: Reduction) -> Result:
        self.expect_open()
        if any(isinstance(x, Array) for x in operands):
            return count_ones(self, op, operands, reduction)
        return sum_rows(self.driver, op, operands, reduction)

    def _jaccard(self, a: ArrayLike, b: ArrayLike, reduction: Reduction) -> NDArray[np.float64]:
        self.expect_open()
        if isinstance(a, Array) or isinstance(b, Array):
            return jaccard_index(*count_shared(self, a, b, reduction))
        wide = replace(reduction, dtype=np.uint64)
        counts = (sum_rows(self.driver, op, (a, b), wide) for op in (Op.AND, Op.OR))
        return jaccard_index(*counts)

    def _run(
        self,
        op: Op,
        a: AnyArray,
        b: AnyArray | None,
        dtype: np.dtype[Any],
        out: Output | None,
        *,
        arithmetic: bool = False,
    ) -> AnyArray:
        self.expect_open()
        shape = result_shape(a, b)
        dtype = dtype.newbyteorder("=")
        output = None if out is None else use_output(out, shape, dtype)
        order = new_order(shape, a if output is None else output, b)
        if 0 in shape:
            return np.empty(shape, dtype) if output is None else output
        inputs = [
            x if x.shape == shape else np.broadcast_to(x, shape) for x in (a, b) if x is not None
        ]
        target = Target(shape, dtype, order, output)
        return compute(self.driver, op, inputs, target, arithmetic=arithmetic)

    def asarray(
        self, x: ArrayLike, dtype: DTypeLike | None = None, *, copy: bool | None = None
    ) -> Array:
        """Copy ``x`` to an array on this device, which is freed with its last reference.

        ``dtype``: integers or truth values, to which the host converts ``x``; ``copy``: as for
        ``np.asarray``. An array that is on this device already is returned as it is. Raises
        ``DataTypeError``, ``CopyError``, ``OutOfDeviceMemory`` or ``LinkError``.
        """
        return asarray(self, x, dtype, copy=copy)

    def from_dlpack(self, x: object, *, copy: bool | None = None) -> Array:
        """Copy an array of another library, which has ``__dlpack__``, to this device.

        The other array must be in this computer's memory; an ``Array`` on this device is returned
        as it is. Raises as `asarray` does.
        """
        return from_dlpack(self, x, copy=copy)

    def close(self) -> None:
        """Close the link to the device. May be called again."""
        self.driver.close()

    def __enter__(self) -> Self:
        self.expect_open()
        return self

    def __repr__(self) -> str:
        return f"<bitlane.Device: {self.description}{', closed' if self.closed else ''}>"

    def expect_open(self) -> None:
        """Raise ``LinkError`` if the device has been closed."""
        if self.closed:
            raise LinkError(f"{self.description}: the device is closed; bitlane.open opens it anew")


def open_driver(url: str) -> Driver:
    """Open the device that ``url`` names. Raises as `open_device` does."""
    if not isinstance(url, str):
        raise LinkError(f"device: {url!r}; expected a URL as text, like 'sim'")
    link = open_link(url)
    try:
        return Driver(link)
    except BaseException:
        link.close()
        raise


def open_device(url: str) -> Device:
    """Open the device that ``url`` names: ``sim``, ``sim:pysim``, ``serial:/dev/ttyUSB1``.

    Raises ``LinkError`` if it cannot be opened or is not a bitlane device of this version.
    """
    return Device(open_driver(url))


# Messages of Python's and `help` show the name that users call.
open_device.__name__ = open_device.__qualname__ = "open"
open_device.__module__ = "bitlane"
