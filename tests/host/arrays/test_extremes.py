"""Arrays at NumPy's limits, and refusals that name the bad input or the closed device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import (
    Array,
    BitlaneError,
    DataTypeError,
    Device,
    NotOfferedError,
    OutOfHostMemory,
    ShapeError,
)
from bitlane.errors import LinkError
from support.host.arrays import link_of, random, same
from support.system.devices import DEFAULT, opened

TEBIBYTE = 1 << 40
WIDE = np.broadcast_to(np.uint8(1), (TEBIBYTE, 1))
"""An array of the host whose copy no host has memory for."""


def test_operands_of_64_axes_broadcast(device: Device) -> None:
    a, b = random((1,) * 62 + (2, 3), "u1", 1), random(3, "u1", 2)
    x = device.asarray(a)
    assert same(device.bit_xor(a, b), a ^ b)
    assert same((x ^ b).get(), a ^ b)
    assert same((x & x.T).get(), a & a.T)
    assert same(device.hamming(a, b), np.bitwise_count(a ^ b).sum(axis=-1, dtype=np.uint32))
    pair = np.broadcast_arrays(x, device.asarray(b))
    assert [each.shape for each in pair] == [a.shape] * 2


def test_more_axes_than_numpy_has_are_refused_on_their_way_to_the_host(device: Device) -> None:
    x = device.asarray(random((1,) * 64, "u1"))[None]
    assert x.ndim == 65
    ways: list[Callable[[], Any]] = [x.get, lambda: np.asarray(x), lambda: np.from_dlpack(x)]
    for way in [*ways, x[:0].get]:
        with pytest.raises(ShapeError, match=r"^array: 65 axes; expected 64 at most"):
            way()
    assert same((x ^ 1)[0].get(), x[0].get() ^ np.uint8(1))


@pytest.mark.parametrize("count", [TEBIBYTE, 1 << 62, 1 << 64])
def test_more_bytes_than_the_host_has(device: Device, count: int) -> None:
    x = device.asarray(np.uint8(1)).broadcast_to((count,))
    for way in (x.get, x.tolist, lambda: np.asarray(x)):
        with pytest.raises(OutOfHostMemory, match=f"^array: {count} bytes do not fit") as caught:
            way()
        assert isinstance(caught.value, MemoryError)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_no_elements_are_handed_over_without_a_copy(device: Device, shape: Any) -> None:
    a = np.empty(shape, np.int16)
    assert same(np.from_dlpack(device.asarray(a), copy=False), a)
    assert same(np.from_dlpack(device.asarray(a)[..., ::2], copy=False), a[..., ::2])


def test_what_dlpack_cannot_hand_over_is_an_error_of_bitlanes(device: Device) -> None:
    x = device.asarray(random(3, "u1"))
    ways: list[Callable[[], Any]] = [
        lambda: np.from_dlpack(x, copy=False),
        lambda: x.__dlpack__(dl_device=(2, 0)),
        lambda: x.__dlpack__(dl_device=np.array([1, 0])),  # type: ignore[arg-type]
        lambda: x.__dlpack__(max_version="x"),  # type: ignore[arg-type]
        lambda: x.__dlpack__(max_version=(1, "x")),  # type: ignore[arg-type]
    ]
    for way in ways:
        with pytest.raises(BufferError) as caught:
            way()
        assert isinstance(caught.value, BitlaneError)


def test_one_element_in_a_format(device: Device) -> None:
    x = device.asarray(np.int16(5))
    assert (f"{x:d}", f"{x:#06x}", f"{x}") == ("5", "0x0005", str(x))
    with pytest.raises(NotOfferedError, match=r"format: 'd' for .*expected an array without axes"):
        f"{x.broadcast_to(3):d}"


def test_one_element_as_a_float(device: Device) -> None:
    assert float(device.asarray(1.5)) == 1.5
    assert float(device.asarray(np.array([[7]], np.uint8))) == 7.0
    assert complex(device.asarray(np.float32(2.5))) == 2.5
    with pytest.raises(ShapeError, match="2 elements; expected one"):
        float(device.asarray(random(2, "f4")))


def test_types_that_numpy_joins_as_floats_are_not_joined(device: Device) -> None:
    signed, unsigned = np.array([-1]), np.array([1], np.uint64)
    message = "^arrays: data types int64 and uint64, which NumPy joins as float64; expected"
    for other in (unsigned, device.asarray(unsigned)):
        for joined in (np.concatenate, np.stack):
            with pytest.raises(DataTypeError, match=message):
                joined([device.asarray(signed), other])
    floats = device.asarray(np.array([0.5]))
    for other in (np.array([3], np.int8), np.array([2.5], np.float32)):
        assert same(np.concatenate([floats, other]).get(), np.concatenate([[0.5], other]))


def test_devices_of_one_name_are_told_apart(device: Device) -> None:
    other = bitlane.Device(type(device.driver)(type(link_of(device))(memory_bytes=1 << 12)))
    assert repr(other) == repr(device)
    x = other.asarray(random(3, "u1"))
    with pytest.raises(bitlane.OtherDeviceError) as caught:
        device.asarray(random(3, "u1")) ^ x
    assert str(caught.value).count(repr(device)) == 1
    assert "another device that is also" in str(caught.value)
    assert "expected one on the same device (device.asarray copies it there)" in str(caught.value)


def test_memory_that_numpy_does_not_let_go_of_is_given_back_by_free(device: Device) -> None:
    x = device.asarray(random(9, "u1"))
    with pytest.raises(ShapeError, match="axis: 9"):
        np.bitwise_or.reduce(x, axis=9)
    x.free()
    assert device.driver.allocator.pieces == 0


# --- bad input --------------------------------------------------------------------------------


def _constant(x: Array) -> np.ndarray[Any, Any]:
    return np.broadcast_to(np.uint8(0), x.shape)


def test_arrays_without_elements_need_an_open_device_as_others_do(device: Device) -> None:
    x = device.asarray(np.empty((0, 3), "u1"))
    device.close()
    host = np.empty((0, 3), "u1")
    wrong: list[Callable[[], Any]] = [
        x.get,
        lambda: (x ^ 1).get(),
        lambda: x.__setitem__(..., 1),
        lambda: x.__setitem__(..., host),
        lambda: np.bitwise_xor(x, 1, out=host),
    ]
    for call in wrong:
        with pytest.raises(LinkError, match=r"the device is closed"):
            call()


def test_repeated_elements_are_not_to_be_written_to_by_way_of_dlpack() -> None:
    with opened(DEFAULT) as device:
        x = device.asarray(random(3, "u1"))
        shown = np.from_dlpack(x.broadcast_to((2, 3)))
        assert not shown.flags.writeable
        assert np.from_dlpack(x).flags.writeable
        del shown, x


def test_booleans_are_not_to_be_written_to_by_way_of_dlpack() -> None:
    with opened(DEFAULT) as device:
        x = device.asarray(np.array([True, False, True]))
        numbers = x.view(np.uint8)
        views = np.from_dlpack(x), np.from_dlpack(numbers)
        assert [view.tolist() for view in views] == [[True, False, True], [1, 0, 1]]
        assert not any(view.flags.writeable for view in views)
        del views
        # Earlier versions of DLPack do not tell a library that it must not write.
        for array, version in ((x, None), (numbers, None), (x, (0, 8))):
            assert array.__dlpack__(max_version=version) is not None
            with pytest.raises(bitlane.ExchangeError, match=r"^copy: False with max_version"):
                array.__dlpack__(copy=False, max_version=version)
        x.free()  # nobody shows the memory
        del x, numbers
