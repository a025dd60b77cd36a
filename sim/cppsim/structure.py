"""The structure of expressions: one program computes all those of one structure.

``valid & (count == 3)`` is a new expression each time Python executes it. Its structure is the same
each time, and the same as that of ``valid & (count == 4)``.
"""

from typing import Any

from amaranth.hdl import Const, Signal

from .amaranth_internals import ast, constant_parts, operator_parts, slice_parts
from .netlist.design import WORD

_Operator: Any = ast.Operator
_Slice: Any = ast.Slice

Key = tuple[Any, ...]
"""An expression but for some constants. It has the ``id`` of each signal, so that a table of keys
must hold an expression for each."""

Structure = tuple[Key, tuple[int, ...]]
"""The key of an expression, and the constants that the key leaves open."""


def structure_of(value: Any) -> Structure | None:
    """Return the structure of an expression; None if it has an unknown part."""
    return _walk(value, [])


def open_constants(value: Any) -> list[Const]:
    """Return the constants that the key of an expression leaves open, in their order."""
    constants: list[Const] = []
    _walk(value, constants)
    return constants


def _walk(whole: Any, constants: list[Const]) -> Structure | None:
    """Return the structure of an expression, and append the constants that its key leaves open."""
    values: list[int] = []
    key: list[Any] = []
    left, seen = [whole], dict[int, int]()
    # Breadth first; what stands for an expression in the key determines how many operands it has.
    for item in left:
        kind = type(item)
        if kind is Signal:
            key.append(id(item))
            continue
        number = len(seen)
        first = seen.setdefault(id(item), number)
        if first != number:
            # One object at two places is one constant.
            key += "again", first
        elif kind is Const:
            width, signed, value = constant_parts(item)
            key += width, signed
            if width <= WORD:
                constants.append(item)
                values.append(value)
            else:
                key.append(value)
        elif kind is _Operator:
            operator, operands = operator_parts(item)
            key += operator, len(operands)
            left += operands
        elif kind is _Slice:
            start, stop, operand = slice_parts(item)
            key += "[]", start, stop
            left.append(operand)
        elif not _other(item, key, left):
            return None
    return tuple(key), tuple(values)


def _other(item: Any, key: list[Any], left: list[Any]) -> bool:
    """Add an expression that testbenches rarely make; return False for other kinds."""
    match item:
        case ast.Part():
            key += "part", item.width, item.stride
            left += item.value, item.offset
        case ast.Concat():
            key += "cat", len(item.parts)
            left += item.parts
        case ast.SwitchValue():
            key += "switch", tuple(patterns for patterns, _ in item.cases)
            left += item.test, *(choice for _, choice in item.cases)
        case _:
            return False
    return True
