"""``bitlane.Array``: an array whose elements stay in the device's memory.

Operations on bits are computed by `elementwise`, comparisons and tests by `truth`, sums by `sums`.
"""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.axes import Axes
from ..arguments.operands import as_flag, as_integer, as_truth, count_type, shown
from ..arguments.promotion import Casting
from ..compiler import apply, broadcast
from ..errors import (
    ArrayIndexError,
    CopyError,
    DataTypeError,
    MissingError,
    NotOfferedError,
    ShapeError,
)
from ..lowering import broadcast_shapes
from . import namespace
from .base import ArrayBase, copy_in_order
from .elementwise import (
    as_dtype,
    as_value,
    cast,
    cast_on_host,
    copy_value,
    drop_extra_axes,
    elementwise,
    expect_within,
    to_device,
    without_extra_axes,
)
from .flat import Flat
from .indexing import is_advanced, select, selects_copy
from .masks import select_elements
from .numpy_protocols import (
    IDENTITY_OF_ONES,
    apply_function,
    apply_ufunc,
    expect_offered,
    offers,
    reduce_ufunc,
)
from .operands import (
    as_compared,
    as_mask,
    as_operand,
    as_operands,
    as_source,
    device_of,
    expect_output,
    expect_output_shape,
    is_no_number,
    masked,
    store_result,
    where_operand,
)
from .options import as_order, expect_castable, expect_default, index_flat, order_axes
from .selections import assign, gather
from .showing import format_html, format_text, summarize
from .strided import is_integer
from .sums import sum_elements
from .transfers import CPU, download, make_capsule, replace
from .truth import TRUTHS, all_true, any_true, find_truth, same_truth
from .value import DeviceLike, Value, expect_device, free, overwrite


