"""Arrays and a modelled device for the tests of the NumPy interface."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane import Device, explain
from bitlane.driver import Driver
from bitlane_rtl.abi import CONTROL_BASE
from support.host.model_link import ModelLink

UNSIGNED = ["u1", "u2", "u4", "u8"]
INTEGERS = [*UNSIGNED, "i1", "i2", "i4", "i8"]
TYPES = [*INTEGERS, "f2", "f4", "f8"]
KINDS = [*INTEGERS, "?"]
OPERATORS: list[np.ufunc] = [
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.left_shift,
    np.right_shift,
]


def model(**changes: Any) -> Device:
    return Device(Driver(ModelLink(**{"memory_bytes": 1 << 15} | changes)))


def link_of(device: Device) -> ModelLink:
    link = device.driver.link
    assert isinstance(link, ModelLink)
    return link


def random(shape: Any, dtype: str, seed: int = 1) -> NDArray[Any]:
    """Random encodings of ``dtype``, NaN and infinities included."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape)) * kind.itemsize
    content = np.random.default_rng(seed).integers(0, 256, count, np.uint8)
    return content.view(kind).reshape(shape)


def same(got: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Equal in type, shape and every bit."""
    return (
        got.dtype == expected.dtype
        and got.shape == expected.shape
        and np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(expected).tobytes()
    )


def uploads(device: Device) -> list[int]:
    """Return the size of each upload since the last call."""
    traffic = link_of(device).traffic
    sizes = [size for kind, at, size in traffic if kind == "write" and at < CONTROL_BASE]
    traffic.clear()
    return sizes


def passes(*arrays: Any) -> list[str]:
    """Return the names of the passes that compute ``arrays``."""
    return [line.split("  ")[0] for line in explain(*arrays).splitlines()[1:-2]]


def count_passes(*arrays: Any) -> int:
    """Return how many passes compute ``arrays``."""
    lines = [line.split() for line in explain(*arrays).splitlines()]
    return next(int(line[1]) for line in lines if line[0] == "fused")
