"""The signs of operations that C++ and Verilog have in common."""

from .design import CellKind

__all__ = ["COMPARISONS", "INFIX"]

INFIX = {
    CellKind.AND: "&",
    CellKind.OR: "|",
    CellKind.XOR: "^",
    CellKind.ADD: "+",
    CellKind.SUBTRACT: "-",
    CellKind.MULTIPLY: "*",
}
COMPARISONS = {
    CellKind.EQUAL: "==",
    CellKind.UNEQUAL: "!=",
    CellKind.LESS: "<",
    CellKind.LESS_EQUAL: "<=",
    CellKind.LESS_SIGNED: "<",
    CellKind.LESS_EQUAL_SIGNED: "<=",
}
"""Whether the operands have a sign, each language says in its own way."""
