"""The ports of a circuit as plain data, and checked numbers and arrays for them: no Amaranth."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, NoReturn, Protocol, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import BatchError, PortValueError, UnknownNameError
from ..netlist import word_count

_Named = TypeVar("_Named")


class Values(Protocol):
    """The values of a port, or the rows of a memory; ``label`` is the subject of messages."""

    @property
    def label(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def signed(self) -> bool: ...
    @property
    def words(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PortLayout:
    """A signal that can be read, and set if it is an ``input``.

    Its words of 64 bits have the numbers from ``first`` on. A ``settled`` signal follows from the
    state by logic. A change of an ``active`` one may cause an edge.
    """

    name: str
    width: int
    signed: bool
    first: int
    input: bool = False
    settled: bool = False
    active: bool = False

    @property
    def words(self) -> int:
        return word_count(self.width)

    @property
    def label(self) -> str:
        return f"port {self.name!r}"


NO_FIELDS = "fields are ports of a Batch only"


class ByPort(dict[str, _Named]):
    """A dictionary by the names of a model's ports, which lack fields.

    A missing name is an ``UnknownNameError`` that lists the ports.
    """

    def __missing__(self, name: object) -> NoReturn:
        raise UnknownNameError(_unknown(self, str(name), "port"))


def found(known: Mapping[str, _Named], name: str, kind: str) -> _Named:
    """Return the entry of ``name``. Raises ``UnknownNameError`` for an unknown one, a ``kind``."""
    if name not in known:
        raise UnknownNameError(_unknown(known, name, kind))
    return known[name]


def _unknown(names: Mapping[str, object], name: str, kind: str) -> str:
    """Return the message of an unknown ``name``, a ``kind``."""
    if isinstance(names, ByPort) and name.partition(".")[0] in names:
        return f"no {kind} {name!r}; {NO_FIELDS}"
    return f"no {kind} {name!r}; {_meant(name, names)}: {listed(names)}"


def _meant(name: str, names: Iterable[str]) -> str:
    """Return the words before a list of names, with the most similar one if one is near.

    A port has ``__`` where its signal has a dot.
    """
    near = get_close_matches(name.replace(".", "__"), names, 1, _NEAR)
    return f"did you mean {near[0]!r}? There are" if near else "there are"


def listed(names: Iterable[str]) -> str:
    """Return the names in a line."""
    return ", ".join(sorted(names)) or "none"


Words = NDArray[np.uint64]

_MOST = (1 << 63) - 1
_ONES = (1 << 64) - 1
_ROWS = 64
"""Rows that are transposed at a time: they stay in the cache, which is 2 to 4 times as fast."""

_SHARED = 1 << 24
"""Elements of an array that all cores transpose together; a smaller one takes longer that way."""

_SHOWN = 1024
"""Bits of the largest number that a message shows."""

_NEAR = 0.85
"""The similarity of a name that is suggested, from 0 to 1."""


def counted(number: object, what: str, least: int, most: int = _MOST) -> int:
    """Return ``number``. Raises ``BatchError`` unless it is an integer within the limits."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        text = shown(number) if isinstance(number, int) else repr(number)
        raise BatchError(f"{what}: {text}; expected a whole number from {least} on")
    if number > most:
        raise BatchError(f"{what}: {shown(number)} is more than {most}")
    return int(number)


Number = SupportsIndex | Enum | np.bool_
"""The types of one whole number that a port accepts."""

PortValue = Number | Mapping[str, Any] | Sequence[Any]
"""The types of one value that a port of a model accepts: a port with a layout takes its fields."""


def whole_number(value: object) -> int | None:
    """Return ``value`` as an int, or None for anything but one whole number.

    Numbers of NumPy, arrays without an axis and members of enums are whole numbers, too.
    """
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    if isinstance(value, Enum):
        value = value.value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # raises for other types
    except TypeError:
        return None


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return ``values`` as NumPy's integers, or as Python's if some exceed 64 bits.

    Raises ``BatchError``, which names ``what``, if they are not an array of integers.
    """
    if isinstance(values, Mapping):
        raise BatchError(f"{what} takes integers, not a dict; set its fields one by one")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise BatchError(f"{what} takes an array, not rows of different lengths") from error
    # Lists with numbers from 2^63 on beside small ones are floats to NumPy.
    if array.dtype.kind == "O" or (array.dtype.kind == "f" and not isinstance(values, np.ndarray)):
        array = _whole_numbers(np.asarray(values, dtype=object), what, array.dtype)
    if array.dtype.kind not in "iubO":
        raise BatchError(f"{what} takes integers, not {array.dtype}")
    return array


def _whole_numbers(array: NDArray[Any], what: str, kind: np.dtype[Any]) -> NDArray[Any]:
    """An array of objects as integers; NumPy took it for one of ``kind``."""
    found = [whole_number(x) for x in array.reshape(-1).tolist()]
    numbers = [x for x in found if x is not None]
    if len(numbers) < len(found):
        raise BatchError(f"{what} takes integers, not {kind}")
    low, high = min(numbers, default=0), max(numbers, default=0)
    for fit in (np.int64, np.uint64):
        if np.iinfo(fit).min <= low and high <= np.iinfo(fit).max:
            return np.array(numbers, fit).reshape(array.shape)
    large = np.empty(array.size, object)
    large[:] = numbers
    return large.reshape(array.shape)


def expect_fit(port: Values, low: int, high: int) -> None:
    """Raise ``PortValueError`` unless numbers from ``low`` to ``high`` fit ``port``."""
    least = -(1 << port.width >> 1) if port.signed else 0
    for value in (low, high):
        if not least <= value < least + (1 << port.width):
            limits = f"{_power(least)} to {_power(least + (1 << port.width), 1)}"
            text = f"{shown(value)} does not fit {_kind_of(port)}; expected {limits}"
            raise PortValueError(f"{port.label}: {text}")


def expect_input(port: PortLayout) -> None:
    """Raise ``PortValueError`` unless ``port`` can be set."""
    if not port.input:
        raise PortValueError(f"port {port.name!r} is driven by the design; only inputs can be set")


def fill(port: PortLayout, values: ArrayLike, to: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Write ``values`` for ``port`` to its columns ``to``, of ``shape`` and an axis of words.

    Bits above the width of the port become 0, also those of signed values. Raises ``BatchError``
    for an array of another shape or type, and for values that do not fit.
    """
    array = as_words(port, values, [shape[:axes] for axes in range(len(shape), 0, -1)])
    axes = array.ndim - 1
    spread = array.reshape(array.shape[:axes] + (1,) * (len(shape) - axes) + array.shape[axes:])

    def transpose(first: int) -> None:
        to[first : first + _ROWS] = spread[first : first + _ROWS].astype(to.dtype)

    rows = range(0, shape[0], _ROWS)
    if to.size < _SHARED:
        for first in rows:
            transpose(first)
    else:
        with ThreadPoolExecutor() as cores:
            list(cores.map(transpose, rows))
    if port.signed:
        to[..., -1] &= to.dtype.type(_ONES >> -port.width % 64)


