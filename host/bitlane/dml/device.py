"""The device of DirectML's object model: creates everything else, and executes command lists."""

import operator as operators
from collections.abc import Sequence
from enum import IntEnum
from typing import Literal, Protocol, TypeVar, cast, overload
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from ..closeable import Closeable
from ..driver import Driver
from ..errors import DmlError, DmlTypeError, LayoutError, UnsupportedError
from .binding import (
    BindingTable,
    CompiledOperator,
    Dispatchable,
    OperatorInitializer,
    check_uninitialized,
)
from .buffer import Buffer, Parent
from .compiled import compile_graph, compile_operator
from .execution import CommandList, CommandRecorder, execute_steps, run_operator
from .graph import GraphDesc, connect
from .operators import NodeDesc, Operator, OperatorDesc
from .refusals import expect_type
from .rules import check_operator, tensor_types
from .types import DataType, ExecutionFlags, Feature, FeatureLevel

_Enum = TypeVar("_Enum", bound=IntEnum)


class HasDriver(Protocol):
    """``bitlane.Device``, and what else stands on a driver."""

    @property
    def driver(self) -> Driver: ...


class Device(Closeable):
    """``IDMLDevice`` on a bitlane device.

    ``device`` is a ``bitlane.Device``, or a driver itself; it stays the caller's to close.
    ``feature_level`` is what the device presents itself as: what that level lacks is refused.
    Closing this object (or leaving its ``with`` statement) gives back its buffers.

    What an operator owns (OWNED_BY_DML) is copied by the device itself: with COPY, or OR or AND
    of the input with itself. Only on a circuit without any of them it goes by way of the host.

    DirectML removes its device after an invalid call to a method that returns nothing, and only a
    new one helps. Here the call raises, changes nothing, and the device stays usable.
    """

    def __init__(
        self,
        device: Driver | HasDriver,
        feature_level: FeatureLevel = FeatureLevel.LEVEL_4_1,
    ) -> None:
        driver = getattr(device, "driver", device)
        if not isinstance(driver, Driver):
            raise DmlTypeError("Device", "Device", device, "what bitlane.open returns")
        if getattr(device, "closed", False):
            raise DmlError("Device", "Device", "closed", "a device that is open")
        self.driver = driver
        self.feature_level = _member("Device", "FeatureLevel", feature_level, FeatureLevel)
        self._buffers: WeakSet[Buffer] = WeakSet()

    def close(self) -> None:
        """Give back every buffer of this device, copies of owned inputs too. May be repeated."""
        for buffer in tuple(self._buffers):
            buffer.close()

    def __repr__(self) -> str:
        return f"<bitlane.dml.Device: feature level {self.feature_level}>"

    @overload
    def check_feature_support(
        self, feature: Literal[Feature.TENSOR_DATA_TYPE_SUPPORT], query: DataType
    ) -> bool: ...

    @overload
    def check_feature_support(
        self, feature: Literal[Feature.FEATURE_LEVELS], query: Sequence[FeatureLevel]
    ) -> FeatureLevel: ...

    def check_feature_support(
        self, feature: Feature, query: DataType | Sequence[FeatureLevel]
    ) -> bool | FeatureLevel:
        """``CheckFeatureSupport``.

        ``TENSOR_DATA_TYPE_SUPPORT`` takes a data type, and returns whether tensors of it exist at
        this device's level; operators may take fewer types. ``FEATURE_LEVELS`` takes the levels
        that the caller knows, and returns the highest of them that the device has; if it has none
        of them, raises ``DmlError``.
        """
        feature = _member("CheckFeatureSupport", "Feature", feature, Feature)
        if feature is Feature.TENSOR_DATA_TYPE_SUPPORT:
            query = _member("CheckFeatureSupport", "DataType", query, DataType)
            return query in tensor_types(self.feature_level)
        expect_type("CheckFeatureSupport", "RequestedFeatureLevels", query, Sequence)
        levels = [
            _member("CheckFeatureSupport", "RequestedFeatureLevels", level, FeatureLevel)
            for level in cast(Sequence[FeatureLevel], query)
        ]
        supported = [level for level in levels if level <= self.feature_level]
        if not supported:
            names, expected = list(map(str, levels)), f"a level of {self.feature_level} or below"
            raise _unsupported("FeatureLevels", "RequestedFeatureLevels", names, expected)
        return max(supported)

    def create_buffer(self, size: int) -> Buffer:
        """A buffer of at least ``size`` bytes, rounded up to a multiple of 4; contents undefined.

        Raises ``DmlError`` for a size below 1, and what the driver raises when the device's
        memory is full.
        """
        try:
            size = operators.index(size)
        except TypeError:
            raise DmlTypeError("Buffer", "SizeInBytes", size, "an integer") from None
        if size < 1:
            raise DmlError("Buffer", "SizeInBytes", size, "at least 1")
        buffer = Buffer(self, size)
        self._buffers.add(buffer)
        return buffer

    def create_operator(self, desc: NodeDesc) -> Operator:
        """``CreateOperator``: checks every rule on descriptions. Raises ``DmlError``."""
        if not isinstance(desc, NodeDesc):
            expected = "a description of an element-wise bit operator, or of REDUCE"
            raise DmlError("OperatorDesc", "Type", type(desc).__name__, expected)
        check_operator(desc, self.feature_level)
        if isinstance(desc, OperatorDesc):
            self._check_circuit(desc)
        return Operator(self, desc)

    def compile_operator(
        self, operator: Operator, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """``CompileOperator``. A bit operator is one pass: there is nothing to fuse.

        Raises ``DmlError``, for REDUCE too, which stands in graphs alone.
        """
        expect_type("CompileOperator", "Operator", operator, Operator)
        self._check_mine("CompileOperator", operator.device)
        desc = operator.desc
        if not isinstance(desc, OperatorDesc):
            expected = "a bit operator; compile_graph takes REDUCE, behind BIT_COUNT"
            raise _unsupported("CompileOperator", "Operator", desc.operator_type, expected)
        program = compile_operator(desc, self.driver.geometry.abilities)
        return CompiledOperator(self, program, _flags("CompileOperator", flags))

    def compile_graph(
        self, graph: GraphDesc, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """``CompileGraph``: one operator that does what the nodes do, in as few passes as it can.

        What goes from node to node is not written where it need not be: inversions and logic go
        into the operators behind them, counts into their sums (``CompiledOperator.explain``).
        Memory for the rest is taken when the operator is initialised. The outputs share no bytes
        with the inputs; those of a graph of one node may, where the node's may.

        Raises ``DmlError`` for what ``DML_GRAPH_DESC`` does not allow, or the circuit cannot do.
        """
        connections = connect(graph)
        for node in graph.nodes:
            self._check_mine("CompileGraph", node.operator.device)
        checked = _flags("CompileGraph", flags)
        try:
            program = compile_graph(connections, self.driver.geometry.abilities)
        except (UnsupportedError, LayoutError) as error:
            expected = f"what it was built for ({error})"
            raise _unsupported("GraphDesc", "Nodes", "beyond this device", expected) from error
        return CompiledOperator(self, program, checked)

    def create_operator_initializer(
        self, operators: Sequence[CompiledOperator]
    ) -> OperatorInitializer:
        """``CreateOperatorInitializer``: dispatch it once, before the operators.

        Raises ``DmlError`` if one of them has been initialised already.
        """
        expect_type("CreateOperatorInitializer", "Operators", operators, Sequence)
        for operator in operators:
            check_uninitialized(operator)
            self._check_mine("CreateOperatorInitializer", operator.device)
        return OperatorInitializer(operators)

    def create_binding_table(self, dispatchable: Dispatchable) -> BindingTable:
        """``CreateBindingTable``. There are no descriptor heaps here."""
        kinds = (CompiledOperator, OperatorInitializer)
        expect_type("CreateBindingTable", "Dispatchable", dispatchable, kinds)
        return BindingTable(self, dispatchable)

    def create_command_recorder(self) -> CommandRecorder:
        """``CreateCommandRecorder``."""
        return CommandRecorder(self)

    def create_command_list(self, label: str = "") -> CommandList:
        """An empty command list, which DirectML has from Direct3D 12.

        Drivers that record commands store those of each of its dispatches under ``label``.
        Raises ``DmlTypeError`` unless it is text.
        """
        expect_type("CreateCommandList", "Label", label, str)
        return CommandList(self, label)

    def execute(self, *lists: CommandList) -> None:
        """Execute command lists, and wait until they are done.

        All dispatches of all lists are checked first (``DmlError``); then each acts as if all
        before it were complete, and what an initializer copies is copied by the device as a part
        of the same job. Raises what the driver raises when the device fails; later dispatches may
        have run in part then, no operator of the call is initialised, and a fault's ``index``
        counts the commands of all dispatches, copies included.
        """
        for command_list in lists:
            expect_type("Execute", "CommandList", command_list, CommandList)
            self._check_mine("Execute", command_list.device)
        execute_steps(self, [(each.label, step) for each in lists for step in each.steps()])

    @overload
    def run(
        self, desc: OperatorDesc, inputs: Sequence[npt.ArrayLike]
    ) -> npt.NDArray[np.generic]: ...

    @overload
    def run(
        self, desc: GraphDesc, inputs: Sequence[npt.ArrayLike]
    ) -> list[npt.NDArray[np.generic]]: ...

    def run(
        self, desc: OperatorDesc | GraphDesc, inputs: Sequence[npt.ArrayLike]
    ) -> npt.NDArray[np.generic] | list[npt.NDArray[np.generic]]:
        """The result of an operator on arrays, in one call; of a graph, a list of its outputs.

        >>> tensor = dml.BufferTensorDesc(dml.DataType.from_numpy(np.uint8), [2, 2])
        >>> desc = dml.ElementWiseBitNotOperatorDesc(tensor, tensor)
        >>> with bitlane.open("sim") as device, dml.Device(device) as dml_device:
        ...     dml_device.run(desc, [np.array([[0, 128], [42, 255]], np.uint8)])
        array([[255, 127],
               [213,   0]], dtype=uint8)

        ``inputs`` has an array for each input, OWNED_BY_DML or not: what the tensor's memory
        holds, in C order, from its first element to its last. It has the tensor's type; its shape
        does not matter, for a tensor may have gaps between its elements, or repeat them. The
        result has the sizes and strides of the output. Raises ``DmlError``, and what ``execute``
        does.
        """
        if isinstance(desc, GraphDesc):
            return run_operator(self.compile_graph(desc), inputs)
        (result,) = run_operator(self.compile_operator(self.create_operator(desc)), inputs)
        return result

    def _check_mine(self, method: str, device: Parent) -> None:
        if device is not self:
            raise DmlError(method, "Device", "another device", "an object that this one created")

    def _check_circuit(self, desc: OperatorDesc) -> None:
        """The circuit was built with the operation and, where it matters, with the lane."""
        geometry = self.driver.geometry
        if desc.op not in geometry.ops:
            names = ", ".join(op.name for op in sorted(geometry.ops))
            expected = f"an operation that this device was built with: {names}"
            raise _unsupported(str(desc.operator_type), "Type", desc.op.name, expected)
        name, tensor = desc.inputs[0]
        lanes = {lane.bytes for lane in geometry.lanes}
        if desc.op.splits_lanes and tensor.data_type.itemsize not in lanes:
            widths = ", ".join(str(lane.bits) for lane in sorted(geometry.lanes))
            built = f"which this device was built with for {desc.operator_type}"
            expected = f"elements of {widths} bits, {built}"
            raise _unsupported(name, "DataType", tensor.data_type.name, expected)


def _flags(method: str, flags: ExecutionFlags) -> ExecutionFlags:
    known = sum(ExecutionFlags)
    if not isinstance(flags, int) or flags & ~known:
        names = " | ".join(each.name or "" for each in ExecutionFlags)
        raise DmlTypeError(method, "Flags", flags, f"flags of {names}")
    return ExecutionFlags(flags)


def _unsupported(tensor: str, field: str, value: object, expected: str) -> DmlError:
    return DmlError(tensor, field, value, expected, hresult="DXGI_ERROR_UNSUPPORTED")


def _member(method: str, field: str, value: object, kind: type[_Enum]) -> _Enum:
    """The member of ``kind`` that ``value`` is. Raises ``DmlError`` if it is none."""
    try:
        return kind(cast(int, value))
    except (TypeError, ValueError):  # NumPy compares no structures with integers
        names = ", ".join(each.name for each in kind)
        raise DmlTypeError(method, field, value, f"one of {names}") from None
