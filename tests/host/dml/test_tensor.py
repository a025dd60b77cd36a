"""Types, values and sizes are DirectML's."""

from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import (
    BufferTensorDesc,
    DataType,
    DmlError,
    FeatureLevel,
    OperatorType,
    TensorFlags,
)
from support.host.model_driver import ModelDriver


def test_data_types_have_directmls_values() -> None:
    assert {member.name: member.value for member in DataType} == {
        "UNKNOWN": 0,
        "FLOAT32": 1,
        "FLOAT16": 2,
        "UINT32": 3,
        "UINT16": 4,
        "UINT8": 5,
        "INT32": 6,
        "INT16": 7,
        "INT8": 8,
        "FLOAT64": 9,
        "UINT64": 10,
        "INT64": 11,
    }


@pytest.mark.parametrize("data_type", list(DataType)[1:])
def test_data_types_and_numpy_types_map_both_ways(data_type: DataType) -> None:
    digits = "".join(filter(str.isdigit, data_type.name))
    assert data_type.itemsize == int(digits) // 8
    assert DataType.from_numpy(data_type.dtype) is data_type
    assert DataType.from_numpy(data_type.dtype.newbyteorder(">")) is data_type


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        (np.bool_, "'bool'"),
        (np.complex64, "'complex64'"),
        ("U3", "'str96'"),
        ("UINT8", "'UINT8'"),
        (None, "None"),
        (3, "3"),
    ],
)
def test_other_types_have_no_data_type(dtype: Any, shown: str) -> None:
    message = rf"DataType\.NumPy is {shown}; expected one of float32, float16, .*, int64$"
    with pytest.raises(dml.DmlTypeError, match=message):
        DataType.from_numpy(dtype)


def test_unknown_has_no_size() -> None:
    with pytest.raises(ValueError, match="UNKNOWN"):
        _ = DataType.UNKNOWN.itemsize


def test_feature_levels_have_directmls_values() -> None:
    assert [hex(level) for level in FeatureLevel] == [
        "0x1000", "0x2000", "0x2100", "0x3000", "0x3100", "0x4000", "0x4100", "0x5000",
        "0x5100", "0x5200", "0x6000", "0x6100", "0x6200", "0x6300", "0x6400",
    ]  # fmt: skip
    assert str(FeatureLevel.LEVEL_4_1) == "4_1"


def test_operator_types_have_directmls_values() -> None:
    assert {str(member): member.value for member in OperatorType} == {
        "DML_OPERATOR_REDUCE": 55,
        "DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_LEFT": 97,
        "DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_RIGHT": 98,
        "DML_OPERATOR_ELEMENT_WISE_BIT_AND": 121,
        "DML_OPERATOR_ELEMENT_WISE_BIT_OR": 122,
        "DML_OPERATOR_ELEMENT_WISE_BIT_XOR": 123,
        "DML_OPERATOR_ELEMENT_WISE_BIT_NOT": 124,
        "DML_OPERATOR_ELEMENT_WISE_BIT_COUNT": 125,
    }


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "size"),
    [
        (DataType.UINT8, [1], None, 4),
        (DataType.UINT8, [4], None, 4),
        (DataType.UINT8, [5], None, 8),
        (DataType.FLOAT32, [1, 1, 2, 3], None, 24),
        (DataType.FLOAT32, [1, 1, 2, 3], [6, 6, 3, 1], 24),
        (DataType.FLOAT16, [2, 3], [4, 1], 16),  # the last row is not padded: 7 elements
        (DataType.UINT32, [5, 5], [0, 0], 4),
        (DataType.UINT64, [3], [2], 40),
        (DataType.UINT8, [2**31, 3], [1, 2**31], 3 * 2**31),  # 32-bit arithmetic would wrap
    ],
)
def test_buffer_sizes(
    data_type: DataType, sizes: list[int], strides: list[int] | None, size: int
) -> None:
    assert dml.calc_buffer_tensor_size(data_type, sizes, strides) == size
    assert BufferTensorDesc(data_type, sizes, strides).total_tensor_size_in_bytes == size


