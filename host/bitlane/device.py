"""A device for people with NumPy arrays: the seven operators, on arrays of any layout.

Every bit of every result comes from the device: nothing here computes on data.
"""

from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitlane_rtl.abi import Op

from .arrays import Array, asarray, from_dlpack
from .arrays.array import apply
from .arrays.distances import Reduction, count_ones, jaccard
from .arrays.elementwise import Axes
from .closeable import Closing
from .driver.driver import Driver
from .errors import LinkError
from .links.link import open_link
from .lowering.strided import order_of
from .search import search_once
from .signatures import binary, count, unary
from .streaming.eager import Target, compute
from .streaming.operands import (
    AnyArray,
    as_array,
    count_type,
    new_order,
    result_shape,
    use_output,
)
from .streaming.promotion import NEGATED, TRUE, Casting, as_pair

Out: TypeAlias = AnyArray | Array

Result: TypeAlias = AnyArray | Any
"""An ``Array`` if an operand is one, else an array of NumPy's: checkers of types let both pass."""


class Device(Closing):
    """DirectML's bit operators on NumPy arrays, executed by the device behind ``driver``.

    Operands may have any strides, any rank and either byte order, and broadcast as NumPy's do.
    Their data types are truth values and the eleven of DirectML: integers of 8 to 64 bits, floats
    of 16 to 64, of which only the native encoding counts. Integers of two types meet in the type
    in which NumPy has them meet, and are converted on their way to the device; with ``casting``
    "no" they are refused. A Python integer takes the type of the other operand, if it fits.

    An operand that is an ``Array`` stays where it is, and so does the result: an ``Array``, too,
    which is computed when it is needed.

    Results are arrays, also of rank 0, of the native byte order. With ``out``, an array of the
    result's very shape and type, they are stored there and ``out`` is returned. It may overlap the
    operands: the result is as if they had been copied first.

    Tensors that exceed the device's memory are processed in pieces, one computed while the next
    is sent and the last one's result comes back. The host holds no more of them than that: with
    ``np.memmap`` in and out they may exceed its memory too. Only an operand that overlaps ``out``
    and lies unlike it in memory is copied.

    All methods raise ``DataTypeError``, ``ShapeError`` or ``OutOfRangeError`` for arguments that
    do not fit; ``UnsupportedError`` for what the circuit was built without; ``DeviceFault``,
    ``DeviceTimeout`` or ``LinkError`` when the device fails, and ``out`` is then undefined.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    @property
    def closed(self) -> bool:
        """Whether the device has been closed: it can be opened anew, but not used again."""
        return self.driver.closed

    @property
    def description(self) -> str:
        """What the device is and how it is reached."""
        return self.driver.link.description

    @property
    def timeout(self) -> float:
        """Seconds that the device may take over a command, above 0. Raises ``SettingError``."""
        return self.driver.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self.driver.timeout = seconds

    @unary
    def bit_not(self, a: ArrayLike, /, *, out: Out | None = None) -> Result:
        """Every bit of ``a`` inverted; the truth of truth values."""
        return self._one(Op.NOT, a, out)

    @unary
    def bit_copy(self, a: ArrayLike, /, *, out: Out | None = None) -> Result:
        """The bits of ``a``."""
        return self._one(Op.COPY, a, out)

    @binary
    def bit_and(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """The bits that are 1 in ``a`` and ``b``."""
        return self._two(Op.AND, a, b, out, casting)

    @binary
    def bit_or(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """The bits that are 1 in ``a`` or ``b``."""
        return self._two(Op.OR, a, b, out, casting)

    @binary
    def bit_xor(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """The bits in which ``a`` and ``b`` differ."""
        return self._two(Op.XOR, a, b, out, casting)

    @binary
    def bit_nand(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """The bits that are 0 in ``a`` or ``b``."""
        return self._two(Op.NAND, a, b, out, casting)

    @binary
    def bit_nor(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """The bits that are 0 in ``a`` and ``b``."""
        return self._two(Op.NOR, a, b, out, casting)

    @binary
    def bit_xnor(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """The bits in which ``a`` and ``b`` are alike."""
        return self._two(Op.XNOR, a, b, out, casting)

    @binary
    def bit_shift_left(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """Integers ``a`` shifted left by ``b``, element by element.

        Counts below 0, or of the width or more, give 0 as NumPy's do (``bitlane.dml`` takes them
        modulo the width, as DirectML does).
        """
        return self._two(Op.SHIFT_LEFT, a, b, out, casting)

    @binary
    def bit_shift_right(
        self, a: ArrayLike, b: ArrayLike, /, *, out: Out | None = None, casting: Casting = "safe"
    ) -> Result:
        """Integers ``a`` shifted right by ``b``: logically if unsigned, else with their sign.

        Counts below 0, or of the width or more, give 0, or -1 for a negative ``a``, as NumPy's do
        (``bitlane.dml`` takes them modulo the width and shifts logically, as DirectML does).
        """
        return self._two(Op.SHIFT_RIGHT, a, b, out, casting)

    @count
    def bit_count(
        self,
        a: ArrayLike,
        /,
        dtype: DTypeLike | None = None,
        *,
        out: Out | None = None,
    ) -> Result:
        """How many bits of each element's encoding are 1, as ``dtype``: uint8 or uint32.

        The default is the type of ``out``, else uint8. Unlike ``np.bitwise_count``, which counts
        the absolute value, -1 has as many as its type has bits.
        """
        if isinstance(a, Array) or isinstance(out, Array):
            return apply(self, Op.COUNT, a, out=out, dtype=dtype)
        first = as_array("a", a)
        return self._run(Op.COUNT, first, None, count_type(dtype, out), out)

    def cardinality(
        self,
        a: ArrayLike,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> Result:
        """How many bits of ``a`` are 1 along ``axis``, one or several; of all for None.

        As uint32, or as ``dtype``, an integer type that holds the bits of a row; for another,
        ``OutOfRangeError``. ``keepdims``: the axes stay, with one element. Rows longer than the
        circuit adds up at once are cut, and the host adds up the sums of the parts; those of an
        ``Array`` are refused.
        """
        return count_ones(self, Op.COPY, (a,), Reduction(axis, dtype, keepdims))

    def hamming(
        self,
        a: ArrayLike,
        b: ArrayLike,
        axis: Axes = -1,
        *,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> Result:
        """In how many bits ``a`` and ``b`` differ along ``axis``; see `cardinality`.

        Of bits, and not divided by their number, unlike SciPy's function of that name.
        """
        return count_ones(self, Op.XOR, (a, b), Reduction(axis, dtype, keepdims))

    def jaccard(
        self, a: ArrayLike, b: ArrayLike, axis: Axes = -1, *, keepdims: bool = False
    ) -> NDArray[np.float64]:
        """The bits that ``a`` and ``b`` share, by those that either has, along ``axis``.

        Jaccard's index, 0 to 1: the Tanimoto similarity of chemists, and 0 where neither has a
        bit, as in RDKit. The Jaccard distance is 1 minus it.
        """
        return jaccard(self, a, b, Reduction(axis, keepdims=keepdims))

    def search(
        self,
        queries: ArrayLike,
        database: ArrayLike,
        k: int | None = None,
        *,
        radius: float | None = None,
        metric: str = "hamming",
    ) -> tuple[AnyArray, ...]:
        """The rows of ``database`` that are nearest to ``queries``: distances and indices.

        Both are uint8 of shape (n, bytes). With ``k`` the result is that of `BinaryIndex.search`,
        with ``radius`` alone that of `BinaryIndex.range_search`. A database for many searches
        belongs in a ``BinaryIndex``.
        """
        return search_once(self, queries, database, k, radius, metric)

    def _one(self, op: Op, a: ArrayLike, out: Out | None) -> Result:
        if isinstance(a, Array) or isinstance(out, Array):
            return apply(self, op, a, out=out)
        first = as_array("a", a)
        if op is Op.NOT and first.dtype.kind == "b":
            return self._run(Op.XOR, first, TRUE, first.dtype, out)
        return self._run(op, first, None, first.dtype, out)

    def _two(self, op: Op, a: ArrayLike, b: ArrayLike, out: Out | None, casting: Casting) -> Result:
        if isinstance(a, Array) or isinstance(b, Array) or isinstance(out, Array):
            return apply(self, op, a, b, out=out, casting=casting)
        first, second, dtype = as_pair(op, a, b, casting)
        if op in NEGATED and dtype.kind == "b":
            plain = self._run(NEGATED[op], first, second, dtype, None)
            return self._run(Op.XOR, plain, TRUE, dtype, out)
        arithmetic = op is Op.SHIFT_RIGHT and dtype.kind == "i"
        return self._run(op, first, second, dtype, out, arithmetic=arithmetic)

    def _run(
        self,
        op: Op,
        a: AnyArray,
        b: AnyArray | None,
        dtype: np.dtype[Any],
        out: Out | None,
        *,
        arithmetic: bool = False,
    ) -> AnyArray:
        self.expect_open()
        shape = result_shape(a, b)
        dtype = dtype.newbyteorder("=")
        output = None if out is None else use_output(out, shape, dtype)
        order = new_order(shape, a, b) if output is None else order_of(output.strides)
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
        """``x`` as an array that stays on this device: sent once, freed with its last reference.

        ``dtype``: integers or truth values to be converted to, on the way up; ``copy``: as for
        ``np.asarray``. An array that is on this device already comes back as it is. Raises
        ``DataTypeError``, ``CopyError``, ``OutOfDeviceMemory`` or ``LinkError``.
        """
        return asarray(self, x, dtype, copy=copy)

    def from_dlpack(self, x: object, *, copy: bool | None = None) -> Array:
        """A copy on this device of what has ``__dlpack__``, in this computer's memory.

        An array that is on this device already comes back as it is. Raises as `asarray` does.
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
        """Raises ``LinkError`` if the device has been closed."""
        if self.closed:
            raise LinkError(f"{self.description}: the device is closed; bitlane.open opens it anew")


def open_device(url: str) -> Device:
    """The device that ``url`` names: ``sim``, ``sim:pysim``, ``serial:/dev/ttyUSB1``.

    Raises ``LinkError`` if it cannot be opened or is no bitlane device of this version.
    """
    if not isinstance(url, str):
        raise LinkError(f"device: {url!r}; expected a URL as text, like 'sim'")
    link = open_link(url)
    try:
        return Device(Driver(link))
    except BaseException:
        link.close()
        raise


# Messages of Python's and `help` show the name that users call.
open_device.__name__ = open_device.__qualname__ = "open"
open_device.__module__ = "bitlane"
