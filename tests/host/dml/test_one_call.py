"""An operator on arrays in one call gives what its steps give, and leaves nothing behind."""

from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType, TensorFlags
from support.host.dml_bench import NOT, SHIFT_LEFT, XOR
from support.host.model_driver import ModelDriver

A = np.arange(6, dtype=np.uint16).reshape(2, 3)


def tensor(strides: list[int] | None = None, **fields: Any) -> BufferTensorDesc:
    return BufferTensorDesc(DataType.from_numpy(A.dtype), A.shape, strides, **fields)


def run(desc: dml.OperatorDesc, *inputs: Any) -> Any:
    driver = ModelDriver()
    with dml.Device(driver) as device:
        result = device.run(desc, inputs)
        assert driver.allocator.pieces == 0
        return result


@pytest.mark.parametrize("flags", list(TensorFlags))
def test_the_result_has_the_type_and_sizes_of_the_output(flags: TensorFlags) -> None:
    result = run(XOR(tensor(), tensor(flags=flags), tensor()), A, A[::-1])
    assert result.dtype == A.dtype
    assert np.array_equal(result, A ^ A[::-1])


def test_the_result_belongs_to_the_caller() -> None:
    result = run(NOT(tensor(), tensor()), A)
    result += 1
    assert np.array_equal(result, ~A + 1)


def test_inputs_are_what_the_memory_of_their_tensors_holds() -> None:
    row, padded = np.uint16([1, 2, 3]), np.uint16([10, 20, 30, 99, 40, 50, 60])
    result = run(XOR(tensor([0, 1]), tensor([4, 1]), tensor([1, 2])), row, padded)
    assert result.tolist() == [[1 ^ 10, 2 ^ 20, 3 ^ 30], [1 ^ 40, 2 ^ 50, 3 ^ 60]]
    assert result.strides == (2, 4)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([A], r"Run\.BindingCount is 1; expected 2"),
        (
            [A, A.astype(np.int16)],
            r"BTensor\.DataType is 'int16'; expected uint16, as its tensor has",
        ),
        ([A, A.astype(">u2")], r"BTensor\.DataType is '>u2'; expected uint16"),
        ([A, np.zeros(7, A.dtype)], r"BTensor\.Data is of 14 bytes; expected 12 bytes"),
        ([A[:1], A], r"ATensor\.Data is of 6 bytes; expected 12 bytes, from its first"),
        ([A, None], r"BTensor\.DataType is 'object'"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[Any], message: str) -> None:
    driver = ModelDriver()
    device = dml.Device(driver)
    with pytest.raises(dml.DmlError, match=message):
        device.run(SHIFT_LEFT(tensor(), tensor(), tensor()), inputs)
    with pytest.raises(dml.DmlError, match=r"Run\.Inputs is 3"):
        device.run(NOT(tensor(), tensor()), 3)  # type: ignore[arg-type]
    assert driver.model.calls == []
    assert driver.allocator.pieces == 0
