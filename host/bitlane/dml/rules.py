"""What DirectML demands of the description of an operator: one small function a rule.

Every rule returns nothing, or raises ``DmlError`` with ``E_INVALIDARG``. Nothing here touches a
device. Pages are named as in MicrosoftDocs: "BUFFER_TENSOR_DESC" is
``ns-directml-dml_buffer_tensor_desc`` of sdk-api, "BIT_COUNT" is
``ns-directml-dml_element_wise_bit_count_operator_desc``, and so on.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from numbers import Integral

from ..errors import DmlError, DmlTypeError
from ..lowering import overlaps_itself
from .operators import (
    ALL_TYPES,
    SMALL_UNSIGNED_TYPES,
    ElementWiseBitCountOperatorDesc,
    NodeDesc,
    OperatorDesc,
    ReduceOperatorDesc,
)
from .tensor import TENSOR_DIMENSION_COUNT_MAX1, UINT_LAST, BufferTensorDesc
from .types import DataType, FeatureLevel, OperatorType, ReduceFunction, TensorFlags

_SHIFTS = (
    OperatorType.ELEMENT_WISE_BIT_SHIFT_LEFT,
    OperatorType.ELEMENT_WISE_BIT_SHIFT_RIGHT,
)

_SUMMED = (DataType.FLOAT32, DataType.FLOAT16)
_SUMMED_2_1 = (*_SUMMED, DataType.INT32, DataType.UINT32)
_SUMMED_5_0 = (*_SUMMED_2_1, DataType.INT64, DataType.UINT64)


def check_operator(desc: NodeDesc, level: FeatureLevel) -> None:
    """All rules of this module: raises ``DmlError`` at the first that ``desc`` breaks."""
    for error in broken_rules(desc, level):
        raise error


def broken_rules(desc: NodeDesc, level: FeatureLevel) -> Iterator[DmlError]:
    """Yield an error for the first rule that each tensor of ``desc`` breaks.

    Yield the first of all tensors together only if none is broken by one alone.
    """
    alone = [partial(_check_alone, name, tensor, desc, level) for name, tensor in _tensors(desc)]
    for checks in ([partial(_check_kind, desc, level)], alone, [partial(_check_together, desc)]):
        sound = True
        for check in checks:
            try:
                check()
            except DmlError as error:
                sound = False
                yield error
        if not sound:
            return


def _tensors(desc: NodeDesc) -> Sequence[tuple[str, BufferTensorDesc]]:
    return (*desc.inputs, *desc.outputs)


def _check_kind(desc: NodeDesc, level: FeatureLevel) -> None:
    check_level(desc, level)
    if isinstance(desc, ReduceOperatorDesc):
        check_function(desc)
    for name, tensor in _tensors(desc):
        check_tensor(name, tensor)


def _check_alone(name: str, tensor: BufferTensorDesc, desc: NodeDesc, level: FeatureLevel) -> None:
    """Check the rules for each tensor by itself."""
    is_output = name == desc.outputs[0][0]
    check_dimension_count(name, tensor, desc, level)
    check_sizes(name, tensor)
    check_data_type(name, tensor, supported_types(desc, is_output, level), level)
    check_flags(name, tensor, is_output)
    check_alignment(name, tensor)
    check_element_count(name, tensor)
    check_total_size(name, tensor)


def _check_together(desc: NodeDesc) -> None:
    """Check the rules for all tensors together."""
    if isinstance(desc, ReduceOperatorDesc):
        check_reduced(desc)
    else:
        check_same(desc)
    for name, tensor in desc.outputs:
        check_output_layout(name, tensor)


def introduced(desc: NodeDesc | type[NodeDesc]) -> FeatureLevel:
    """The first feature level that has the operator.

    Source: "Availability" of the operators' pages; windows-ai-docs ``dml-feature-level-history``.
    """
    if desc.operator_type is OperatorType.REDUCE:
        return FeatureLevel.LEVEL_1_0
    if desc.operator_type in _SHIFTS:
        return FeatureLevel.LEVEL_2_1
    return FeatureLevel.LEVEL_3_0


def tensor_types(level: FeatureLevel) -> tuple[DataType, ...]:
    """The data types of tensors at a feature level, whatever the operators take of them.

    Those of 64 bits exist from 3_0. Source: windows-ai-docs ``dml-feature-level-history``.
    """
    widest = 8 if level >= FeatureLevel.LEVEL_3_0 else 4
    return tuple([each for each in ALL_TYPES if each.itemsize <= widest])


def supported_types(
    desc: NodeDesc | type[OperatorDesc], is_output: bool, level: FeatureLevel
) -> tuple[DataType, ...]:
    """The data types of an input or output of the operator at a feature level.

    Source: "Tensor support" of the operators' pages. The output of BIT_COUNT stays UINT32 or
    UINT8 at every level. Of REDUCE they are those of SUM.
    """
    if isinstance(desc, ReduceOperatorDesc):
        wide = _SUMMED_5_0 if level >= FeatureLevel.LEVEL_5_0 else _SUMMED_2_1
        return wide if level >= FeatureLevel.LEVEL_2_1 else _SUMMED
    if is_output and desc.operator_type is OperatorType.ELEMENT_WISE_BIT_COUNT:
        return (DataType.UINT32, DataType.UINT8)
    return desc.wide_types if level >= FeatureLevel.LEVEL_4_1 else SMALL_UNSIGNED_TYPES


def dimension_counts(level: FeatureLevel) -> range:
    """The dimension counts of the bit operators at a feature level: 4, and 1 to 8 from 3_0.

    Source: "Tensor support" of BIT_SHIFT_LEFT; windows-ai-docs ``directml-constants``.
    """
    return range(1, TENSOR_DIMENSION_COUNT_MAX1 + 1) if level >= 0x3000 else range(4, 5)


def check_level(desc: NodeDesc, level: FeatureLevel) -> None:
    """The feature level has the operator. Source: "Availability" of the operators' pages."""
    needed = introduced(desc)
    if level < needed:
        expected = f"a device of level {needed} or above"
        raise DmlError(str(desc.operator_type), "FeatureLevel", level, expected)


