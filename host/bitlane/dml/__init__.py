"""DirectML's object model and rules, in Python case, executed by a bitlane device.

Whatever DirectML refuses raises ``bitlane.DmlError`` before anything reaches the device.
"""

from ..errors import DmlError, DmlTypeError
from .binding import BufferBinding
from .buffer import Buffer
from .device import Device
from .operators import (
    ElementWiseBitAndOperatorDesc,
    ElementWiseBitCountOperatorDesc,
    ElementWiseBitNotOperatorDesc,
    ElementWiseBitOrOperatorDesc,
    ElementWiseBitShiftLeftOperatorDesc,
    ElementWiseBitShiftRightOperatorDesc,
    ElementWiseBitXorOperatorDesc,
    OperatorDesc,
)
from .recorder import CommandList, CommandRecorder
from .table import BindingProperties, BindingTable, CompiledOperator, Operator, OperatorInitializer
from .tensor import (
    MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    TENSOR_DIMENSION_COUNT_MAX,
    TENSOR_DIMENSION_COUNT_MAX1,
    BufferTensorDesc,
    calc_buffer_tensor_size,
)
from .types import (
    DataType,
    ExecutionFlags,
    Feature,
    FeatureLevel,
    OperatorType,
    TensorFlags,
)

__all__ = [
    "MINIMUM_BUFFER_TENSOR_ALIGNMENT",
    "TENSOR_DIMENSION_COUNT_MAX",
    "TENSOR_DIMENSION_COUNT_MAX1",
    "BindingProperties",
    "BindingTable",
    "Buffer",
    "BufferBinding",
    "BufferTensorDesc",
    "CommandList",
    "CommandRecorder",
    "CompiledOperator",
    "DataType",
    "Device",
    "DmlError",
    "DmlTypeError",
    "ElementWiseBitAndOperatorDesc",
    "ElementWiseBitCountOperatorDesc",
    "ElementWiseBitNotOperatorDesc",
    "ElementWiseBitOrOperatorDesc",
    "ElementWiseBitShiftLeftOperatorDesc",
    "ElementWiseBitShiftRightOperatorDesc",
    "ElementWiseBitXorOperatorDesc",
    "ExecutionFlags",
    "Feature",
    "FeatureLevel",
    "Operator",
    "OperatorDesc",
    "OperatorInitializer",
    "OperatorType",
    "TensorFlags",
    "calc_buffer_tensor_size",
]
