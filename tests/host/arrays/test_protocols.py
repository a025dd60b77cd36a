"""NumPy's functions, DLPack and the array API on arrays that are on a device."""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import numpy as np
import pytest

from bitlane import (
    BusyError,
    DataTypeError,
    Device,
    ExchangeError,
    MissingError,
    NotOfferedError,
    ShapeError,
    array_api,
)
from bitlane import array_api as xp
from bitlane.arrays import Claim
from bitlane.driver import Storage
from support.host.arrays import model, random, same
from support.system.devices import DEFAULT, opened


@pytest.fixture
def device() -> Iterator[Device]:
    device = model(memory_bytes=1 << 16)
    yield device
    device.close()


# --- universal functions ------------------------------------------------------------------------


def test_outputs_may_be_on_either_side(device: Device) -> None:
    a = random((3, 4), "u1")
    x, host = device.asarray(a), np.zeros((3, 4), "i4")
    assert np.bitwise_xor(x, 1, out=host) is host
    assert same(host, (a ^ 1).astype("i4"))
    host ^= x
    assert (host == 1).all()
    y = device.asarray(np.zeros((2, 3, 4), "u2"))
    assert np.invert(a, out=y) is y
    assert same(y.get(), np.broadcast_to(~a, (2, 3, 4)).astype("u2"))
    assert np.bitwise_count(x, out=x) is x
    assert same(x.get(), np.bitwise_count(a))


# --- other functions ----------------------------------------------------------------------------


def test_facts_about_arrays(device: Device) -> None:
    x = device.asarray(random((2, 3), "u2"))
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert np.result_type(x, np.int8) == np.int32
    assert np.can_cast(x, np.uint32)
    rows = np.broadcast_arrays(x, x[:, :1])
    assert [row.shape for row in rows] == [(2, 3), (2, 3)]


def test_copies_between_the_host_and_the_device(device: Device) -> None:
    a = random((3, 4), "u1")
    x = device.asarray(np.zeros((3, 4), "u2"))
    np.copyto(x, a)
    assert same(x.get(), a.astype("u2"))
    host = np.zeros((3, 4), "u4")
    np.copyto(host, x)
    assert same(host, a.astype("u4"))
    np.copyto(x[0], 7)
    assert x[0].tolist() == [7] * 4
    with pytest.raises(DataTypeError, match="from int64 to uint16; casting is 'same_kind'"):
        np.copyto(x, a.astype("i8"))
    np.copyto(x, a.astype("i8"), casting="unsafe")
    assert same(x.get(), a.astype("u2"))
    narrow = np.zeros((3, 4), "i1")
    np.copyto(narrow, x, casting="unsafe")
    assert same(narrow, a.astype("i1"))
    with pytest.raises(DataTypeError, match="casting is 'safe'"):
        np.copyto(narrow, x, casting="safe")


# --- DLPack -------------------------------------------------------------------------------------


def test_the_simulators_memory_is_shared() -> None:
    with opened(DEFAULT) as device:
        a = random((6, 8), "u4")
        x = device.asarray(a)
        pending = x ^ 1
        view = np.from_dlpack(x)
        assert same(view, a)
        view[0] = 5
        assert x[0].tolist() == [5] * 8
        x[1] = 6
        assert view[1].tolist() == [6] * 8
        # What was pending saw the elements as they were; what comes later is not left to wait.
        assert same(pending.get(), a ^ 1)
        later = x ^ 1
        assert not later.pending
        assert same(np.from_dlpack(x.T[::2, ::-1]), x.T[::2, ::-1].get())
        del x, pending, later
        assert view[1, 0] == 6
        assert device.driver.allocator.pieces == 1
        assert same(np.from_dlpack(device.from_dlpack(view)), view)
        truth = np.from_dlpack(device.asarray([True, False]))
        assert truth.tolist() == [True, False]
        del view, truth


def test_memory_that_another_thread_reads_may_be_shared() -> None:
    """Sharing writes nothing, so that threads that read or share as well are not refused."""
    with opened(DEFAULT) as device:
        a = random(64, "u4")
        x = device.asarray(a)
        entered, leave = Event(), Event()

        def read(storage: Storage) -> None:
            with Claim([storage]):
                entered.set()
                leave.wait(30)

        reader = Thread(target=read, args=[x._value.stored.storage])
        reader.start()
        assert entered.wait(30)
        try:
            pending = x ^ 1
            view = np.from_dlpack(x)
            assert not pending.pending
            with ThreadPoolExecutor(2) as pool:
                assert same(pool.submit(x.get).result(), a)
                assert same(pool.submit(np.from_dlpack, x).result(), a)
        finally:
            leave.set()
            reader.join(30)
        view[0] ^= 1
        assert same(pending.get(), a ^ 1)
        del view, pending, x, reader
        gc.collect()


