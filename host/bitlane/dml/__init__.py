"""DirectML's object model and rules, in Python case, executed by a bitlane device.

Whatever DirectML refuses raises ``bitlane.DmlError`` before anything reaches the device.
"""

from ..errors import DmlError, DmlTypeError
from .binding import (
    BindingProperties,
    BindingTable,
    BufferBinding,
    CompiledOperator,
    OperatorInitializer,
)
from .buffer import Buffer
from .device import Device
from .execution import CommandList, CommandRecorder
from .expressions import (
    Expression,
    Graph,
    bit_and,
    bit_count,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xor,
    input_tensor,
    reduce,
    reinterpret,
)
from .graph import (
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
)
from .operators import (
    ElementWiseBitAndOperatorDesc,
    ElementWiseBitCountOperatorDesc,
    ElementWiseBitNotOperatorDesc,
    ElementWiseBitOrOperatorDesc,
    ElementWiseBitShiftLeftOperatorDesc,
    ElementWiseBitShiftRightOperatorDesc,
    ElementWiseBitXorOperatorDesc,
    Operator,
    OperatorDesc,
    ReduceOperatorDesc,
)
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
    ReduceFunction,
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
    "Expression",
    "Feature",
    "FeatureLevel",
    "Graph",
    "GraphDesc",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "Operator",
    "OperatorDesc",
    "OperatorGraphNodeDesc",
    "OperatorInitializer",
    "OperatorType",
    "OutputGraphEdgeDesc",
    "ReduceFunction",
    "ReduceOperatorDesc",
    "TensorFlags",
    "bit_and",
    "bit_count",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xor",
    "calc_buffer_tensor_size",
    "input_tensor",
    "reduce",
    "reinterpret",
]