def check_tensor(name: str, tensor: object) -> None:
    """There is a description: no tensor of the bit operators is optional."""
    if not isinstance(tensor, BufferTensorDesc):
        raise DmlTypeError(name, "Desc", tensor, "a BufferTensorDesc")


def check_dimension_count(
    name: str, tensor: BufferTensorDesc, desc: NodeDesc, level: FeatureLevel
) -> None:
    """The level allows that many dimensions; there is no tensor of none: a scalar is {1}.

    Source: "Tensor support" of the operators' pages, DimensionCount of BUFFER_TENSOR_DESC.
    """
    allowed = dimension_counts(level)
    if tensor.dimension_count not in allowed:
        counts = str(allowed[0]) if len(allowed) == 1 else f"{allowed[0]} to {allowed[-1]}"
        expected = f"{counts} for {desc.operator_type} at feature level {level}"
        raise DmlError(name, "DimensionCount", tensor.dimension_count, expected)


def check_sizes(name: str, tensor: BufferTensorDesc) -> None:
    """No size is 0. Source: Sizes of BUFFER_TENSOR_DESC."""
    for dimension, size in enumerate(tensor.sizes):
        if size == 0:
            raise DmlError(name, f"Sizes[{dimension}]", size, f"1 to {UINT_LAST}")


def check_data_type(
    name: str, tensor: BufferTensorDesc, allowed: tuple[DataType, ...], level: FeatureLevel
) -> None:
    """The operator takes the data type. Source: "Tensor support" of the operators' pages."""
    if tensor.data_type not in allowed:
        names = ", ".join(data_type.name for data_type in allowed)
        expected = f"one of {names} (feature level {level})"
        raise DmlError(name, "DataType", tensor.data_type.name, expected)


def check_flags(name: str, tensor: BufferTensorDesc, is_output: bool) -> None:
    """Only inputs may be owned by DirectML, and there is no other flag.

    Source: ``ne-directml-dml_tensor_flags``.
    """
    if tensor.flags not in (TensorFlags.NONE, TensorFlags.OWNED_BY_DML):
        raise DmlError(name, "Flags", int(tensor.flags), "NONE or OWNED_BY_DML")
    if is_output and tensor.owned:
        raise DmlError(name, "Flags", "OWNED_BY_DML", "NONE: only an input may be owned by DML")


def check_alignment(name: str, tensor: BufferTensorDesc) -> None:
    """The guaranteed alignment is 0 or a power of two, no smaller than an element.

    Source: GuaranteedBaseOffsetAlignment of BUFFER_TENSOR_DESC.
    """
    alignment = tensor.guaranteed_base_offset_alignment
    if alignment == 0:
        return
    itemsize = tensor.data_type.itemsize
    if not itemsize <= alignment <= UINT_LAST or alignment & (alignment - 1):
        expected = f"0, or a power of two from {itemsize} up"
        raise DmlError(name, "GuaranteedBaseOffsetAlignment", alignment, expected)


def check_element_count(name: str, tensor: BufferTensorDesc) -> None:
    """No tensor has, reaches over, or reserves more than 2**32 - 1 elements.

    Source: TotalTensorSizeInBytes of BUFFER_TENSOR_DESC ("may not exceed (2^32 - 1) elements").
    The reserved bytes are rounded up to a multiple of 4, as the size helper does.
    """
    elements = prod(tensor.sizes)
    if elements > UINT_LAST:
        expected = f"at most {UINT_LAST} elements, not {elements}"
        raise DmlError(name, "Sizes", list(tensor.sizes), expected)
    reached = tensor.elements_reached
    if reached > UINT_LAST:
        expected = f"at most {UINT_LAST} elements from first to last, not {reached}"
        raise DmlError(name, "Strides", list(tensor.strides or ()), expected)
    most = (UINT_LAST * tensor.data_type.itemsize + 3) // 4 * 4
    total = tensor.total_tensor_size_in_bytes
    if total > most:
        expected = f"at most {most}: {UINT_LAST} elements of {tensor.data_type.name}"
        raise DmlError(name, "TotalTensorSizeInBytes", total, expected)


