"""Invalid operands are refused by name before anything is sent; others get layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane import Device
from bitlane.errors import BitlaneError, DataTypeError, OutOfRangeError, ShapeError
from bitlane.streaming.transfer import Layout, source_of, store
from support.host.arrays import link_of, model, random, same
from support.seeds import seeds

U8 = np.zeros(4, np.uint8)


@pytest.fixture(scope="module")
def device() -> Device:
    device = model(memory_bytes=1 << 20)
    link_of(device).traffic.clear()
    return device


def refused(
    device: Device, error: type[BitlaneError], message: str, call: Callable[[Device], Any]
) -> None:
    with pytest.raises(error, match=message) as caught:
        call(device)
    assert "\n" not in str(caught.value)
    assert link_of(device).traffic == []


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(2, np.complex128), r"a: data type complex128; expected truth values, integers"),
        (np.zeros(2, np.complex64), "view it as the float"),
        (np.zeros(2, "M8[s]"), r"np\.int64"),
        (np.zeros(2, "m8[s]"), r"np\.int64"),
        (np.zeros(2, np.longdouble), "data type .*128"),
        (np.zeros(2, object), "data type object"),
        (np.zeros(2, "U1"), "data type <U1"),
        (np.zeros(2, [("x", np.uint8)]), "data type"),
        (np.zeros(2, "V4"), "data type"),
        (np.ma.masked_array([1, 2], [True, False]), "masked"),
        (None, "data type object"),
    ],
    ids=str,
)
def test_types_that_directml_lacks(device: Device, array: Any, message: str) -> None:
    refused(device, DataTypeError, message, lambda on: on.bit_not(array))
    refused(device, DataTypeError, message, lambda on: on.bit_count(array))
    refused(device, DataTypeError, message, lambda on: on.bit_xor(array, U8))
    refused(device, DataTypeError, message.replace("a: ", "b: "), lambda on: on.bit_xor(U8, array))


@pytest.mark.parametrize("other", [np.int8, np.uint16, np.float16, np.uint64, bool])
def test_no_casting_wants_the_same_types(device: Device, other: type) -> None:
    array = np.zeros(4, other)
    message = f"uint8 and {array.dtype}; expected the same type, as casting is 'no'"
    refused(device, DataTypeError, message, lambda on: on.bit_and(U8, array, casting="no"))


@pytest.mark.parametrize(("a", "b"), [("u8", "i8"), ("u1", "f4"), ("f4", "f8"), ("f2", "?")])
def test_types_that_numpy_has_no_integer_for_are_refused(device: Device, a: str, b: str) -> None:
    one, other = np.zeros(4, a), np.zeros(4, b)
    message = f"data types {one.dtype} and {other.dtype}; expected integers or truth values"
    refused(device, DataTypeError, message, lambda on: on.bit_or(one, other))


@pytest.mark.parametrize(("dtype", "value"), [(np.uint8, 256), (np.uint8, -1), (np.int8, 128)])
def test_python_integers_must_fit(device: Device, dtype: type, value: int) -> None:
    array, message = np.zeros(3, dtype), f"{value} does not fit"
    refused(device, OutOfRangeError, f"b: {message}", lambda on: on.bit_or(array, value))
    refused(device, OutOfRangeError, f"a: {message}", lambda on: on.bit_or(value, array))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_shifts_take_integers(device: Device, dtype: type) -> None:
    array = np.zeros(3, dtype)
    message = f"as np.uint{8 * array.itemsize}"
    refused(device, DataTypeError, message, lambda on: on.bit_shift_left(array, array))
    refused(device, DataTypeError, "integers", lambda on: on.bit_shift_right(array, array))


@pytest.mark.parametrize("a", [[[1], [1, 2]], [[1, 2], 3], [[[1]], [[1, 2]]]])
def test_lists_of_different_lengths_are_no_array(device: Device, a: Any) -> None:
    refused(device, ShapeError, "a: no array can be made of this list", lambda on: on.bit_not(a))
    refused(device, ShapeError, "b: no array can", lambda on: on.bit_xor(U8, a))


@pytest.mark.parametrize(
    "dtype",
    [
        *("zz", "u99", 3.5, [1], object()),
        *(np.int8, np.uint16, np.uint64, np.int32, np.float32, bool),
    ],
)
def test_counts_are_of_two_types(device: Device, dtype: Any) -> None:
    message = "counts are uint8 or uint32"
    refused(device, DataTypeError, message, lambda on: on.bit_count(U8, dtype))
    if isinstance(dtype, type):
        out = np.zeros(4, dtype)
        refused(device, DataTypeError, "uint8", lambda on: on.bit_count(U8, out=out))


LONG = np.broadcast_to(np.uint8(1), (2**33, 1))
WRONG: Any = "yes"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda on: on.bit_or(U8, U8, casting=WRONG), DataTypeError, "'yes'"),
        (lambda on: on.bit_or(U8, 1, casting=WRONG), DataTypeError, "'yes'"),
        (lambda on: on.bit_or(np.zeros(3, "f4"), 1), DataTypeError, "integer 1 beside float32"),
        (
            lambda on: on.bit_and(LONG, LONG.T),
            ShapeError,
            r"shapes \(8589934592, 1\) and \(1, 8589934592\) make more elements than an array can",
        ),
        (
            lambda on: on.bit_xor(U8, U8[:3]),
            ShapeError,
            r"shapes \(4,\) and \(3,\) do not broadcast",
        ),
    ],
)
def test_operands_that_do_not_go_together(
    device: Device, call: Callable[[Device], Any], error: type[BitlaneError], message: str
) -> None:
    refused(device, error, message, call)


def read_only() -> np.ndarray[Any, Any]:
    array = np.zeros(4, np.uint8)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros(4, np.int8), DataTypeError, "out: data type int8; expected uint8"),
        (np.zeros(3, np.uint8), ShapeError, r"out: shape \(3,\); expected \(4,\)"),
        (np.zeros((1, 4), np.uint8), ShapeError, r"out: shape \(1, 4\)"),
        (read_only(), ShapeError, "read-only"),
        ([0, 0, 0, 0], DataTypeError, "out: of type list; expected an array of uint8"),
        (np.ma.zeros(4, np.uint8), DataTypeError, "out: of type MaskedArray"),
        (
            np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (4,), (0,)),
            ShapeError,
            "lie on one another",
        ),
    ],
)
def test_outputs_fit(device: Device, out: Any, error: type[BitlaneError], message: str) -> None:
    refused(device, error, message, lambda on: on.bit_not(U8, out=out))


@pytest.mark.parametrize(
    ("dtype", "shape", "strides"),
    [
        ("u1", (2, 3), (1, 1)),
        ("u1", (3, 3), (2, 1)),
        ("u1", (2, 3), (-2, 1)),
        ("u1", (4, 3), (3, 4)),
        ("u2", (3,), (1,)),
        ("u4", (2, 2), (6, 3)),
        ("u2", (2, 2, 2), (4, 2, 2)),
    ],
)
def test_elements_of_an_output_must_not_lie_on_one_another(
    device: Device, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    expect_written_or_refused(device, dtype, shape, strides)


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_outputs_that_overlap_themselves_are_found(device: Device, seed: int) -> None:
    generator = np.random.default_rng(seed)
    dtype = f"u{generator.choice([1, 2, 4])}"
    shape = tuple(generator.integers(1, 4, generator.integers(1, 4)).tolist())
    strides = tuple(generator.integers(-12, 13, len(shape)).tolist())
    expect_written_or_refused(device, dtype, shape, strides)


def expect_written_or_refused(
    device: Device, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """Expect an output with these strides to be refused exactly if it names a byte twice."""
    out = strided(dtype, shape, strides)
    a = np.arange(out.size).reshape(shape).astype(dtype)
    places = [address + byte for address in addresses(out) for byte in range(out.itemsize)]
    if len(places) == len(set(places)):
        assert np.array_equal(model().bit_not(a, out=out), np.invert(a)), f"{shape} {strides}"
    else:
        refused(device, ShapeError, "lie on one another", lambda on: on.bit_not(a, out=out))


def strided(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return a strided view that starts in the middle of a block of memory."""
    memory = np.zeros(256, np.uint8)
    return np.ndarray(shape, dtype, memory.data, 128, strides)


