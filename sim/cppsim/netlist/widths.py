"""A limit on the width of values: the list of nets of a wider value would exhaust memory."""

from typing import Any

from ..amaranth_internals import ast
from .design import NotPlain

__all__ = ["expect_narrow"]

_WIDEST = 1 << 16
"""Bits of a value that Amaranth's simulator takes, and its netlist can number."""


def expect_narrow(fragment: Any) -> None:
    """Raise ``NotPlain`` for a value in ``fragment`` that is too wide."""
    known: set[int] = set()
    for statements in fragment.statements.values():
        left: list[Any] = list(statements)
        while left:
            item = left.pop()
            if id(item) in known:
                continue
            known.add(id(item))
            match item:
                case ast.Assign():
                    left += [item.lhs, item.rhs]
                case ast.Switch():
                    left.append(item.test)
                    left += [inner for _, inner_list, _ in item.cases for inner in inner_list]
                case ast.Operator():
                    left += item.operands
                case ast.Slice():
                    left.append(item.value)
                case ast.Part():
                    left += [item.value, item.offset]
                case ast.Concat():
                    left += item.parts
                case ast.SwitchValue():
                    left += [item.test, *(value for _, value in item.cases)]
            # Other operators at most double the width, and their width takes long to compute.
            grows = not isinstance(item, ast.Operator) or item.operator == "<<"
            if grows and isinstance(item, ast.Value) and len(item) > _WIDEST:
                raise NotPlain(f"a value of {len(item)} bits is too wide")
    for inner, *_ in fragment.subfragments:
        expect_narrow(inner)