def check_total_size(name: str, tensor: BufferTensorDesc) -> None:
    """The total size covers the tensor. Source: TotalTensorSizeInBytes of BUFFER_TENSOR_DESC.

    The least size is that of ``DMLCalcBufferTensorSize``, a multiple of 4. A larger size that is
    no multiple of 4 is accepted: whether DirectML refuses one is not documented.
    """
    least = tensor.least_total_size
    total = tensor.total_tensor_size_in_bytes
    if total < least:
        expected = f"at least {least}, which its Sizes, Strides and DataType imply"
        raise DmlError(name, "TotalTensorSizeInBytes", total, expected)


def check_same(desc: OperatorDesc) -> None:
    """All tensors have the same DimensionCount, Sizes and (but for BIT_COUNT) DataType.

    Source: "Tensor constraints" of the operators' pages. Broadcasting is explicit in DirectML:
    repeat the size and give a stride of 0.
    """
    first_name, first = desc.inputs[0]
    for name, tensor in (*desc.inputs[1:], *desc.outputs):
        fields: list[tuple[str, object, object]] = [
            ("DimensionCount", tensor.dimension_count, first.dimension_count),
            ("Sizes", list(tensor.sizes), list(first.sizes)),
        ]
        if not isinstance(desc, ElementWiseBitCountOperatorDesc):
            fields.append(("DataType", tensor.data_type.name, first.data_type.name))
        for field, found, wanted in fields:
            if found != wanted:
                raise DmlError(name, field, found, f"{wanted}, as in {first_name}")


def check_function(desc: ReduceOperatorDesc) -> None:
    """The function of REDUCE exists and is offered. Source: ``ne-directml-dml_reduce_function``."""
    try:
        function = ReduceFunction(desc.function)
    except (TypeError, ValueError):  # NumPy compares no structures with integers
        names = ", ".join(function.name for function in ReduceFunction)
        kind = str(desc.operator_type)
        raise DmlTypeError(kind, "Function", desc.function, f"one of {names}") from None
    if function is not ReduceFunction.SUM:
        raise DmlError(
            str(desc.operator_type),
            "Function",
            function.name,
            "SUM, the one that bitlane offers",
            hresult="DXGI_ERROR_UNSUPPORTED",
        )


def check_reduced(desc: ReduceOperatorDesc) -> None:
    """Axes exist, each given once; the output is as the input but of size 1 along them.

    Source: "Tensor constraints" and Axes of REDUCE. That axes are given once, and at all, is no
    published rule.
    """
    (name, tensor), (output_name, output) = desc.inputs[0], desc.outputs[0]
    if not isinstance(desc.axes, Sequence) or not all(isinstance(x, Integral) for x in desc.axes):
        raise DmlTypeError(str(desc.operator_type), "Axes", desc.axes, "a list of integers")
    if not desc.axes:
        raise DmlError(str(desc.operator_type), "AxisCount", 0, "at least 1")
    for place, axis in enumerate(desc.axes):
        if not 0 <= axis < tensor.dimension_count or axis in desc.axes[:place]:
            expected = f"0 to {tensor.dimension_count - 1}, each once"
            raise DmlError(str(desc.operator_type), f"Axes[{place}]", axis, expected)
    sizes = [1 if axis in desc.axes else size for axis, size in enumerate(tensor.sizes)]
    if list(output.sizes) != sizes:
        expected = f"{sizes}, as in {name} but 1 along Axes"
        raise DmlError(output_name, "Sizes", list(output.sizes), expected)
    if output.data_type is not tensor.data_type:
        expected = f"{tensor.data_type.name}, as in {name}"
        raise DmlError(output_name, "DataType", output.data_type.name, expected)


def check_output_layout(name: str, tensor: BufferTensorDesc) -> None:
    """No two elements of an output share memory, so that a result never depends on an order.

    DirectML publishes no rule for this; without one, what remains in memory would be undefined.
    The check is exact; it refuses a layout that it cannot decide within bounded work.
    """
    overlap = overlaps_itself(tensor.sizes, tensor.element_strides)
    if overlap is False:
        return
    expected = "strides that give every element of an output its own place"
    if overlap is None:
        expected += " (too intricate to tell, so refused)"
    raise DmlError(name, "Strides", list(tensor.strides or ()), expected)