def test_dlpack_without_a_copy_is_a_buffer_error(device: Device) -> None:
    a = random((3, 4), "u1")
    x = device.asarray(a)
    assert xp.from_dlpack(x, copy=False) is x
    with pytest.raises(BufferError, match="copy: False; elements elsewhere"):
        xp.from_dlpack(a, copy=False, device=device)
    with pytest.raises(ExchangeError):
        device.from_dlpack(a, copy=False)
    with pytest.raises(ExchangeError, match="of type ndarray"):
        device.from_dlpack(a.view(">u4"))


def test_memory_that_another_library_shows_is_not_freed() -> None:
    with opened(DEFAULT) as device:
        a = random(64, "u4")
        x = device.asarray(a)
        view = np.from_dlpack(x[8:])
        for shown in (x, x[:4]):
            with pytest.raises(BusyError, match="another library shows its memory"):
                shown.free()
        device.asarray(a ^ 1)
        assert same(view, a[8:])
        del view
        assert (x ^ 1).pending, "nobody can change it any more"
        x.free()
        assert device.driver.allocator.pieces == 0


def test_other_memory_is_copied(device: Device) -> None:
    x = device.asarray(random((2, 3), "i2"))
    assert x.__dlpack_device__() == (1, 0)
    assert same(np.from_dlpack(x), x.get())
    assert same(np.from_dlpack(x, copy=True), x.get())
    with pytest.raises(BufferError, match="is not this computer's"):
        np.from_dlpack(x, copy=False)
    with pytest.raises(BufferError, match="dl_device"):
        x.__dlpack__(dl_device=(2, 0))
    assert device.from_dlpack(x) is x


# --- the array API ------------------------------------------------------------------------------


def test_the_namespace_of_an_array(device: Device) -> None:
    x = device.asarray(random((2, 3), "u1"))
    assert x.__array_namespace__() is array_api
    assert x.__array_namespace__(api_version="2023.12") is array_api
    with pytest.raises(NotOfferedError, match="api_version"):
        x.__array_namespace__(api_version="1999.12")
    for name in array_api.__all__:
        assert hasattr(array_api, name)


def test_its_creation(device: Device) -> None:
    xp = array_api
    x = xp.zeros((2, 3), dtype=xp.int16, device=device)
    assert same(x.get(), np.zeros((2, 3), "i2"))
    assert same(xp.ones(3, device=device).get(), np.ones(3))
    assert same(xp.full((2,), -7, device=device).get(), np.full(2, -7))
    assert same(xp.full((2,), 1.5, device=device).get(), np.full(2, 1.5))
    assert same(xp.full((), True, device=device).get(), np.array(True))
    for one in (np.uint8(3), np.float32(1.5), np.True_, np.array(7, ">i2")):
        want = np.full(2, one, one.dtype.newbyteorder("="))
        assert same(xp.full((2,), one, device=device).get(), want)
        assert same(xp.full((2,), device.asarray(one), device=device).get(), want)
    assert same(xp.full_like(x, 5).get(), np.full((2, 3), 5, "i2"))
    assert same(xp.ones_like(x, dtype=xp.uint8).get(), np.ones((2, 3), "u1"))
    assert same(xp.zeros_like(x).get(), x.get())
    assert xp.empty_like(x).shape == xp.empty((2, 3), device=device).shape == (2, 3)
    with pytest.raises(ShapeError, match="none below 0"):
        xp.zeros((-1,), device=device)


def test_its_types(device: Device) -> None:
    xp = array_api
    x = xp.zeros(2, dtype=xp.uint8, device=device)
    assert xp.isdtype(x.dtype, "unsigned integer")
    assert xp.result_type(x, xp.int8) == xp.int16
    assert xp.can_cast(x, xp.int16)
    assert xp.iinfo(x.dtype).max == 255
    assert xp.finfo(xp.float32).bits == 32
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.capabilities()["max dimensions"] == 64
    assert set(info.dtypes(kind="bool")) == {"bool"}
    assert info.default_dtypes()["integral"] == xp.int64


def test_what_it_lacks_it_says() -> None:
    with pytest.raises(MissingError, match=r"no mean: .*np\.mean of np\.asarray\(x\) does it"):
        array_api.mean  # noqa: B018
    assert not hasattr(array_api, "einsum")


def test_dlpack_takes_all_that_the_standard_names(device: Device) -> None:
    x = device.asarray(random((2, 3), "u2"))
    assert x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=None)


def test_a_list_without_elements_may_have_any_type(device: Device) -> None:
    assert same(device.asarray([], np.uint8).get(), np.array([], np.uint8))
    assert same(
        array_api.asarray([[]], dtype=array_api.bool, device=device).get(), np.ones((1, 0), "?")
    )
    with pytest.raises(DataTypeError, match="float64 for uint8"):
        device.asarray(np.array([]), np.uint8)