def as_words(port: Values, values: ArrayLike, shapes: Sequence[tuple[int, ...]]) -> NDArray[Any]:
    """Return ``values`` with a last axis of words, of one of ``shapes`` before it.

    Values of more than 64 bits are whole numbers, or have that axis. Raises ``BatchError`` for an
    array of another shape or type, for a shape that both forms have, and for too large numbers.
    """
    array = as_array(values, port.label)
    in_words = port.words > 1 and array.shape[-1:] == (port.words,) and array.shape[:-1] in shapes
    if array.shape in shapes:
        if in_words:
            whole = (*array.shape, port.words)
            text = f"{port.label}: {array.shape} is the shape of whole numbers and of words"
            raise BatchError(f"{text}; expected words of shape {whole}")
        if port.words > 1:
            return _split(port, array)
        _expect_all_fit(port, array)
        return array[..., None]
    if in_words:
        return _wide(port, array)
    first = shapes[0]
    forms = [(*first, port.words), first] if port.words > 1 else [first]
    forms += shapes[1:] if port.words == 1 else []
    takes = " or ".join(map(str, forms))
    raise BatchError(f"{port.label} takes an array of shape {takes}, not {array.shape}")


def _expect_all_fit(port: Values, array: NDArray[Any]) -> None:
    """Raise ``BatchError`` for a number that does not fit ``port``."""
    bits = {"b": 1, "u": 8 * array.itemsize}.get(array.dtype.kind)
    if bits is not None and bits <= port.width - port.signed:
        return
    expect_fit(port, int(array.min(initial=0)), int(array.max(initial=0)))


def _split(port: Values, numbers: NDArray[Any]) -> Words:
    """Return whole numbers as words, along a last axis."""
    _expect_all_fit(port, numbers)
    words = np.empty((*numbers.shape, port.words), np.uint64)
    if numbers.dtype.kind == "O":
        for number in range(port.words):
            words[..., number] = numbers & _ONES
            numbers = numbers >> 64
    else:
        words[..., 0] = numbers.astype(np.uint64)
        words[..., 1:] = np.where(numbers < 0, np.uint64(_ONES), np.uint64(0))[..., None]
    return words


def _wide(port: Values, array: NDArray[Any]) -> NDArray[Any]:
    """Words of a port of more than 64 bits, the last ones within its bits or its sign."""
    least = -(1 << 63) if port.signed else 0
    if least <= int(array.min(initial=0)) and int(array.max(initial=0)) <= _ONES:
        if array.dtype.kind == "O":
            words = np.array([x & _ONES for x in array.reshape(-1).tolist()], np.uint64)
            array = words.reshape(array.shape)
        last = array[..., -1].astype(np.uint64)
        if (last == extended(last, port.width, signed=port.signed)).all():
            return array
    raise PortValueError(f"{port.label}: words that do not fit {_kind_of(port)}")


def extended(last: Words, width: int, *, signed: bool) -> Words:
    """Return the last words of ports of ``width`` bits, extended by their sign or zeros."""
    spare = -width % 64
    if signed:
        return (last.view(np.int64) << np.int64(spare) >> np.int64(spare)).view(np.uint64)
    return last << np.uint64(spare) >> np.uint64(spare)


def shown(number: int | np.integer[Any]) -> str:
    """Return ``number`` as text, or its size: Python writes no number of 4,300 digits."""
    bits = int(number).bit_length()
    return str(number) if bits <= _SHOWN else f"a number of {bits} bits"


def _power(number: int, less: int = 0) -> str:
    """Return ``number - less`` as text: a large ``number``, which is a power of two, as a power."""
    if abs(number) < 1 << 64:
        return str(number - less)
    sign, above = "-" * (number < 0), f" - {less}" * bool(less)
    return f"{sign}2**{abs(number).bit_length() - 1}{above}"


def _kind_of(port: Values) -> str:
    """Return the width of a value, and whether it is signed, in words."""
    return f"{port.width} bits{', signed' if port.signed else ''}"
