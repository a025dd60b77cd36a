"""Verilog expressions for the cells of a design. Every part has the width that its user expects.

Verilog widens operands to their context (IEEE 1364-2005, 5.4); here they always fit, so an
expression can stand inside another one and means the same.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from cppsim.netlist.design import Bits, CellKind, PlainCell
from cppsim.netlist.signs import COMPARISONS, INFIX

__all__ = ["constant", "expression", "joined"]

_INFIX = {
    **INFIX,
    **COMPARISONS,
    CellKind.LEFT: "<<",
    CellKind.RIGHT: ">>",
    CellKind.RIGHT_SIGNED: ">>>",
}
_PREFIX = {
    CellKind.NOT: "~",
    CellKind.NEGATE: "-",
    CellKind.ALL: "&",
    CellKind.ANY: "|",
    CellKind.ODD: "^",
}
_SIGNED = frozenset({CellKind.LESS_SIGNED, CellKind.LESS_EQUAL_SIGNED, CellKind.RIGHT_SIGNED})

Text = Callable[[Bits], str]
"""Gives the text of an operand, in parentheses where it is an operation."""


def constant(bits: Sequence[int]) -> str:
    """A number, sized."""
    value = sum(bit << place for place, bit in enumerate(bits))
    width = len(bits)
    return f"{width}'b{value}" if width == 1 else f"{width}'h{value:0{-(-width // 4)}x}"


def joined(parts: Sequence[str]) -> str:
    """A concatenation of ``parts``, most significant first; repeated ones are counted."""
    texts = []
    for part, group in groupby(parts):
        count = len(list(group))
        texts.append(part if count == 1 else f"{{{count}{{{part}}}}}")
    if len(texts) == 1:
        return texts[0]
    return "{" + ", ".join(texts) + "}"


def expression(cell: PlainCell, text: Text) -> str:
    """The operation of ``cell``."""
    if cell.kind is CellKind.MUX:
        default, *rest = cell.operands
        branches = [
            f"{text(condition)} ? {text(value)} : "
            for condition, value in zip(rest[::2], rest[1::2], strict=True)
        ]
        return "".join(branches) + text(default)
    operands = [text(bits) for bits in cell.operands]
    if cell.kind in _SIGNED:
        # The amount of a shift stays what it is: unsigned.
        signed = 1 if cell.kind is CellKind.RIGHT_SIGNED else 2
        operands[:signed] = [f"$signed({operand})" for operand in operands[:signed]]
    if cell.kind in _PREFIX:
        return _PREFIX[cell.kind] + operands[0]
    return f" {_INFIX[cell.kind]} ".join(operands)
