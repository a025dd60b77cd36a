"""DirectML's object model and rules, in Python case, executed by a bitlane device.

Whatever DirectML refuses raises ``bitlane.DmlError`` before anything reaches the device.
"""

from types import ModuleType as _ModuleType

from ..errors import DmlError as DmlError
from ..errors import DmlTypeError as DmlTypeError
from .binding import BindingProperties as BindingProperties
from .binding import BindingTable as BindingTable
from .binding import BufferBinding as BufferBinding
from .binding import CompiledOperator as CompiledOperator
from .binding import OperatorInitializer as OperatorInitializer
from .buffer import Buffer as Buffer
from .device import Device as Device
from .execution import CommandList as CommandList
from .execution import CommandRecorder as CommandRecorder
from .expressions import Expression as Expression
from .expressions import Graph as Graph
from .expressions import bit_and as bit_and
from .expressions import bit_count as bit_count
from .expressions import bit_not as bit_not
from .expressions import bit_or as bit_or
from .expressions import bit_shift_left as bit_shift_left
from .expressions import bit_shift_right as bit_shift_right
from .expressions import bit_xor as bit_xor
from .expressions import input_tensor as input_tensor
from .expressions import reduce as reduce
from .expressions import reinterpret as reinterpret
from .graph import GraphDesc as GraphDesc
from .graph import InputGraphEdgeDesc as InputGraphEdgeDesc
from .graph import IntermediateGraphEdgeDesc as IntermediateGraphEdgeDesc
from .graph import OperatorGraphNodeDesc as OperatorGraphNodeDesc
from .graph import OutputGraphEdgeDesc as OutputGraphEdgeDesc
from .operators import ElementWiseBitAndOperatorDesc as ElementWiseBitAndOperatorDesc
from .operators import ElementWiseBitCountOperatorDesc as ElementWiseBitCountOperatorDesc
from .operators import ElementWiseBitNotOperatorDesc as ElementWiseBitNotOperatorDesc
from .operators import ElementWiseBitOrOperatorDesc as ElementWiseBitOrOperatorDesc
from .operators import ElementWiseBitShiftLeftOperatorDesc as ElementWiseBitShiftLeftOperatorDesc
from .operators import ElementWiseBitShiftRightOperatorDesc as ElementWiseBitShiftRightOperatorDesc
from .operators import ElementWiseBitXorOperatorDesc as ElementWiseBitXorOperatorDesc
from .operators import Operator as Operator
from .operators import OperatorDesc as OperatorDesc
from .operators import ReduceOperatorDesc as ReduceOperatorDesc
from .tensor import MINIMUM_BUFFER_TENSOR_ALIGNMENT as MINIMUM_BUFFER_TENSOR_ALIGNMENT
from .tensor import TENSOR_DIMENSION_COUNT_MAX as TENSOR_DIMENSION_COUNT_MAX
from .tensor import TENSOR_DIMENSION_COUNT_MAX1 as TENSOR_DIMENSION_COUNT_MAX1
from .tensor import BufferTensorDesc as BufferTensorDesc
from .tensor import calc_buffer_tensor_size as calc_buffer_tensor_size
from .types import DataType as DataType
from .types import ExecutionFlags as ExecutionFlags
from .types import Feature as Feature
from .types import FeatureLevel as FeatureLevel
from .types import OperatorType as OperatorType
from .types import ReduceFunction as ReduceFunction
from .types import TensorFlags as TensorFlags

# Star imports and the reference read it; type checkers know the names without it.
globals()["__all__"] = sorted(
    name
    for name, value in globals().items()
    if not name.startswith("_") and not isinstance(value, _ModuleType)
)
