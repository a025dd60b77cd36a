"""Values of ports with a layout: dictionaries, lists and Amaranth's constants as bits."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from ..errors import PortTypeError, PortValueError, UnknownNameError
from .ports import PortLayout, expect_fit, listed, whole_number


def bits_of(name: str, shape: Any, value: Any) -> int:
    """Return ``value`` of a port ``name`` as its bits: as in ``ctx.set``, fields left out are 0.

    Raises ``PortError`` for an unknown field, a value out of the range of its field, and a list of
    another length.
    """
    layout = _layout_of(shape)
    number = whole_number(value)
    if number is not None:
        form = Shape.cast(shape)
        expect_fit(PortLayout(name, form.width, form.signed, 0), number, number)
        return number & (1 << form.width) - 1
    if layout is None:
        raise PortTypeError(f"port {name!r}: {value!r}; expected a whole number")
    if isinstance(value, data.Const):
        constant: Any = value  # Amaranth's stubs lag
        if _layout_of(constant.shape()) != layout:
            raise PortTypeError(f"port {name!r}: {value!r}; expected a constant of its layout")
        return int(constant.as_bits())
    bits = 0
    for key, inner in _given(name, layout, value):
        field = layout[key]
        bits |= bits_of(f"{name}.{key}", field.shape, inner) << field.offset
    return bits


def _given(name: str, layout: Any, value: Any) -> list[tuple[Any, Any]]:
    """Return the fields in ``value`` with their values."""
    if isinstance(layout, data.ArrayLayout):
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise PortTypeError(f"port {name!r}: {value!r}; expected a list")
        if len(value) != layout.length:
            text = f"a list of {len(value)} values; expected {layout.length}"
            raise PortValueError(f"port {name!r}: {text}")
        return list(enumerate(value))
    if not isinstance(value, Mapping):
        raise PortTypeError(f"port {name!r}: {value!r}; expected a dict or a whole number")
    keys = [key for key, _ in layout]
    for key in value:
        if key not in keys:
            raise UnknownNameError(
                f"port {name!r}: no field {key!r}; there are: {listed(map(str, keys))}"
            )
    if isinstance(layout, data.UnionLayout) and len(value) > 1:
        text = f"{len(value)} fields of a union; expected one"
        raise PortValueError(f"port {name!r}: {text}")
    return list(value.items())


def _layout_of(shape: Any) -> Any:
    try:
        return data.Layout.cast(shape)
    except TypeError:
        return None
