"""Refusals name the bad input: not an array or a device, read-only, or on a closed device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitlane import Array, BitlaneError, array_api
from bitlane.device import Device
from bitlane.errors import LinkError
from bitlane.jobs.operands import DataTypeError, ShapeError
from support.host.arrays import random, same
from support.system.devices import DEFAULT, opened


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.concatenate([x[0], x[0, 0]]), ShapeError, "expected alike but for axis 0"),
        (lambda x: np.concatenate([x[0, 0], x[0, 1]]), ShapeError, "there are no axes"),
        (lambda x: np.bitwise_xor(x, 1, out=_constant(x)), ShapeError, "out: the array is read-"),
        (lambda x: x.get(out=_constant(x)), ShapeError, "out: the array is read-only"),
        (lambda x: x.get(out=[1]), DataTypeError, "out: of type list"),
        (lambda x: np.bitwise_xor(x, 1, out=[1]), DataTypeError, "out: of type list"),
        (lambda x: x.to_device("cpu"), DataTypeError, "device: 'cpu'; expected one that bitlane"),
        (lambda x: array_api.zeros(3, device="cpu"), DataTypeError, "device: 'cpu'"),  # type: ignore[arg-type]
        (lambda x: x.device.from_dlpack(3), DataTypeError, "x: of type int; .* __dlpack__"),
    ],
)
def test_refusals_name_what_is_wrong(
    device: Device, call: Callable[[Array], Any], error: type[BitlaneError], message: str
) -> None:
    x = device.asarray(random((2, 3), "u1"))
    with pytest.raises(error, match=message):
        call(x)
    assert same((x ^ 1).get(), random((2, 3), "u1") ^ 1)


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


def test_a_copy_is_in_cs_order_so_that_it_can_be_viewed(device: Device) -> None:
    a = random((4, 6), "u1")
    x = device.asarray(a)
    assert x.T.copy().strides == a.T.copy().strides
    assert same(x.T.copy().view("u2").get(), a.T.copy().view("u2"))
    assert np.copy(x.T).strides == np.copy(a.T).strides


def test_repeated_elements_are_not_to_be_written_to_by_way_of_dlpack() -> None:
    with opened(DEFAULT) as device:
        x = device.asarray(random(3, "u1"))
        shown = np.from_dlpack(x.broadcast_to((2, 3)))
        assert not shown.flags.writeable
        assert np.from_dlpack(x).flags.writeable
        del shown, x
