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
class DeviceOperator:
    """An operator of ONNX on a device."""

    versions: tuple[int, ...]
    """The opsets of its definitions that the device computes."""
    read: Callable[[Given], Reading]
    build: Build
    moves: bool = False
    """Whether it only moves or renames elements, which is not worth a transfer to a device."""
    kinds: str = "buif"
    """The kinds of NumPy's types of the first input: a definition may have more."""
    rule: str = ""
    """The rule in the last column of the table on the page of models."""


_SHAPES: Final = (21, 23, 24, 25)
"""Opsets that added data types alone to operators of shapes."""

_BROADCAST: Final = "before 7 it does not broadcast, and is refused"
_CONSTANT_SHAPE: Final = "`shape` is constant"
_CONSTANT_AXES: Final = "`axes` are constant"


def _logical(op: Op, *, inverse: bool = False) -> DeviceOperator:
    build = logic.apply_op(op)
    return (
        DeviceOperator((1,), logic.read_same, build)
        if inverse
        else DeviceOperator((7,), logic.read_same, build, rule=_BROADCAST)
    )


def _bitwise(op: Op) -> DeviceOperator:
    return DeviceOperator((18,), logic.read_same, logic.apply_op(op))


OPERATORS: Final[Mapping[str, DeviceOperator]] = {
    "And": _logical(Op.AND),
    "BitCast": DeviceOperator(
        (26,), logic.read_bitcast, logic.build_bitcast, rule="to a type of as many bits"
    ),
    "BitShift": DeviceOperator(
        (11, 28),
        logic.read_shift,
        logic.build_shift,
        rule="counts out of range give 0 (negative `RIGHT`: -1)",
    ),
    "BitwiseAnd": _bitwise(Op.AND),
    "BitwiseNot": _bitwise(Op.NOT),
    "BitwiseOr": _bitwise(Op.OR),
    "BitwiseXor": _bitwise(Op.XOR),
    "Cast": DeviceOperator(
        (6, 9, 13, 19, *_SHAPES, 28),
        logic.read_cast,
        logic.build_cast,
        moves=True,
        rule="modulo the range; floats to bool alone",
    ),
    "Concat": DeviceOperator((4, 11, 13), views.read_concat, views.build_concat, moves=True),
    "Equal": DeviceOperator(
        (7, 11, 13, 19), logic.read_equal, logic.build_equal, rule="floats as in IEEE 754"
    ),
    "Expand": DeviceOperator(
        (8, 13), views.read_expand, views.build_expand, moves=True, rule=_CONSTANT_SHAPE
    ),
    "Gather": DeviceOperator(
        (11, 13),
        views.read_gather,
        views.build_gather,
        moves=True,
        rule="`indices` are constant",
    ),
    "Identity": DeviceOperator(
        (1, 13, 14, 16, 19, *_SHAPES), logic.read_same, views.build_identity, moves=True
    ),
    "Not": _logical(Op.NOT, inverse=True),
    "Or": _logical(Op.OR),
    "ReduceSum": DeviceOperator(
        (13,),
        logic.read_sum,
        logic.build_sum,
        kinds="ui",
        rule="modulo the range; `axes` are constant",
    ),
    "Reshape": DeviceOperator(
        (5, 13, 14, 19, *_SHAPES),
        views.read_reshape,
        views.build_reshape,
        moves=True,
        rule=_CONSTANT_SHAPE,
    ),
    "Slice": DeviceOperator(
        (11, 13),
        views.read_slice,
        views.build_slice,
        moves=True,
        rule="`starts`, `ends`, `axes` and `steps` are constant",
    ),
    "Squeeze": DeviceOperator(
        (13, *_SHAPES), views.read_squeeze, views.build_squeeze, moves=True, rule=_CONSTANT_AXES
    ),
    "Transpose": DeviceOperator(
        (1, 13, *_SHAPES), views.read_transpose, views.build_transpose, moves=True
    ),
    "Unsqueeze": DeviceOperator(
        (13, *_SHAPES), views.read_unsqueeze, views.build_unsqueeze, moves=True, rule=_CONSTANT_AXES
    ),
    "Where": DeviceOperator((9, 16), logic.read_where, logic.build_where),
    "Xor": _logical(Op.XOR),
}

BUILDS: Final[Mapping[str, Build]] = {name: each.build for name, each in OPERATORS.items()}
"""The function that makes the expressions of each operator."""
