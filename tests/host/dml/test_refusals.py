"""Whatever DirectML refuses is refused by name, in one line, before the device is accessed.

Three dots in the words of a row stand for any text.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, FeatureLevel, TensorFlags
from support.host.arrays import model
from support.host.dml_bench import (
    COUNT,
    NOT,
    NOTHING,
    REMOVED,
    ROWS,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    U8,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    XOR,
    Bench,
    refusals,
    u8,
)
from support.host.model_link import ModelDriver
from support.host.refusals import literal, refused, takes_or_refuses

INVALID = "E_INVALIDARG"
AND, OR = dml.ElementWiseBitAndOperatorDesc, dml.ElementWiseBitOrOperatorDesc
Tensor: Any = BufferTensorDesc
OTHER = dml.Device(ModelDriver())
NOT_2, XOR_3 = NOT(U8, U8), XOR(U8, U8, U8)

Call = Callable[[Any], object]


def create(operator: Any) -> Call:
    """Return the call that creates ``operator``."""
    return lambda b: b.create(operator)


def all_of(tensor: BufferTensorDesc) -> Call:
    return create(NOT(tensor, tensor))


def bind(operator: dml.OperatorDesc, *, inputs: Any = None, outputs: Any = None) -> Call:
    """Return the call that binds places, as `Bench.bound` reads them, to ``operator``."""

    def call(b: Bench) -> None:
        table = b.device.create_binding_table(b.compile(operator))
        if inputs is not None:
            table.bind_inputs([b.bound(x) for x in inputs])
        if outputs is not None:
            table.bind_outputs([b.bound(x) for x in outputs])

    return call


def use(operator: dml.OperatorDesc, *places: Any) -> Call:
    return lambda b: b.use(operator, *places)


# --- tensors ----------------------------------------------------------------------------------

A_LIST = "expected a list of integers"
TYPES = "expected one of float32, float16, ..., int64"
HUGE = 2**32 - 1

test_arguments_of_descriptions_of_a_wrong_kind = refusals(
    f"{INVALID}: BufferTensorDesc",
    [
        (lambda b: Tensor(UINT8, None), f".Sizes is None; {A_LIST}"),
        (lambda b: Tensor(UINT8, 3), f".Sizes is 3; {A_LIST}"),
        (lambda b: Tensor(UINT8, [2, "3"]), ".Sizes[1] is '3'; expected an integer"),
        (lambda b: Tensor(UINT8, [2.0]), ".Sizes[0] is 2.0; expected an integer"),
        (lambda b: Tensor(UINT8, ["2"]), ".Sizes[0] is '2'; expected an integer"),
        (lambda b: Tensor(UINT8, [None]), ".Sizes[0] is None; expected an integer"),
        (lambda b: Tensor(UINT8, [np.zeros((9, 9))]), ".Sizes[0] is of type ndarray; expected"),
        (lambda b: Tensor(UINT8, ["x" * 99]), ".Sizes[0] is of type str; expected an integer"),
        (lambda b: Tensor(UINT8, [2], [None]), ".Strides[0] is None; expected an integer"),
        (lambda b: Tensor(UINT8, [2], None, "OWNED"), ".Flags is 'OWNED'; expected an integer"),
        (lambda b: Tensor(UINT8, [2], None, -1), ".Flags is -1; expected TensorFlags"),
        (lambda b: Tensor(UINT8, [2], None, 0, 4.5), ".TotalTensorSizeInBytes is 4.5; expected"),
        (lambda b: Tensor(UINT8, [2], None, 0, 4, []), ".GuaranteedBaseOffsetAlignment is of type"),
        (lambda b: Tensor(99, [2]), ".DataType is 99; expected a DataType"),
        (lambda b: Tensor(None, [2]), ".DataType is None; expected a DataType"),
        (lambda b: Tensor("UINT8", [2]), ".DataType is 'UINT8'; expected a DataType"),
        (lambda b: Tensor.from_array([1, 2]), ".Array is of type list; expected an array of NumPy"),
    ],
    dml.DmlTypeError,
)
test_types_that_directml_lacks = refusals(
    f"{INVALID}: ",
    [
        *(
            (lambda b, x=x: DataType.from_numpy(x), f"DataType.NumPy is {shown}; {TYPES}")
            for x, shown in [
                (np.bool_, "'bool'"),
                (np.complex64, "'complex64'"),
                ("U3", "'str96'"),
                ("UINT8", "'UINT8'"),
                (None, "None"),
                (3, "3"),
            ]
        ),
        (lambda b: Tensor.from_array(np.zeros(4, bool)), "...is 'bool'; expected one of float32"),
        (lambda b: Tensor.from_array(np.zeros(4, complex)), "...is 'complex128'; expected one of"),
    ],
    dml.DmlTypeError,
)


@pytest.mark.parametrize("make", ["", "UNKNOWN", "calc_buffer_tensor_size", "reinterpret"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([-1],), "Sizes[0] is -1; expected 0 to 4294967295"),
        (([2, 2**32, 3],), "Sizes[1] is 4294967296; expected 0 to 4294967295"),
        (([2, 3], [3, -1]), "Strides[1] is -1; expected 0 to 4294967295"),
        (([2, 3], [2**32, 1]), "Strides[0] is 4294967296; expected 0 to 4294967295"),
        (([2, 3], []), "Strides is []; expected 2 numbers, as in Sizes"),
        (([2, 3], [1]), "Strides is [1]; expected 2 numbers, as in Sizes"),
        (([2], [1, 1]), "Strides is [1, 1]; expected 1 numbers, as in Sizes"),
        (([], [1]), "Strides is [1]; expected 0 numbers, as in Sizes"),
    ],
)
def test_sizes_and_strides_are_32_bits(make: str, arguments: tuple[Any, ...], words: str) -> None:
    with dml.Device(ModelDriver()) as device:
        x = dml.input_tensor(dml.Graph(device), 0, BufferTensorDesc(UINT32, [6]))
        calls: dict[str, Call] = {
            "": lambda b: Tensor(UINT32, *arguments),
            "UNKNOWN": lambda b: Tensor(DataType.UNKNOWN, *arguments),
            "calc_buffer_tensor_size": lambda b: dml.calc_buffer_tensor_size(UINT32, *arguments),
            "reinterpret": lambda b: dml.reinterpret(x, UINT32, *arguments),
        }
        name = "DMLCalcBufferTensorSize" if "calc" in make else "BufferTensorDesc"
        with refused(device, dml.DmlError, f"^{INVALID}: {literal(f'{name}.{words}')}$"):
            calls[make](None)


def own(field: str, *values: Any) -> Iterable[BufferTensorDesc]:
    return (Tensor(UINT8, [16], **{field: value}) for value in values)


SIZE, ALIGNMENT = "total_tensor_size_in_bytes", "guaranteed_base_offset_alignment"
TOTAL = "TotalTensorSizeInBytes"
GUARANTEED = "GuaranteedBaseOffsetAlignment"
test_tensors_that_no_operator_takes = refusals(
    f"{INVALID}: ",
    [
        (lambda b: Tensor.from_array(np.zeros(4, ">u4")), "...is >u4; expected little-endian elem"),
        *(
            (lambda b, f=field, n=n: Tensor(UINT8, [2], **{f: n}), f"...{name} is {n}; expected 0 ")
            for field, name, bits in ((SIZE, TOTAL, 64), (ALIGNMENT, GUARANTEED, 32))
            for n in (-16, 2**bits)
        ),
        (lambda b: Tensor(UINT8, [2], **{SIZE: 2**64}), f"...to {2**64 - 1}"),
        (lambda b: Tensor(UINT8, [2], **{ALIGNMENT: 2**32}), f"...to {HUGE}"),
        (all_of(Tensor(UINT32, [HUGE] * 3)), "InputTensor.Sizes is ...; expected at most"),
        *(
            (all_of(u8(n)), f"InputTensor.Sizes is {n}; expected at most {HUGE} elements")
            for n in ([2**16, 2**16], [HUGE, 2], [2**31, 2**31])
        ),
        (create(AND(U8, u8([16], [HUGE]), U8)), "BTensor.Strides is ...; ...from first to last"),
        (
            all_of(BufferTensorDesc(UINT16, [2], total_tensor_size_in_bytes=2**33 + 4)),
            f"InputTensor.{TOTAL} is {2**33 + 4}; expected at most 8589934592",
        ),
        *(
            (
                create(OR(u8([2, 3], strides, total), u8([2, 3]), u8([2, 3]))),
                f"ATensor.{TOTAL} is {total}; expected at least {least}",
            )
            # Six bytes of elements take eight, as whole words are bound.
            for strides, total, least in (
                (None, 4, 8),
                (None, 7, 8),
                ([8, 1], 11, 12),
                ([0, 0], 0, 4),
            )
        ),
        *(
            (
                all_of(BufferTensorDesc(kind, [2], guaranteed_base_offset_alignment=n)),
                f"InputTensor.{GUARANTEED} is {n}; ...power of two from {kind.itemsize} up",
            )
            for kind, n in ((UINT32, 2), (UINT64, 4), (UINT8, 48))
        ),
        (all_of(Tensor(DataType.UNKNOWN, [1])), "InputTensor.DataType is UNKNOWN; expected one of"),
        (create(COUNT(u8([2, 3]), u8([2, 2]))), "OutputTensor.Sizes is [2, 2]; ...[2, 3], as in"),
        *(
            (create(operator), f"...Flags is {flags}; expected NONE or OWNED_BY_DML")
            for flags in (2, 3, 1 << 40)
            for x in own("flags", TensorFlags(flags))
            for operator in (NOT(x, U8), XOR(U8, x, U8), NOT(U8, x))
        ),
        (create(NOT(NOTHING, U8)), "InputTensor.Desc is None; expected a BufferTensorDesc"),
        (create(NOT(U8, NOTHING)), "OutputTensor.Desc is None; expected a BufferTensorDesc"),
        (create(XOR(U8, NOTHING, U8)), "BTensor.Desc is None; expected a BufferTensorDesc"),
        (create(COUNT(NOTHING, NOTHING)), "InputTensor.Desc is None; expected a BufferTensorDesc"),
    ],
)  # fmt: skip

# --- bindings ---------------------------------------------------------------------------------

UNBOUND = "expected a buffer when the operator is executed"
RANGES: list[tuple[BufferTensorDesc, Any, str]] = [
    *((U8, (n, 16), f"Offset is {n}; ...a multiple of 16") for n in (1, 4, 8, 15, 17, -16, -1)),
    *((x, (16, 16), "Offset is 16; expected a multiple of 64") for x in own(ALIGNMENT, 64)),
    *((x, (4, 16), "Offset is 4; expected a multiple of 16") for x in own(ALIGNMENT, 4)),
    *((U8, (0, n), f"SizeInBytes is {n}; expected at least 16") for n in (0, 12, 15, -4)),
    *((x, (0, 99), "SizeInBytes is 99; expected at least 100") for x in own(SIZE, 100)),
    (U8, (0, 257), "SizeInBytes is 257; expected at most 256"),
    (U8, (240, 17), "SizeInBytes is 17; expected at most 16"),
    (U8, (256, 16), "SizeInBytes is 16; expected at most 0"),
    (U8, (256, None), "SizeInBytes is 0; expected at least 16"),
    (U8, (272, None), "Offset is 272; expected ...inside the buffer's 256 bytes"),
]  # fmt: skip
NO_SIZE = "Buffer is bound; expected ...its size is 0"
PARTLY = [
    ((0, 32), (64, 16), (16, 16), "ATensor"),  # inside
    ((0, 17), (64, 16), (16, 16), "ATensor"),  # by a byte
    ((16, 16), (64, 16), (0, 48), "ATensor"),  # around
    ((64, 16), (0, 32), (16, 32), "BTensor"),  # behind
    ((64, 16), (16, 32), (0, 32), "BTensor"),  # before
    ((0, 16), (64, 16), (0, 32), "ATensor"),  # same start
    ((16, 16), (64, 16), (0, 32), "ATensor"),  # same end
]
BOTH = "OutputTensor.Buffer is in place of ATensor and BTensor; expected ...one input at most"
ROWWISE, COLUMNS = u8([4, 4]), u8([4, 4], [1, 4])


def twice(write: Any, strides: list[int]) -> Call:
    """Return the call that records a graph in place of the input that it reads twice."""

    def call(b: Bench) -> None:
        x = dml.Graph(b.device)
        a = dml.input_tensor(x, 0, ROWWISE)
        operator = x.compile([write(a, dml.reinterpret(a, UINT8, [4, 4], strides))])
        b.record_dispatch(operator, b.at(0), b.at(0))

    return call


test_bindings = refusals(
    f"{REMOVED}: ",
    [
        *((bind(NOT(x, x), inputs=[at]), f"InputTensor.{words}") for x, at, words in RANGES),
        *((bind(NOT(x, x), outputs=[at]), f"OutputTensor.{words}") for x, at, words in RANGES),
        (
            bind(NOT_2, inputs=[BufferBinding(OTHER.create_buffer(16))]),
            "InputTensor.Buffer is of another device; expected ...this device",
        ),
        (bind(NOT_2, inputs=[[]]), "InputTensor.BindingType is of type list; expected a BufferB"),
        (bind(XOR_3, inputs=[0]), "BindInputs.BindingCount is 1; expected 2"),
        (bind(XOR_3, inputs=[0, 0, 0]), "BindInputs.BindingCount is 3; expected 2"),
        (bind(XOR_3, outputs=[0, 16]), "BindOutputs.BindingCount is 2; expected 1"),
        (bind(XOR_3, inputs=[0, None]), f"BTensor.Buffer is not bound; {UNBOUND}"),
        (bind(NOT_2, outputs=[None]), f"OutputTensor.Buffer is not bound; {UNBOUND}"),
        *(
            (
                use(XOR_3, a, b, y),
                f"OutputTensor.Buffer is bytes {y[0]} to {sum(y) - 1}; ...the same bytes as {name}",
            )
            for a, b, y, name in PARTLY
        ),
        (use(COUNT(U8, U8), 0, 0), "OutputTensor.Buffer is bytes 0 to 15; ...COUNT does not work"),
        (use(SHIFT_LEFT(U8, U8, U8), 0, 0, 0), BOTH),
        (use(SHIFT_RIGHT(U8, U8, U8), 0, 0, 0), BOTH),
        (
            use(NOT(ROWWISE, COLUMNS), 0, 0),
            "OutputTensor.Strides is [1, 4]; expected [4, 1], as in InputTensor",
        ),
        (
            use(NOT(U8, u8([16], None, 32)), (0, 32), (0, 32)),
            f"OutputTensor.{TOTAL} is 32; expected 16, as in InputTensor",
        ),
        (
            twice(dml.bit_xor, [1, 4]),
            "GraphOutputs[0].Strides is [4, 1]; expected [1, 4], as in Nodes[0].BTensor",
        ),
        (twice(dml.bit_and, [0, 1]), "...expected [0, 1], as in Nodes[0].BTensor"),
        (twice(dml.bit_shift_left, [4, 1]), "...in place of Nodes[0].ATensor and Nodes[0].BTensor"),
        (lambda b: b.table.bind_temporary_resource(b.at(0)), f"TemporaryResource.{NO_SIZE}"),
        (lambda b: b.table.bind_persistent_resource(b.at(0)), f"PersistentResource.{NO_SIZE}"),
    ],
)  # fmt: skip


def initializers_table(bench: Bench) -> Any:
    return bench.device.create_binding_table(bench.device.create_operator_initializer([]))


def record(bench: Bench, commands: Any, table: Any) -> None:
    bench.recorder.record_dispatch(commands, bench.operator, table)


def closed() -> bitlane.Device:
    device = model()
    device.close()
    return device


def ask(feature: Any, about: Any) -> Call:
    return lambda b: b.device.check_feature_support(feature, about)


BAD_BINDINGS: list[tuple[Any, str]] = [
    (BufferBinding(NOTHING), "Buffer is None; expected a buffer of Device.create_buffer"),
    (BufferBinding("3"), "Buffer is '3'; expected a buffer"),  # type: ignore[arg-type]
    (3, "BindingType is 3; expected a BufferBinding or None"),
    ("x", "BindingType is 'x'; expected"),
]
OBJECTS: dict[str, Callable[[Any, Any], object]] = {
    "CompileOperator.Operator": lambda b, x: b.device.compile_operator(x),
    "CreateOperatorInitializer.Operator": lambda b, x: b.device.create_operator_initializer([x]),
    "CreateBindingTable.Dispatchable": lambda b, x: b.device.create_binding_table(x),
    "Execute.CommandList": lambda b, x: b.device.execute(x),
    "RecordDispatch.CommandList": lambda b, x: record(b, x, b.table),
    "RecordDispatch.BindingTable": lambda b, x: record(b, b.commands, x),
    "OperatorDesc.Type": lambda b, x: b.device.create_operator(x),
}
NO_DEVICE = "Device.Device is ...; expected what bitlane.open returns"
A_TYPE = "expected a NumPy type"
test_arguments_of_a_wrong_kind = refusals(
    "...",
    [
        *((lambda b, x=x: b.table.bind_inputs([x]), words) for x, words in BAD_BINDINGS),
        *((lambda b, x=x: b.table.bind_outputs([x]), words) for x, words in BAD_BINDINGS),
        (bind(NOT_2, inputs=[("0", None)]), "Offset is '0'; expected an integer"),
        (bind(NOT_2, inputs=[(0.0, None)]), "Offset is 0.0; expected an integer"),
        (bind(NOT_2, inputs=[(0, "16")]), "SizeInBytes is '16'; expected an integer or None"),
        *(
            (lambda b, c=call, x=x: c(b, x), f"{name} is ...; expected ")
            for name, call in OBJECTS.items()
            for x in (None, 3, "x", [])
        ),
        (lambda b: b.device.create_command_list(NOTHING), "CreateCommandList.Label is None"),
        (lambda b: b.table.bind_inputs(None), "BindInputs.Bindings is None; expected a list"),
        (lambda b: b.table.bind_outputs(3), "BindOutputs.Bindings is 3; expected a list"),
        (lambda b: initializers_table(b).bind_inputs(7), "BindInputs.Bindings is 7"),
        (lambda b: b.buffer.write(None), "Buffer.Data is None; expected an array of numbers"),
        (lambda b: b.buffer.write([None]), "Buffer.Data is of type list; expected"),
        (lambda b: b.buffer.read(dtype="zz"), f"Buffer.DataType is 'zz'; {A_TYPE}"),
        *(
            (lambda b, x=x: b.buffer.read(dtype=x), f"Buffer.DataType is ...; {A_TYPE}")
            for x in ("V", "S0", "no such type")
        ),
        (lambda b: b.buffer.write([1], 1.5), "Buffer.Offset is 1.5"),
        (lambda b: b.buffer.write([1], "4"), "Buffer.Offset is '4'"),
        (lambda b: b.buffer.read(offset=1.5), "Buffer.Offset is 1.5"),
        (lambda b: b.buffer.read(offset="4"), "Buffer.Offset is '4'"),
        (lambda b: b.buffer.read(1.5), "Buffer.SizeInBytes is 1.5"),
        (lambda b: b.buffer.read("4"), "Buffer.SizeInBytes is '4'"),
        (lambda b: b.device.create_buffer("9"), "Buffer.SizeInBytes is '9'"),
        (lambda b: b.device.create_buffer(0), "Buffer.SizeInBytes is 0; expected at least 1"),
        (lambda b: b.device.create_buffer(-4), "Buffer.SizeInBytes is -4; expected at least 1"),
        *((lambda b, x=x: dml.Device(x), NO_DEVICE) for x in ("sim", None, 3, np.zeros(4))),
        (lambda b: dml.Device(closed()), "Device.Device is closed; expected a device that is open"),
        (lambda b: dml.Device(b.driver, 5), "FeatureLevel is 5; expected one of LEVEL_1_0"),
        *(
            (lambda b, x=x: b.compile(NOT(U8, U8), x), "CompileOperator.Flags is ...; expected ")
            for x in (8, -1, "x", None, 1.0)
        ),
        (ask(7, 5), "Feature is 7; expected one of TENSOR_DATA"),
        (ask("x", 5), "Feature is 'x'; expected one of"),
        (ask(0, 99), "DataType is 99; expected one of UNKNOWN, FLOAT32"),
        (ask(1, 0x1000), "RequestedFeatureLevels is 4096"),
        (ask(1, [5]), "RequestedFeatureLevels is 5; expected"),
        (ask(1, [FeatureLevel.LEVEL_6_4]), "DXGI_ERROR_UNSUPPORTED: ...a level of 4_1 or below"),
        *(
            (lambda b, x=x, n=n: b.buffer.write(np.zeros(n, "u1"), x), "inside the buffer's 256")
            for x, n in ((-1, 1), (0, 257), (256, 1), (252, 5))
        ),
        *(
            (lambda b, x=x, n=n: b.buffer.read(n, x), "inside the buffer's 256")
            for x, n in ((-1, 1), (0, 257), (256, 1), (252, 5))
        ),
        (lambda b: OTHER.compile_operator(b.create(NOT_2)), "another device"),
        (lambda b: OTHER.create_operator_initializer([b.compile(NOT_2)]), "another device"),
        (lambda b: OTHER.execute(b.commands), "another device"),
        (lambda b: record(b, OTHER.create_command_list(), b.table), "another device"),
        (lambda b: b.device.run(NOT_2, 3), "Run.Inputs is 3"),
    ],
)  # fmt: skip


VALID: list[Callable[[Any, Any], object]] = [
    *OBJECTS.values(),
    lambda b, x: Tensor(x, [2]),
    lambda b, x: Tensor(UINT8, x),
    lambda b, x: Tensor(UINT8, [2], x),
    lambda b, x: Tensor(UINT8, [2], None, x),
    lambda b, x: Tensor(UINT8, [2], None, TensorFlags.NONE, x),
    lambda b, x: Tensor(UINT8, [2], None, TensorFlags.NONE, None, x),
    lambda b, x: Tensor.from_array(x),
    lambda b, x: b.create(XOR(x, U8, U8)),
    lambda b, x: b.create(XOR(U8, U8, x)),
    lambda b, x: b.create(replace(ROWS, axes=x)),
    lambda b, x: b.create(replace(ROWS, function=x)),
    lambda b, x: b.bind(x, x),
    lambda b, x: b.bind(BufferBinding(x), None),
    lambda b, x: b.bind(b.at(x), None),
    lambda b, x: b.bind(b.at(0, x), None),
    lambda b, x: b.table.bind_inputs(x),
    lambda b, x: b.table.reset(x),
    lambda b, x: b.device.run(NOT_2, x),
    lambda b, x: b.device.run(NOT_2, [x]),
    lambda b, x: b.device.create_command_list(x),
    lambda b, x: b.device.check_feature_support(x, UINT8),
    lambda b, x: b.device.check_feature_support(0, x),
    lambda b, x: b.buffer.read(offset=x),
    lambda b, x: b.buffer.read(dtype=x),
    lambda b, x: b.buffer.write(x),
    lambda b, x: b.buffer.write(np.zeros(1, "u1"), x),
    lambda b, x: dml.Device(x),
    lambda b, x: dml.Device(b.driver, x),
    lambda b, x: dml.Graph(x),
    lambda b, x: b.device.compile_graph(x),
    lambda b, x: dml.bit_not(x),
]


@pytest.mark.parametrize("call", VALID)
def test_an_argument_of_any_kind_is_taken_or_refused_in_one_line(
    call: Callable[[Any, Any], object],
) -> None:
    bench = Bench(NOT_2)
    takes_or_refuses(lambda value: call(bench, value), bench.device)
