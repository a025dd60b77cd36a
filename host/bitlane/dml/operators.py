"""The descriptions of the operators, and what each operator is like.

The seven element-wise bit operators, and REDUCE, which stands in graphs behind a count of bits.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, TypeAlias, get_args

from bitlane_rtl.abi import Op

from .buffer import Parent
from .tensor import BufferTensorDesc
from .types import DataType, OperatorType, ReduceFunction

ALL_TYPES = tuple(data_type for data_type in DataType if data_type is not DataType.UNKNOWN)
SMALL_UNSIGNED_TYPES = (DataType.UINT32, DataType.UINT16, DataType.UINT8)
UNSIGNED_TYPES = (DataType.UINT64, *SMALL_UNSIGNED_TYPES)

NamedTensors: TypeAlias = tuple[tuple[str, BufferTensorDesc], ...]
"""DirectML's name of each tensor, and the tensor."""


class InPlace(IntEnum):
    """How many inputs the output may take the place of."""

    NONE = 0
    ONE = 1
    ANY = 2


class _Described:
    __slots__ = ()

    operator_type: ClassVar[OperatorType]
    output_tensor: BufferTensorDesc

    @property
    def outputs(self) -> NamedTensors:
        """DirectML's field name and tensor of every output, in binding order."""
        return (("OutputTensor", self.output_tensor),)


class _OperatorDesc(_Described):
    __slots__ = ()

    op: ClassVar[Op]
    in_place: ClassVar[InPlace] = InPlace.ANY
    wide_types: ClassVar[tuple[DataType, ...]] = ALL_TYPES
    """Data types of the inputs from feature level 4_1; below, ``SMALL_UNSIGNED_TYPES``."""


@dataclass(frozen=True, slots=True)
class _UnaryOperatorDesc(_OperatorDesc):
    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc

    @property
    def inputs(self) -> NamedTensors:
        """DirectML's field name and tensor of every input, in binding order."""
        return (("InputTensor", self.input_tensor),)


@dataclass(frozen=True, slots=True)
class _BinaryOperatorDesc(_OperatorDesc):
    a_tensor: BufferTensorDesc
    b_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc

    @property
    def inputs(self) -> NamedTensors:
        """DirectML's field name and tensor of every input, in binding order."""
        return (("ATensor", self.a_tensor), ("BTensor", self.b_tensor))


class ElementWiseBitNotOperatorDesc(_UnaryOperatorDesc):
    """``DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC``: every bit inverted. In place allowed."""

    __slots__ = ()
    operator_type = OperatorType.ELEMENT_WISE_BIT_NOT
    op = Op.NOT


class ElementWiseBitCountOperatorDesc(_UnaryOperatorDesc):
    """``DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC``: the number of ones of the native encoding.

    The output is UINT8 or UINT32, whatever the input. Not in place: neither the documentation
    page nor DirectML's operator schema allows it.
    """

    __slots__ = ()
    operator_type = OperatorType.ELEMENT_WISE_BIT_COUNT
    op = Op.COUNT
    in_place = InPlace.NONE


class ElementWiseBitAndOperatorDesc(_BinaryOperatorDesc):
    """``DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC``. In place on either input, or on both."""

    __slots__ = ()
    operator_type = OperatorType.ELEMENT_WISE_BIT_AND
    op = Op.AND


class ElementWiseBitOrOperatorDesc(_BinaryOperatorDesc):
    """``DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC``. In place on either input, or on both."""

    __slots__ = ()
    operator_type = OperatorType.ELEMENT_WISE_BIT_OR
    op = Op.OR


class ElementWiseBitXorOperatorDesc(_BinaryOperatorDesc):
    """``DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC``. In place on either input, or on both."""

    __slots__ = ()
    operator_type = OperatorType.ELEMENT_WISE_BIT_XOR
    op = Op.XOR


class ElementWiseBitShiftLeftOperatorDesc(_BinaryOperatorDesc):
    """``DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC``: ``a << b``, a count an element.

    A count of the element's width or more is taken modulo the width. DirectML does not document
    that case; onnxruntime's DirectML backend reports that counts are masked (pull request 32361).
    In place on one of the inputs.
    """

    __slots__ = ()
    operator_type = OperatorType.ELEMENT_WISE_BIT_SHIFT_LEFT
    op = Op.SHIFT_LEFT
    in_place = InPlace.ONE
    wide_types = UNSIGNED_TYPES


class ElementWiseBitShiftRightOperatorDesc(_BinaryOperatorDesc):
    """``DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC``: logical ``a >> b``, a count an element.

    Counts of the width or more are masked as for the left shift. In place on one of the inputs.
    """

    __slots__ = ()
    operator_type = OperatorType.ELEMENT_WISE_BIT_SHIFT_RIGHT
    op = Op.SHIFT_RIGHT
    in_place = InPlace.ONE
    wide_types = UNSIGNED_TYPES


@dataclass(frozen=True, slots=True)
class ReduceOperatorDesc(_Described):
    """``DML_REDUCE_OPERATOR_DESC``: the elements along ``axes`` become one, by ``function``.

    The output has the sizes of the input, but 1 along ``axes``. Of all functions SUM is offered,
    and of all inputs the count of a BIT_COUNT of 32 bits in the same graph: the circuit adds up
    what it counts, modulo 2**32, and has no other adder.
    """

    operator_type: ClassVar[OperatorType] = OperatorType.REDUCE

    function: ReduceFunction
    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    axes: tuple[int, ...]

    @property
    def inputs(self) -> NamedTensors:
        """DirectML's field name and tensor of every input, in binding order."""
        return (("InputTensor", self.input_tensor),)


OperatorDesc = (
    ElementWiseBitNotOperatorDesc
    | ElementWiseBitAndOperatorDesc
    | ElementWiseBitOrOperatorDesc
    | ElementWiseBitXorOperatorDesc
    | ElementWiseBitShiftLeftOperatorDesc
    | ElementWiseBitShiftRightOperatorDesc
    | ElementWiseBitCountOperatorDesc
)
"""``DML_OPERATOR_DESC``: any of the seven, which can be compiled by themselves."""

NodeDesc: TypeAlias = OperatorDesc | ReduceOperatorDesc
"""``DML_OPERATOR_DESC``: any of the eight, of which an operator can be created, and a graph made.
"""

OPERATOR_DESCS: dict[OperatorType, type[OperatorDesc]] = {
    desc.operator_type: desc for desc in get_args(OperatorDesc)
}
"""The description that belongs to each operator type."""


class Operator:
    """``IDMLOperator``: a description that has passed every rule. Of ``Device.create_operator``."""

    def __init__(self, device: Parent, desc: NodeDesc) -> None:
        self.device = device
        self.desc = desc

    def __repr__(self) -> str:
        return f"<bitlane.dml.Operator: {self.desc.operator_type}>"
