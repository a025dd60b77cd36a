"""Overloads of the operators, for type checkers and editors."""

# An Array is ArrayLike besides: of two that fit, the first one counts.
# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

from typing import Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._typing import AnyArray
from ..arguments.promotion import Casting
from ..arrays import Array

Scalar = TypeVar("Scalar", bound=np.generic)
Out = TypeVar("Out", bound=AnyArray | Array)

Typed: TypeAlias = NDArray[Scalar] | Scalar


class Unary(Protocol):
    """A function or a method of one operand."""

    @overload
    def __call__(self, a: Array, /, *, out: None = None) -> Array: ...
    @overload
    def __call__(self, a: ArrayLike, /, *, out: Out) -> Out: ...
    @overload
    def __call__(self, a: Typed[Scalar], /, *, out: None = None) -> NDArray[Scalar]: ...
    @overload
    def __call__(self, a: ArrayLike, /, *, out: None = None) -> AnyArray: ...
    @overload
    def __call__(self, a: ArrayLike, /, *, out: Out | None = None) -> AnyArray | Out: ...

    def __get__(self, device: object, kind: type | None = None, /) -> "Unary": ...


class Binary(Protocol):
    """A function or a method of two operands."""

    @overload
    def __call__(
        self, a: Array, b: ArrayLike, /, *, out: None = None, casting: Casting = "safe"
    ) -> Array: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: Array, /, *, out: None = None, casting: Casting = "safe"
    ) -> Array: ...
    @overload
    def __call__(
        self,
        a: ArrayLike,
        b: ArrayLike,
        /,
        *,
        out: Out,
        casting: Casting = "safe",
    ) -> Out: ...
    @overload
    def __call__(
        self,
        a: Typed[Scalar],
        b: Typed[Scalar] | int,
        /,
        *,
        out: None = None,
        casting: Casting = "safe",
    ) -> NDArray[Scalar]: ...
    @overload
    def __call__(
        self, a: int, b: Typed[Scalar], /, *, out: None = None, casting: Casting = "safe"
    ) -> NDArray[Scalar]: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, /, *, out: None = None, casting: Casting = "safe"
    ) -> AnyArray: ...
    @overload
    def __call__(
        self,
        a: ArrayLike,
        b: ArrayLike,
        /,
        *,
        out: Out | None = None,
        casting: Casting = "safe",
    ) -> AnyArray | Out: ...

    def __get__(self, device: object, kind: type | None = None, /) -> "Binary": ...


class Count(Protocol):
    """A function or a method that counts, into a type that may be chosen."""

    @overload
    def __call__(
        self, a: Array, /, dtype: DTypeLike | None = None, *, out: None = None
    ) -> Array: ...
    @overload
    def __call__(self, a: ArrayLike, /, dtype: DTypeLike | None = None, *, out: Out) -> Out: ...
    @overload
    def __call__(
        self, a: ArrayLike, /, dtype: None = None, *, out: None = None
    ) -> NDArray[np.uint8]: ...
    @overload
    def __call__(
        self, a: ArrayLike, /, dtype: type[Scalar] | np.dtype[Scalar], *, out: None = None
    ) -> NDArray[Scalar]: ...
    @overload
    def __call__(self, a: ArrayLike, /, dtype: DTypeLike, *, out: None = None) -> AnyArray: ...
    @overload
    def __call__(
        self, a: ArrayLike, /, dtype: DTypeLike | None = None, *, out: Out | None = None
    ) -> AnyArray | Out: ...

    def __get__(self, device: object, kind: type | None = None, /) -> "Count": ...
