"""NumPy's functions on arrays on a device: axes, numbers of elements, flags, and NumPy's limits."""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import (
    Array,
    AxisError,
    BitlaneError,
    DataTypeError,
    Device,
    NotOfferedError,
    OutOfHostMemory,
    ShapeError,
    array_api,
)
from support.host.arrays import link_of, random, same
from support.system.devices import DEFAULT, opened

A = random((3, 4), "u2")


def test_repetitions_may_be_unsigned(device: Device) -> None:
    """NumPy refuses 64 unsigned bits, for which it would need a cast."""
    counts = np.array([1, 2, 0], np.uint64)
    assert same(np.repeat(device.asarray(A), counts, 0).get(), np.repeat(A, [1, 2, 0], 0))


def test_one_repetition_of_everything_is_one_command(device: Device) -> None:
    x = device.asarray(A)
    for call in (lambda: np.repeat(x, 5, axis=0), lambda: np.tile(x, (4, 1))):
        link_of(device).log.clear()
        call().get()
        assert len(link_of(device).log) == 1


def test_the_array_api_gives_lists_and_numpy_tuples(device: Device) -> None:
    x = device.asarray(A)
    assert type(array_api.broadcast_arrays(x, x[0])) is list
    assert type(array_api.meshgrid(x[0], x[1])) is list
    assert type(np.broadcast_arrays(x, x[0])) is tuple


def test_a_wrong_axis_is_an_error_of_numpys_kinds(device: Device) -> None:
    x = device.asarray(A)
    for kind in (IndexError, ValueError, BitlaneError):
        with pytest.raises(kind, match="axis: 9"):
            np.moveaxis(x, 9, 0)


def test_a_wrong_axis_is_numpys_error(device: Device) -> None:
    x = device.asarray(A)
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.any(x, axis=2),
        lambda x: x.all(axis=(0, 2)),
        lambda x: np.bitwise_or.reduce(x, axis=2),
        lambda x: np.squeeze(x, axis=2),
        lambda x: np.moveaxis(x, 0, 2),
        lambda x: np.swapaxes(x, 0, 2),
        lambda x: np.flip(x, 2),
        lambda x: np.concatenate([x, x], axis=2),
        lambda x: np.take(x, [0], axis=2),
        lambda x: np.count_nonzero(x, axis=2),
        lambda x: np.transpose(x, (0, 2)) if isinstance(x, Array) else np.any(x, axis=2),
    ]
    for call in calls:
        with pytest.raises(np.exceptions.AxisError) as expected:
            call(A)
        with pytest.raises(AxisError, match="axis: 2; expected -2 to 1") as caught:
            call(x)
        assert isinstance(caught.value, np.exceptions.AxisError)
        assert (caught.value.axis, caught.value.ndim) == (expected.value.axis, expected.value.ndim)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.axis, again.ndim) == (str(caught.value), 2, 2)
        (line,) = traceback.format_exception_only(caught.value)
        assert line.startswith("bitlane.AxisError: axis: 2")
    x.free()  # NumPy keeps a reference to it after an error in ``reduce``


@pytest.mark.parametrize("k", [0, 1, -2, 3, 9, -9, 2**70])
@pytest.mark.parametrize("shape", [(3, None), (3, 5), (4, 2), (0, 3)])
def test_eye(device: Device, shape: tuple[int, int | None], k: int) -> None:
    for dtype in (None, "u1", "f4", "?"):
        kind = None if dtype is None else np.dtype(dtype)
        got = array_api.eye(*shape, k=k, dtype=kind, device=device)
        width = min(abs(k), 20) * (1 if k > 0 else -1)
        assert same(got.get(), np.eye(*shape, k=width, dtype=kind or "f8"))


def test_ranges(device: Device) -> None:
    xp = array_api
    assert same(xp.arange(5, device=device).get(), np.arange(5))
    assert same(xp.arange(5, 0, -2, dtype=xp.uint8, device=device).get(), np.arange(5, 0, -2, "u1"))
    assert same(xp.arange(0, 1, 0.25, device=device).get(), np.arange(0, 1, 0.25))
    assert same(xp.linspace(0, 1, 5, device=device).get(), np.linspace(0, 1, 5))
    got = xp.linspace(0, 1, 5, dtype=xp.float32, endpoint=False, device=device)
    assert same(got.get(), np.linspace(0, 1, 5, endpoint=False, dtype="f4"))


def test_finfo_gives_pythons_floats(device: Device) -> None:
    for dtype in (array_api.float32, array_api.float64):
        found = array_api.finfo(dtype)
        limits = (found.eps, found.max, found.min, found.smallest_normal)
        assert all(type(limit) is float for limit in limits)
        assert found == array_api.finfo(device.asarray(np.ones(1, dtype)))
        assert (found.bits, found.dtype, found.max) == (8 * dtype.itemsize, dtype, limits[1])


def test_views_that_must_not_be_written(device: Device) -> None:
    x = device.asarray(random((4, 4), "u1"))
    for view in (np.diagonal(x), np.broadcast_to(x, (2, 4, 4)), x.astype(bool).view("u1")):
        assert not view.flags.writeable
        with pytest.raises(ShapeError, match="read-only"):
            view[...] = 0
    assert x.flags.writeable
    assert x.T.flags["W"]


def test_names_of_flags(device: Device) -> None:
    x, ones = device.asarray(random((4, 3), "u1")), np.ones((4, 3))
    for view, here in ((x, ones), (x.T, ones.T), (x[::2], ones[::2])):
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "C", "F", "FORC", "FNC", "CONTIGUOUS"):
            assert view.flags[name] == here.flags[name]
        assert view.flags.forc == here.flags.forc
        assert view.flags.contiguous == here.flags.contiguous
    with pytest.raises(IndexError, match="flags: 'OWNDATA'; expected C_CONTIGUOUS"):
        x.flags["OWNDATA"]
    with pytest.raises(AttributeError):
        x.flags.writeable = False


def test_an_output(device: Device) -> None:
    a = random((4, 3), "u1")
    out = device.asarray(np.zeros((2, 3), "i4"))
    assert np.compress([True, False, True], device.asarray(a), 0, out) is out
    assert same(out.get(), a[[0, 2]].astype("i4"))


def test_their_passes(device: Device) -> None:
    a = random((16, 64), "u1")
    x = device.asarray(a)
    unpacked = np.unpackbits(x, axis=0)
    assert bitlane.explain(unpacked).splitlines()[1].startswith("COUNT_AND TEST  16 x 8 x 64")
    assert "fused           1 pass " in bitlane.explain(unpacked)
    packed = np.packbits(device.asarray(a > 99), axis=1)
    titles = [line.split()[0] for line in bitlane.explain(packed).splitlines()[1:-2]]
    assert titles == [*["SHIFT_LEFT", "OR"] * 3, "COPY"]
    assert packed.pending
    assert same(packed.get(), np.packbits(a > 99, axis=1))


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


@pytest.mark.parametrize("count", [1 << 50, 1 << 62, 1 << 64])
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
        lambda: x.__dlpack__(stream=1),
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