def _operators(op: Op) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return the methods of an operator: forward, reflected and in place."""

    def forward(self: "Array", other: Any) -> Any:
        return dispatch_elementwise(op, self, other)

    def reflected(self: "Array", other: Any) -> Any:
        return dispatch_elementwise(op, other, self)

    def in_place(self: "Array", other: Any) -> Any:
        return dispatch_elementwise(op, self, other, out=self)

    return forward, reflected, in_place


def _refused(symbol: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *others: object) -> NoReturn:
        raise NotOfferedError(
            f"operator {symbol}: arrays on a device have ^ & | ~ << >> == != alone; np.asarray(x)"
            " brings the elements to the host for it"
        )

    return refuse


class Array(ArrayBase):
    """Elements on a device, which an operation on them leaves there. `Device.asarray` makes one.

    Shapes, types, views and operators are NumPy's, as far as they take no arithmetic. The result
    of an operator is *pending*: it is computed when it is needed, together with the pending arrays
    that it is made from; that is when it is read (``get``, ``np.asarray``), indexed or viewed, or
    when something is about to be written over its operands, or when more than 256 operations wait.
    An operator in place is computed at once, unless the array itself is still pending.

    The memory is freed with the last array that shows it. Threads may share an array while none
    writes to it: ``BusyError`` else.
    """

    __slots__ = ()

    # --- operators ------------------------------------------------------------------------------

    __xor__, __rxor__, __ixor__ = _operators(Op.XOR)
    __and__, __rand__, __iand__ = _operators(Op.AND)
    __or__, __ror__, __ior__ = _operators(Op.OR)
    __lshift__, __rlshift__, __ilshift__ = _operators(Op.SHIFT_LEFT)
    __rshift__, __rrshift__, __irshift__ = _operators(Op.SHIFT_RIGHT)

    def __invert__(self) -> "Array":
        result: Array = dispatch_elementwise(Op.NOT, self)
        return result

    def __pos__(self) -> "Array":
        result: Array = dispatch_elementwise(Op.COPY, self)
        return result

    # Arrays have no hash, as NumPy's have none.
    def __eq__(self, other: Any) -> "Array":  # type: ignore[override]
        if is_no_number(other):
            return Array(same_truth(self._value, False))
        result: Array = dispatch_predicate(np.equal, self, other)
        return result

    def __ne__(self, other: Any) -> "Array":  # type: ignore[override]
        if is_no_number(other):
            return Array(same_truth(self._value, True))
        result: Array = dispatch_predicate(np.not_equal, self, other)
        return result

    def __contains__(self, element: Any) -> bool:
        return bool((self == element).any())

    __lt__ = _refused("<")
    __le__ = _refused("<=")
    __gt__ = _refused(">")
    __ge__ = _refused(">=")
    __add__ = __radd__ = __iadd__ = _refused("+")
    __sub__ = __rsub__ = __isub__ = _refused("-")
    __mul__ = __rmul__ = __imul__ = _refused("*")
    __truediv__ = __rtruediv__ = __itruediv__ = _refused("/")
    __floordiv__ = __rfloordiv__ = __ifloordiv__ = _refused("//")
    __mod__ = __rmod__ = __imod__ = _refused("%")
    __divmod__ = __rdivmod__ = _refused("divmod")
    __pow__ = __rpow__ = __ipow__ = _refused("**")
    __matmul__ = __rmatmul__ = __imatmul__ = _refused("@")
    __neg__ = _refused("-")
    __abs__ = _refused("abs")

    def sum(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = 0,
        where: Any = True,
    ) -> Any:
        """The sums of integers or truth values along ``axis``, modulo the range of ``dtype``.

        ``dtype``: an integer type; by default that of ``out``, or uint64 for unsigned elements and
        int64 for others. ``where``: truth values that choose the elements. It is one pass over
        memory for each bit that may be 1 in an element, whose few sums the host adds up; of truth
        values, and of pending counts with the operations before them, one pass in all. Raises
        ``DataTypeError`` for floats, or ``ShapeError``.
        """
        expect_default("sum", "initial", initial, 0)
        if dtype is None and out is not None:
            dtype = expect_output(out).dtype
        value = masked(self._value, where, ones=False)
        return _reduced(sum_elements(value, axis, dtype, keep=as_flag("keepdims", keepdims)), out)

    def any(
        self, axis: Axes = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Whether any element along ``axis``, all for None, is not 0; two passes over memory.

        ``where``: truth values that choose the elements.
        """
        keep = as_flag("keepdims", keepdims)
        return _reduced(any_true(masked(self._value, where, ones=False), axis, keep=keep), out)

    def all(
        self, axis: Axes = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Whether all elements along ``axis``, all for None, are not 0; two passes over memory.

        ``where``: truth values that choose the elements.
        """
        keep = as_flag("keepdims", keepdims)
        return _reduced(all_true(masked(self._value, where, ones=True), axis, keep=keep), out)

    # --- elements -------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> "Array":
        if is_advanced(key):
            return Array(gather(self._value, select(self._value.strided, key)))
        view = self._view(self._value.strided.index(key))
        return view.copy() if selects_copy(key) else view

    @property
    def flat(self) -> Flat:
        """The elements in C's order: ``x.flat[key]`` copies some, ``x.flat[key] = y`` writes."""
        return Flat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        self.flat[...] = values

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len: an array without axes has no length; expected one axis or more")
        return self.shape[0]

    def __iter__(self) -> Iterator["Array"]:
        return (self[row] for row in range(len(self)))

    # --- copies and assignments -----------------------------------------------------------------

    def astype(
        self,
        dtype: DTypeLike,
        order: str = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> "Array":
        """Return the elements as another integer type or truth values, cast on the device.

        Without ``copy`` it may be the array itself, if that is in ``order``. ``subok`` changes
        nothing. Raises ``DataTypeError`` for types that ``casting`` does not allow, and for
        floats, except as truth values: whether each is not 0.
        """
        kind = as_dtype(dtype)
        as_flag("subok", subok)
        expect_castable("astype", self.dtype, kind, casting)
        axes = order_axes(order, self._value.strided)
        keeps = as_order(order) == "K"
        ordered = keeps or self._value.strided.transpose(axes).contiguous
        if kind == self.dtype and not as_truth("copy", copy) and ordered:
            return self
        value = cast(self._value, kind)
        return Array(copy_value(value) if keeps else copy_in_order(value, order))

    def __copy__(self) -> "Array":
        return Array(copy_value(self._value))

    def __deepcopy__(self, _: object) -> "Array":
        return self.__copy__()

    def __setitem__(self, key: Any, value: Any) -> None:
        given = as_source("value", value, self.dtype)
        if is_advanced(key):
            by_mask = isinstance(key, Array) and key.dtype.kind == "b"
            assign(self._value, key._value if by_mask else key, given)
            return
        target = self._view(self._value.strided.index(key))._value
        in_c_order = target.strided.contiguous
        if isinstance(given, np.ndarray) and given.shape == target.shape and in_c_order:
            replace(target, cast_on_host("value", given, self.dtype))
            return
        # NumPy drops first axes of one element of arrays, but not of lists.
        listed = isinstance(value, list | tuple)
        shape = np.shape(value) if listed else without_extra_axes(given, len(target.shape))
        expect_within("value", shape, target.shape)
        source = to_device(target.device, "value", given, self.dtype)
        overwrite(target, drop_extra_axes(source, len(target.shape)))

    def free(self) -> None:
        """Free the memory now, though arrays show it: ``FreedError`` when they are used.

        Does nothing while pending. Raises ``BusyError`` while another thread uses it, or another
        library shows it.
        """
        free(self._value)

    def to_device(self, device: Any, /, *, stream: None = None) -> "Array":
        """Return the same elements on another device, sent by way of the host."""
        if stream is not None:
            raise NotOfferedError(f"stream: {stream!r}; expected None")
        expect_device(device)
        moved: Array = device.asarray(self)
        return moved

    # --- to the host ----------------------------------------------------------------------------

    def get(self, *, out: AnyArray | None = None) -> AnyArray:
        """Return the elements as a NumPy array, a new one or ``out`` of this type and shape.

        ``out`` may have any byte order.
        """
        if out is None:
            return download(self._value)
        if not isinstance(out, np.ndarray) or out.dtype.newbyteorder("=") != self.dtype:
            given = out.dtype if isinstance(out, np.ndarray) else f"of type {type(out).__name__}"
            raise DataTypeError(f"out: {given}; expected an array of {self.dtype}")
        if out.shape != self.shape:
            raise ShapeError(f"out: shape {out.shape}; expected {self.shape}")
        if not out.flags.writeable:
            raise ShapeError("out: the array is read-only")
        np.copyto(out, download(self._value))
        return out

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise CopyError(
                "copy: False; an array on a device comes to the host as a copy (np.from_dlpack"
                " shares the memory of a simulated device)"
            )
        result = download(self._value)
        return result if dtype is None else result.astype(dtype, copy=False)

    def item(self, *index: Any) -> Any:
        """Return the element at ``index`` as a Python number, or the only one.

        ``index``: an integer for each axis, or the number of the element in C's order. Raises
        ``ArrayIndexError``, or ``ShapeError`` without an index if there are other elements.
        """
        if index:
            return self._at(index[0] if len(index) == 1 else index).get().item()
        if self.size != 1:
            raise ShapeError(f"x: {self.size} elements; expected one (x.get() has all)")
        return self.get().item()

    def _at(self, index: Any) -> "Array":
        """Return the element at an integer for each axis, or with a number in C's order."""
        if is_integer(index):
            number = as_integer("item", index)
            if not -self.size <= number < self.size:
                raise ArrayIndexError(f"item: {number}; the array has {self.size} elements")
            index = index_flat(number % self.size, self.shape)
        if not isinstance(index, tuple) or len(index) != self.ndim:
            raise ArrayIndexError(
                f"item: {shown(index)}; expected an integer for each of {self.ndim} axes, or one"
            )
        element: Array = self[tuple([as_integer("item", part) for part in index])]
        return element

    def tolist(self) -> Any:
        """Return the elements as Python numbers, in lists."""
        return self.get().tolist()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "ui":
            raise DataTypeError(
                f"index: {summarize(self._value)}; expected an integer without axes"
            )
        return int(self.item())

    def __reduce__(self) -> NoReturn:
        raise NotOfferedError(
            "pickle: the elements are on a device; send x.get() to the other process, and open the"
            " device there: bitlane.open(url)"
        )

    def __repr__(self) -> str:
        return format_text(self._value)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.ndim:
            raise NotOfferedError(
                f"format: {spec!r} for {summarize(self._value)}; expected an array without axes"
                " (np.array2string prints others)"
            )
        return format(self.item(), spec)

    def _repr_html_(self) -> str:
        return format_html(self._value)

    # --- protocols ------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        expect_offered(ufunc, method)
        (out,) = options.pop("out", None) or (None,)
        where = options.pop("where", True)
        device = device_of(*inputs, out, where)
        if ufunc is np.add and out is not None and options.get("dtype") is None:
            options["dtype"] = expect_output(out).dtype
        if method == "__call__":
            operands = as_compared(inputs) if ufunc in TRUTHS else as_operands(inputs)
            mask = where_operand(where)
            expect_output_shape(out, operands, mask)
            result = apply_ufunc(device, ufunc, operands, options)
            return _chosen(result, out, as_mask(device, mask))
        x = as_value(device, "x", as_operand("x", inputs[0]))
        x = masked(x, where, ones=ufunc in IDENTITY_OF_ONES)
        return _reduced(reduce_ufunc(ufunc, x, options), out)

    def __array_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return apply_function(function, arguments, options)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        return namespace.supporting(api_version)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return make_capsule(self._value, copy, dl_device, stream=stream, max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    def __getattr__(self, name: str) -> NoReturn:
        if offers(name):
            raise MissingError(f"bitlane.Array has no {name}; np.{name}(x) does it on the device")
        hint = f"; x.get().{name} does it on the host" if hasattr(np.ndarray, name) else ""
        raise MissingError(f"bitlane.Array has no {name}{hint}")


# --- dispatch -----------------------------------------------------------------------------------


def dispatch_encodings(
    device: DeviceLike,
    op: Op,
    *inputs: Any,
    out: Any = None,
    casting: Casting = "safe",
    dtype: Any = None,
) -> Any:
    """Return ``op`` of one or two operands as an array on ``device``, or write it to ``out``.

    The bits of floats and signed integers count. ``dtype``: the type of counts. Raises as
    `elementwise` and `store_result` do.
    """
    device.expect_open()
    operands = as_operands(inputs)
    if op is Op.COUNT:
        wanted = out.dtype if dtype is None and isinstance(out, Array) else dtype
        dtype = count_type(wanted, out)
    expect_output_shape(out, operands, None)
    result = elementwise(device, op, operands, encoding=True, casting=casting, dtype=dtype)
    return _result(result, out)


def dispatch_elementwise(op: Op, *inputs: Any, out: Any = None) -> Any:
    """Return ``op`` as NumPy's operators and universal functions define it, or write it out."""
    device = device_of(*inputs, out)
    return _result(elementwise(device, op, as_operands(inputs)), out)


def dispatch_predicate(ufunc: np.ufunc, *inputs: Any, out: Any = None) -> Any:
    """Return the truth values of a universal function among `TRUTHS`, or write them out."""
    device = device_of(*inputs, out)
    return _result(find_truth(device, ufunc, as_compared(inputs)), out)


def dispatch_where(condition: Any, a: Any, b: Any) -> Array:
    """Return the elements of ``a`` where ``condition`` is not 0, else those of ``b``."""
    device = device_of(condition, a, b)
    return Array(select_elements(device, as_operand("condition", condition), *as_compared((a, b))))


def _result(value: Value, out: Any) -> Any:
    return Array(value) if out is None else store_result(out, value)


def _chosen(value: Value, out: Any, chosen: Value | None) -> Any:
    """Return ``value`` as `_result` does, only where ``chosen`` is true.

    Without ``out`` NumPy leaves other elements undefined; here they are computed, too.
    """
    if chosen is None:
        return _result(value, out)
    if out is not None:
        return store_result(out, value, chosen)
    shape = broadcast_shapes(value.shape, chosen.shape)
    if shape != value.shape:
        value = value.derived(apply(Op.COPY, broadcast(value.node, shape)))
    return Array(value)


def _reduced(value: Value, out: Any) -> Any:
    """Return a reduction as `_result` does; ``out`` has its shape, as in NumPy. ``ShapeError``."""
    if out is not None and expect_output(out).shape != value.shape:
        raise ShapeError(f"out: shape {out.shape}; expected {value.shape}")
    return _result(value, out)
