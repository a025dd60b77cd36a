"""The resources of a model file: buffers and their initial values, as elements of a type."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..dml import DataType, DmlError
from ..errors import ModelFileError, NpyError
from ..npy import read_npy
from .images import IMAGE_SUFFIXES, read_image
from .model import Resource, Values
from .node import Node
from .problems import Problems

DATA_TYPE_PREFIX = "DML_TENSOR_DATA_TYPE_"

_NAMED = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}

Array = npt.NDArray[np.generic]


def read_data_type(node: Node) -> DataType:
    """A data type by its full name or its suffix, ``UNKNOWN`` included."""
    return DataType[node.choice(list(DataType.__members__), DATA_TYPE_PREFIX)]


def element(node: Node, data_type: DataType) -> Array:
    """The number at ``node`` as one element of ``data_type``, without dimensions.

    Integer types take integers in their range. Float types take any number that does not
    overflow, and the strings "nan", "inf" and "-inf" in any case. Raises ``ModelFileError``.
    """
    dtype = data_type.dtype
    if dtype.kind != "f":
        bits = dtype.itemsize * 8
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if dtype.kind == "i" else (0, 1 << bits)
        return np.array(node.integer(low, high - 1), dtype)
    value = node.value
    if isinstance(value, str):
        if value.lower() not in _NAMED:
            raise node.error('a number, "nan", "inf" or "-inf"')
        return np.array(_NAMED[value.lower()], dtype)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise node.error('a number, "nan", "inf" or "-inf"')
    try:
        number = np.float64(float(value))
    except OverflowError:
        raise node.error(f"a number that {data_type.name} can hold") from None
    with np.errstate(over="ignore", under="ignore"):
        # To half precision by way of single, as DxDispatch does: the two roundings can differ
        # from one.
        single = number if data_type is DataType.FLOAT64 else number.astype(np.float32)
        result = np.array(single, dtype)
    if np.isinf(result):
        raise node.error(f"a number that {data_type.name} can hold")
    return result


def print_flat(values: Array) -> str:
    """Elements on one line. Floats have six significant digits, as C++ prints them."""
    return ", ".join(_plain(value) for value in values)


def print_verbose(values: Array) -> str:
    """A line for each element: its index, its value, and its encoding in hexadecimal."""
    index_width = len(str(max(values.size, 1)))
    digits = values.dtype.itemsize * 2
    encodings = values.view(f"<u{values.dtype.itemsize}")
    return "\n".join(
        f"[{index:{index_width}}] {_plain(value)} (0x{int(encoding):0{digits}X})"
        for index, (value, encoding) in enumerate(zip(values, encodings, strict=True))
    )


def plain(values: Array) -> list[int | float | str]:
    """Return elements for JSON; infinities and NaN as the strings of model files."""
    numbers: list[int | float] = values.tolist()
    return [x if isfinite(x) else str(x) for x in numbers]


def _plain(value: np.generic) -> str:
    return f"{float(value):g}" if isinstance(value, np.floating) else str(int(value))


_INITIALIZERS = (
    "an array, or an object with valueCount and value; valueCount, valueStart and valueDelta; or"
    " sourcePath"
)

Bytes = npt.NDArray[np.uint8]

_FIELDS = (
    "type",
    "initialValuesDataType",
    "initialValues",
    "initialValuesOffsetInBytes",
    "sizeInBytes",
    "resampleSize",
    "resampleMode",
)


def read_resource(name: str, node: Node, folder: Path) -> Resource:
    """A resource of the model file in ``folder``. Raises ``ModelFileError``."""
    problems = Problems()
    with problems.part():
        node.only("a buffer", *_FIELDS)
    with problems.part():
        if (kind := node.optional("type")) is not None:
            kind.choice(["buffer"])
    with problems.part():
        if node.number("initialValuesOffsetInBytes"):
            offset = node.required("initialValuesOffsetInBytes")
            raise offset.error("0: the values stand first (DxDispatch ignores this field)")
    with problems.part():
        resource = _read_values(name, node, folder)
    problems.expect_none()
    return resource


def _read_values(name: str, node: Node, folder: Path) -> Resource:
    given = node.optional("initialValuesDataType")
    data_type = DataType.UNKNOWN if given is None else read_data_type(given)
    values = node.required("initialValues")
    with _memory_of(values):
        data_type, data = _initial_values(node, data_type, folder)
    if data.size == 0:
        raise values.error("at least one element")
    content = data.size
    size = node.optional("sizeInBytes")
    if size is not None:
        content = node.number("sizeInBytes")
        if content < data.size:
            raise size.error(f"at least {data.size}, the bytes of initialValues")
    array = size is None and values.has("sourcePath")
    array = array and values.required("sourcePath").text().lower().endswith(".npy")
    return Resource(name, data_type, data, content, (content + 3) // 4 * 4, array)


def find_file(node: Node, folder: Path) -> Path:
    """The file that a ``sourcePath`` names, relative to the model file or to the current folder."""
    name = node.text()
    for path in (folder / name, Path(name)):
        # A name that no file can have raises.
        with suppress(OSError, ValueError):
            if path.is_file():
                return path
    raise node.error(f"a file in {folder} or in the current folder")


@contextmanager
def _memory_of(values: Node) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise values.error("values that fit this computer's memory") from None


def _initial_values(node: Node, data_type: DataType, folder: Path) -> tuple[DataType, Values]:
    values = node.required("initialValues")
    if values.has("sourcePath"):
        if values.has("value") or values.has("valueStart"):
            raise values.error(f"one of {_INITIALIZERS}")
        values.only("a file initializer", "sourcePath")
        data_type, data = _from_file(node, values.required("sourcePath"), data_type, folder)
        return data_type, Values.of(data)
    if (unused := node.optional("resampleSize", "resampleMode")) is not None:
        raise unused.error("an image as the initial values; there is none")
    if isinstance(values.value, list):
        if data_type is DataType.UNKNOWN:
            return data_type, Values.of(_from_list(values))
        elements = [element(item, data_type) for item in values.items()]
        return data_type, Values.of(np.array(elements, data_type.dtype).view(np.uint8))
    if values.has("value"):
        values.only("a constant initializer", "valueCount", "value")
        return data_type, _constant(values, _known(node, data_type))
    if values.has("valueStart"):
        values.only("a sequence initializer", "valueCount", "valueStart", "valueDelta")
        return data_type, _sequence(values, _known(node, data_type))
    if values.value == "deferred":
        raise values.error(f"{_INITIALIZERS} (deferred buffers belong to ONNX models)")
    raise values.error(_INITIALIZERS)


def _known(node: Node, data_type: DataType) -> DataType:
    if data_type is DataType.UNKNOWN:
        value = node.required("initialValuesDataType")
        raise value.error("a data type; UNKNOWN is for a list of values with types of their own")
    return data_type


def _constant(values: Node, data_type: DataType) -> Values:
    count = values.required("valueCount").integer(1)
    value = element(values.required("value"), data_type)

    def make() -> npt.NDArray[np.generic]:
        return np.full(count, value, data_type.dtype)

    return _made(values, count * data_type.itemsize, make)


def _sequence(values: Node, data_type: DataType) -> Values:
    """``valueStart``, ``+ valueDelta``, ...: each sum rounded (floats) or wrapped (integers)."""
    count = values.required("valueCount").integer(1)
    delta = element(values.required("valueDelta"), data_type)
    start = element(values.required("valueStart"), data_type)

    def make() -> npt.NDArray[np.generic]:
        terms = np.full(count, delta, data_type.dtype)
        terms[0] = start
        if data_type.dtype.kind != "f":
            terms = terms.view(f"<u{data_type.itemsize}")  # whose overflow wraps by definition
        with np.errstate(all="ignore"):
            return np.add.accumulate(terms, dtype=terms.dtype, out=terms)

    return _made(values, count * data_type.itemsize, make)


def _made(node: Node, size: int, make: Callable[[], npt.NDArray[np.generic]]) -> Values:
    """Return ``size`` bytes that are made when needed: a device may have less memory."""

    def data() -> Bytes:
        with _memory_of(node):
            return make().view(np.uint8)

    return Values(size, data)


def _from_list(values: Node) -> Bytes:
    pieces = []
    for item in values.items():
        item.only("a value of a list", "name", "type", "value")
        if (name := item.optional("name")) is not None:
            name.text()
        kind = item.required("type")
        data_type = read_data_type(kind)
        if data_type is DataType.UNKNOWN:
            raise kind.error("the data type of the value")
        pieces.append(element(item.required("value"), data_type).reshape(1).view(np.uint8))
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint8)


def _from_file(
    node: Node, source: Node, data_type: DataType, folder: Path
) -> tuple[DataType, Bytes]:
    path = find_file(source, folder)
    suffix = path.suffix.lower()
    unused = node.optional("resampleSize", "resampleMode")
    if unused is not None and suffix not in IMAGE_SUFFIXES:
        raise unused.error(f"an image as the source; {path.name} is none")
    try:
        if suffix == ".npy":
            return _from_npy(node, source, path, data_type)
        if suffix in IMAGE_SUFFIXES:
            return data_type, read_image(node, source, path, _known(node, data_type))
        return _known(node, data_type), np.fromfile(path, np.uint8)
    except OSError as error:
        raise source.error(f"a file that can be read ({error.strerror or error})") from error


def _from_npy(node: Node, source: Node, path: Path, data_type: DataType) -> tuple[DataType, Bytes]:
    try:
        array = read_npy(path)
    except NpyError as error:
        raise source.error(str(error)) from error
    try:
        found = DataType.from_numpy(array.dtype)
    except DmlError as error:
        raise source.error(
            f"an array of one of DirectML's data types, not of {array.dtype}"
        ) from error
    if data_type not in (DataType.UNKNOWN, found):
        raise ModelFileError(
            node.file,
            f"{node.path}.initialValuesDataType",
            data_type.name,
            f"{found.name}, the type of the array in {path.name}",
        )
    packed = np.ascontiguousarray(array, found.dtype)
    return found, packed.reshape(-1).view(np.uint8)