def addresses(array: np.ndarray[Any, Any]) -> list[int]:
    return [
        sum(i * step for i, step in zip(index, array.strides, strict=True))
        for index in np.ndindex(array.shape)
    ]


def test_refusals_are_what_numpy_users_catch() -> None:
    assert issubclass(DataTypeError, TypeError)
    assert issubclass(ShapeError, ValueError)
    assert issubclass(OutOfRangeError, OverflowError)


# --- layouts on the device ------------------------------------------------------------------------


A = random((6, 10), "u4")
ARRAYS: list[tuple[NDArray[Any], bool]] = [
    (A, True),
    (A.T, True),
    (A[::-1, ::-1], True),
    (A[:, 1:9], True),
    (A[::3, ::4], False),
    (np.broadcast_to(A[2], (5, 10)), True),
    (A[:, ::2][..., None, :], True),
    (A.astype(">u4"), False),
    (A[1, 1], True),
]
"""Arrays, and whether the bytes of their memory are sent as they are."""


def elements(layout: Layout, x: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return the elements that the device finds in the content of ``layout``."""
    content = layout.content(x)
    assert content.size == layout.size
    return np.ndarray(x.shape, dtype, content, layout.first, layout.strides)


@pytest.mark.parametrize(("x", "raw"), ARRAYS)
def test_the_elements_are_in_the_content(x: NDArray[Any], raw: bool) -> None:
    layout = Layout.of(source_of(np.asarray(x)), x.shape)
    assert layout.raw is raw
    assert same(elements(layout, np.asarray(x), "<u4"), np.asarray(x).astype("<u4"))


def test_elements_are_converted_on_their_way() -> None:
    x = A[::-1, ::2]
    layout = Layout.of(source_of(x, np.dtype("u8")), x.shape)
    assert same(elements(layout, x, "<u8"), x.astype("<u8"))


def test_truth_values_are_sent_as_0_and_1() -> None:
    x = np.arange(6, dtype=np.uint8).view(bool)
    layout = Layout.of(source_of(x), x.shape)
    assert elements(layout, x, "u1").tolist() == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["<u4", ">u4"])
@pytest.mark.parametrize("strides", [(40, 4), (4, 24)])
def test_results_are_stored_in_any_array(strides: tuple[int, int], kind: str) -> None:
    content = random((240,), "u1")
    target = np.empty((6, 10), kind)
    store(content, target, strides)
    assert same(target.astype("<u4"), np.ndarray((6, 10), "<u4", content, 0, strides))