def test_descriptions_take_numpy_integers_and_compare_by_value() -> None:
    sizes = np.array([2, 3])
    desc = BufferTensorDesc(DataType.UINT8, [int(size) for size in sizes])
    assert BufferTensorDesc(DataType.UINT8, tuple(sizes)) == desc
    assert desc.dimension_count == 2
    assert hash(desc) == hash(BufferTensorDesc(DataType.UINT8, [2, 3]))


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_descriptions_refuse_what_their_fields_cannot_hold(
    arguments: tuple[Any, ...], message: str
) -> None:
    for data_type in (DataType.UINT32, DataType.UNKNOWN):
        with pytest.raises(DmlError) as caught:
            BufferTensorDesc(data_type, *arguments)
        assert str(caught.value) == f"E_INVALIDARG: BufferTensorDesc.{message}"
    with pytest.raises(DmlError) as caught:
        dml.calc_buffer_tensor_size(DataType.UINT32, *arguments)
    assert str(caught.value) == f"E_INVALIDARG: DMLCalcBufferTensorSize.{message}"
    with dml.Device(ModelDriver()) as device:
        graph = dml.Graph(device)
        x = dml.input_tensor(graph, 0, BufferTensorDesc(DataType.UINT32, [6]))
        with pytest.raises(DmlError, match="BufferTensorDesc"):
            dml.reinterpret(x, DataType.UINT32, *arguments)


def test_a_size_beyond_all_fields_is_judged_with_the_operator() -> None:
    tensor = BufferTensorDesc(DataType.UINT32, [2**32 - 1] * 3)
    with dml.Device(ModelDriver()) as device:
        with pytest.raises(DmlError, match=r"InputTensor\.Sizes is .*; expected at most"):
            device.create_operator(dml.ElementWiseBitNotOperatorDesc(tensor, tensor))


@pytest.mark.parametrize(
    ("field", "value", "last"),
    [
        ("total_tensor_size_in_bytes", -8, 2**64 - 1),
        ("total_tensor_size_in_bytes", 2**64, 2**64 - 1),
        ("guaranteed_base_offset_alignment", -16, 2**32 - 1),
        ("guaranteed_base_offset_alignment", 2**32, 2**32 - 1),
    ],
)
def test_descriptions_refuse_other_numbers_of_bytes(field: str, value: int, last: int) -> None:
    name = "".join(word.capitalize() for word in field.split("_"))
    with pytest.raises(DmlError, match=rf"\.{name} is {value}; expected 0 to {last}$"):
        BufferTensorDesc(DataType.UINT8, [2], **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [[2.0], ["2"], [None]])
def test_descriptions_refuse_what_is_no_integer(sizes: list[int]) -> None:
    with pytest.raises(TypeError):
        BufferTensorDesc(DataType.UINT8, sizes)


def test_descriptions_cannot_be_changed() -> None:
    desc = BufferTensorDesc(DataType.UINT8, [2])
    with pytest.raises(AttributeError):
        desc.sizes = (3,)  # type: ignore[misc]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.int16).reshape(3, 4),
        np.arange(12, dtype=np.uint32).reshape(3, 4).T[:, ::2],
        np.broadcast_to(np.uint8(1), (2, 2)),
        np.array(7, np.uint64),
    ],
    ids=["packed", "turned", "repeated", "rank 0"],
)
def test_a_description_of_an_array_is_that_of_what_a_buffer_gets(array: Any) -> None:
    tensor = BufferTensorDesc.from_array(array, TensorFlags.OWNED_BY_DML)
    assert tensor.data_type.dtype == array.dtype
    assert tensor.flags is TensorFlags.OWNED_BY_DML
    with dml.Device(ModelDriver()) as device:
        buffer = device.create_buffer(tensor.total_tensor_size_in_bytes)
        buffer.write(array)
        written = buffer.read(array.nbytes, dtype=array.dtype).reshape(tensor.sizes)
    assert np.array_equal(written, np.atleast_1d(array))
    assert tensor.strides is None


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(4, bool), "is 'bool'; expected one of float32"),
        (np.zeros(4, ">u4"), "is >u4; expected little-endian elements"),
        (np.zeros(4, complex), "is 'complex128'; expected one of float32"),
        ([1, 2], "BufferTensorDesc.Array is of type list; expected an array of NumPy"),
    ],
    ids=["bool", "big-endian", "complex", "list"],
)
def test_arrays_that_directml_cannot_describe(array: Any, message: str) -> None:
    with pytest.raises(DmlError, match=message):
        BufferTensorDesc.from_array(array)
