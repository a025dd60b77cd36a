"""The operators that a device computes: opsets, how a node is read, how it becomes expressions.

Other modules look operators up in `OPERATORS`, and the page of models shows that table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bitlane_rtl.abi import Op

from . import logic, views
from .build import Build
from .given import Given, Reading


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of ONNX on a device."""

    versions: tuple[int, ...]
    """The opsets of its definitions that the device computes."""
    read: Callable[[Given], Reading]
    build: Build
    moves: bool = False
    """Whether it moves or renames elements alone: no reason to send them to a device."""
    rule: str = ""
    """What a reader of the page of models has to know."""


_SHAPES: Final = (21, 23, 24, 25)
"""Opsets that added data types alone to operators of shapes."""

_BROADCAST: Final = "broadcast as NumPy; before 7 they did not, and are refused"
_CONSTANT_SHAPE: Final = "`shape` is constant"
_CONSTANT_AXES: Final = "`axes` are constant"


def _logical(op: Op, *, inverse: bool = False) -> Operator:
    build = logic.apply_op(op)
    return (
        Operator((1,), logic.read_same, build)
        if inverse
        else Operator((7,), logic.read_same, build, rule=_BROADCAST)
    )


def _bitwise(op: Op) -> Operator:
    return Operator((18,), logic.read_same, logic.apply_op(op))


OPERATORS: Final[Mapping[str, Operator]] = {
    "And": _logical(Op.AND),
    "BitCast": Operator(
        (26,), logic.read_bitcast, logic.build_bitcast, rule="to a type of as many bits"
    ),
    "BitShift": Operator(
        (11, 28),
        logic.read_shift,
        logic.build_shift,
        rule="counts of the width or more give 0, or -1 for `RIGHT` of a negative number;"
        " counts below 0 as of the width or more",
    ),
    "BitwiseAnd": _bitwise(Op.AND),
    "BitwiseNot": _bitwise(Op.NOT),
    "BitwiseOr": _bitwise(Op.OR),
    "BitwiseXor": _bitwise(Op.XOR),
    "Cast": Operator(
        (6, 9, 13, 19, *_SHAPES, 28),
        logic.read_cast,
        logic.build_cast,
        moves=True,
        rule="between integers and bool, modulo the range; floats to bool alone",
    ),
    "Concat": Operator((4, 11, 13), views.read_concat, views.build_concat, moves=True),
    "Equal": Operator(
        (7, 11, 13, 19), logic.read_equal, logic.build_equal, rule="floats as in IEEE 754"
    ),
    "Expand": Operator(
        (8, 13), views.read_expand, views.build_expand, moves=True, rule=_CONSTANT_SHAPE
    ),
    "Gather": Operator(
        (11, 13),
        views.read_gather,
        views.build_gather,
        moves=True,
        rule="`indices` are constant",
    ),
    "Identity": Operator(
        (1, 13, 14, 16, 19, *_SHAPES), logic.read_same, views.build_identity, moves=True
    ),
    "Not": _logical(Op.NOT, inverse=True),
    "Or": _logical(Op.OR),
    "ReduceSum": Operator(
        (13,),
        logic.read_sum,
        logic.build_sum,
        rule="integers, modulo the range; `axes` are constant; a pass for each bit that may be 1",
    ),
    "Reshape": Operator(
        (5, 13, 14, 19, *_SHAPES),
        views.read_reshape,
        views.build_reshape,
        moves=True,
        rule=_CONSTANT_SHAPE,
    ),
    "Slice": Operator(
        (11, 13),
        views.read_slice,
        views.build_slice,
        moves=True,
        rule="`starts`, `ends`, `axes` and `steps` are constant",
    ),
    "Squeeze": Operator(
        (13, *_SHAPES), views.read_squeeze, views.build_squeeze, moves=True, rule=_CONSTANT_AXES
    ),
    "Transpose": Operator(
        (1, 13, *_SHAPES), views.read_transpose, views.build_transpose, moves=True
    ),
    "Unsqueeze": Operator(
        (13, *_SHAPES), views.read_unsqueeze, views.build_unsqueeze, moves=True, rule=_CONSTANT_AXES
    ),
    "Where": Operator((9, 16), logic.read_where, logic.build_where),
    "Xor": _logical(Op.XOR),
}

BUILDS: Final[Mapping[str, Build]] = {name: each.build for name, each in OPERATORS.items()}
"""The function that makes the expressions of each operator."""
