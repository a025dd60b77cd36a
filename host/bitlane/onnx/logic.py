"""Operators on the bits of elements: logic, shifts, tests, casts, choices and sums."""

from collections.abc import Sequence
from typing import Final

from bitlane_rtl.abi import Op

from ..arrays.elementwise import apply_typed
from ..arrays.floats import magnitude
from ..arrays.masks import choose_typed
from ..arrays.sums import sum_elements
from ..arrays.truth import equal_typed
from ..compiler import narrow, truth_of, widen
from ..errors import OnnxError, OnnxLackingError
from .build import Build, Operand, Workplace
from .given import Given, Reading
from .model import BitNode, quoted
from .types import BOOL, read_type

_DIRECTIONS: Final = {b"LEFT": Op.SHIFT_LEFT, b"RIGHT": Op.SHIFT_RIGHT}


# --- logic ----------------------------------------------------------------------------------------


def read_same(given: Given) -> Reading:
    """Read a node whose output has the type of its inputs."""
    return Reading(given.inputs, given.dtype)


def apply_op(op: Op) -> Build:
    """Return the function that makes expressions of ``op``."""

    def build(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
        return _typed(op, operands)

    return build


def _typed(op: Op, operands: Sequence[Operand]) -> Operand:
    dtype = operands[0].dtype
    return Operand(apply_typed(op, dtype, *(x.node for x in operands)), dtype)


def read_shift(given: Given) -> Reading:
    direction = given.attributes["direction"]
    if direction not in _DIRECTIONS:
        shown = quoted(direction.decode(errors="backslashreplace"))
        raise OnnxError(f"{given.label}: direction {shown}; expected LEFT or RIGHT")
    return Reading(given.inputs, given.dtype, {"direction": direction})


def build_shift(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    return _typed(_DIRECTIONS[node.settings["direction"]], operands)


def read_equal(given: Given) -> Reading:
    return Reading(given.inputs, BOOL)


def build_equal(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    a, b = operands
    return Operand(equal_typed(a.dtype, a.node, b.node), BOOL)


# --- types ----------------------------------------------------------------------------------------


def read_bitcast(given: Given) -> Reading:
    dtype = read_type(f"{given.label}: to", given.attributes["to"])
    if dtype.itemsize != given.dtype.itemsize:
        raise OnnxError(f"{given.label}: from {given.dtype} to {dtype}; expected as many bits")
    return Reading(given.inputs, dtype)


def build_bitcast(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    to_truth = node.dtype.kind == "b" != x.dtype.kind
    return Operand(truth_of(x.node) if to_truth else x.node, node.dtype)


def read_cast(given: Given) -> Reading:
    dtype = read_type(f"{given.label}: to", given.attributes["to"])
    if dtype not in (given.dtype, BOOL) and "f" in (dtype.kind, given.dtype.kind):
        raise OnnxLackingError(
            f"{given.label}: from {given.dtype} to {dtype}, which takes arithmetic; expected"
            " integers or bool"
        )
    return Reading(given.inputs, dtype)


def build_cast(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    dtype = node.dtype
    if dtype == x.dtype:
        return x
    if dtype.kind == "b":
        return Operand(truth_of(magnitude(x.node, x.dtype)), dtype)
    if dtype.itemsize < x.dtype.itemsize:
        return Operand(narrow(x.node, dtype.itemsize), dtype, x.truth)
    made = widen(x.node, dtype.itemsize, signed=x.dtype.kind == "i")
    return Operand(made, dtype, x.node if x.dtype.kind == "b" else x.truth)


# --- choices and sums -----------------------------------------------------------------------------


def read_where(given: Given) -> Reading:
    dtype = given.types[1]
    assert dtype is not None
    return Reading(given.inputs, dtype)


def build_where(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    condition, x, y = operands
    return Operand(choose_typed(node.dtype, condition.node, x.node, y.node), node.dtype)


def read_sum(given: Given) -> Reading:
    axes = given.integers(1, "axes") if given.has(1) else ()
    settings = {
        "axes": axes,
        "keepdims": bool(given.attributes["keepdims"]),
        "none": not axes and bool(given.attributes["noop_with_empty_axes"]),
    }
    return Reading(given.inputs[:1], given.dtype, settings)


def build_sum(node: BitNode, operands: Sequence[Operand], place: Workplace) -> Operand:
    (x,) = operands
    if node.settings["none"]:
        return x
    elements = x.node if x.truth is None else x.truth
    value = place.value(elements, x.dtype if x.truth is None else BOOL)
    axes = node.settings["axes"] or None
    total = sum_elements(value, axes, node.dtype, keep=node.settings["keepdims"])
    return Operand(total.node, node.dtype)
