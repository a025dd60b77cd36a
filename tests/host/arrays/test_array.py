"""An array on a device: what it says of itself, when it is computed, how long memory is held."""

import gc
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane import (
    BusyError,
    CopyError,
    DataTypeError,
    FreedError,
    LinkError,
    MissingError,
    NotOfferedError,
    OtherDeviceError,
    OutOfDeviceMemory,
    ShapeError,
)
from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane.errors import BitlaneError
from bitlane.links.link import BytesLike
from bitlane_rtl.abi import CONTROL_BASE
from support.host.arrays import link_of, model, random, same, uploads
from support.models.device import ModelLink


@pytest.fixture
def device() -> Iterator[Device]:
    device = model()
    yield device
    gc.collect()
    assert device.driver.allocator.pieces == 0


def downloads(device: Device) -> int:
    """Bytes that have come from the memory since the traffic was last cleared."""
    traffic = link_of(device).traffic
    return sum(size for kind, at, size in traffic if kind == "read" and at < CONTROL_BASE)


def test_what_an_array_says_of_itself(device: Device) -> None:
    a = random((2, 3, 4), "u2")
    x = device.asarray(a)
    assert (x.shape, x.dtype, x.strides, x.nbytes) == (a.shape, a.dtype, a.strides, a.nbytes)
    assert (x.ndim, x.size, x.itemsize, len(x)) == (3, 24, 2, 2)
    assert x.device is device
    assert x.T.strides == a.T.strides
    assert x.mT.shape == (2, 4, 3)
    assert device.asarray(np.asfortranarray(a)).strides == np.asfortranarray(a).strides


def test_its_representation_brings_nothing_to_the_host(device: Device) -> None:
    x = device.asarray(random((2, 3), "u4"))
    link_of(device).traffic.clear()
    assert repr(x) == f"<bitlane.Array: shape (2, 3), uint32, on {device!r}>"
    assert repr(x ^ 1) == f"<bitlane.Array: shape (2, 3), uint32, on {device!r}, pending>"
    assert f"{x}" == repr(x)
    assert link_of(device).traffic == []


def test_an_array_is_sent_once_and_its_views_are_not(device: Device) -> None:
    a = random((40, 50), "u4")
    uploads(device)
    x = device.asarray(a)
    assert uploads(device) == [8000]
    views = [x.T, x[::2, ::-1], x[None, 3], x.reshape(4, 500), x.view("u1"), x[...]]
    expected = [a.T, a[::2, ::-1], a[None, 3], a.reshape(4, 500), a.view("u1"), a]
    assert uploads(device) == []
    assert device.driver.allocator.pieces == 1
    for view, want in zip(views, expected, strict=True):
        assert same(view.get(), want)
    assert same(x[0].broadcast_to((3, 50)).get(), np.broadcast_to(a[0], (3, 50)))
    assert same((x ^ x[:, :1]).get(), a ^ a[:, :1])
    # A board's line carries the constants of an expression alone.
    assert sum(uploads(device)) == 0


def test_elements_far_apart_come_without_their_gaps() -> None:
    device = model(memory_bytes=1 << 17)
    a = random((60, 60), "u4")
    x = device.asarray(a)
    link_of(device).traffic.clear()
    assert same(x[::10, ::10].get(), a[::10, ::10])
    assert downloads(device) == 4 * 36
    link_of(device).traffic.clear()
    assert np.array_equal(x, a)
    assert downloads(device) == 4


def test_an_operator_runs_when_its_value_is_needed(device: Device) -> None:
    a = random(9, "u1")
    x = device.asarray(a)
    log = link_of(device).log
    y = (x ^ 5) & 0x3F
    assert y.pending
    assert log == []
    assert same(y.get(), (a ^ 5) & 0x3F)
    assert not y.pending
    count = len(log)
    assert same(np.asarray(y), y.get())
    assert len(log) == count
    for need in (lambda z: z[1:], lambda z: z.T, lambda z: z.view("i1"), lambda z: z.reshape(3, 3)):
        z = x | 1
        need(z)
        assert not z.pending


def test_what_is_read_is_computed_before_it_is_overwritten(device: Device) -> None:
    a = random((4, 6), "u2")
    x = device.asarray(a)
    first = x ^ 1
    second = first & x
    view = x[1:, ::2]
    third = view | 4
    x ^= 0xFFFF
    assert not first.pending
    assert not second.pending
    x[...] = 0
    view[...] = 7
    assert same(first.get(), a ^ 1)
    assert same(second.get(), (a ^ 1) & a)
    assert same(third.get(), a[1:, ::2] | 4)
    assert x.get()[1:, ::2].tolist() == [[7] * 3] * 3


def test_what_is_made_of_a_computed_array_is_computed_before_that_is_overwritten(
    device: Device,
) -> None:
    a = random((4, 6), "u2")
    x = device.asarray(a)
    first = x ^ 1
    second = first & 0x7F
    third = ~second
    first.get()
    first[...] = 0
    assert not second.pending
    assert same(third.get(), ~((a ^ 1) & 0x7F))
    assert same(second.get(), (a ^ 1) & 0x7F)


def test_an_operator_in_place_on_a_part_is_one_command(device: Device) -> None:
    a = random((4, 6), "u2")
    x = device.asarray(a)
    x[1:, ::2] ^= x[:3, 1::2]
    a[1:, ::2] ^= a[:3, 1::2]
    assert same(x.get(), a)
    log = link_of(device).log
    before = len(log)
    x[2] |= 7
    assert len(log) == before + 1


def test_an_operator_in_place_keeps_the_array_and_its_views(device: Device) -> None:
    a = random((4, 6), "u2")
    x = device.asarray(a)
    row = x[2]
    same_array = x
    x |= 0x1001
    assert x is same_array
    assert same(row.get(), a[2] | 0x1001)
    y = x ^ 1
    y <<= 2
    assert y.pending
    assert same(y.get(), ((a | 0x1001) ^ 1) << 2)
    with pytest.raises(DataTypeError, match="out: data type uint16 for a result of int64"):
        x ^= np.int64(3)


def test_overlapping_parts_of_one_array(device: Device) -> None:
    for key, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:])):
        a = random(33, "u4")
        x = device.asarray(a)
        x[key] ^= x[other]
        a[key] ^= a[other].copy()
        assert same(x.get(), a)
        x[key] = x[other]
        a[key] = a[other].copy()
        assert same(x.get(), a)


def test_assignments_to_parts(device: Device) -> None:
    a = random((5, 6), "i4")
    x = device.asarray(a)
    for key, value in (
        (np.s_[0], 7),
        (np.s_[:, 1], [1, 2, 3, 4, 5]),
        (np.s_[1::2, ::-2], random((2, 3), "i1")),
        (np.s_[-1, ...], np.arange(6)),
        (np.s_[0:0], 3),
    ):
        a[key] = value
        x[key] = value
        assert same(x.get(), a), key
    x[2] = x[3] ^ x[4]
    a[2] = a[3] ^ a[4]
    assert same(x.get(), a)


def test_copies_and_outputs(device: Device) -> None:
    a = random((3, 4), "u4")
    x = device.asarray(a)
    y = x.copy()
    y[...] = 0
    assert same(x.get(), a)
    out = np.zeros((4, 3), "u4").T
    assert x.get(out=out) is out
    assert same(np.ascontiguousarray(out), a)
    assert device.bit_xor(x, 1, out=y) is y
    assert same(y.get(), a ^ 1)
    assert device.bit_xor(a, x, out=out) is out
    assert not out.any()
    with pytest.raises(DataTypeError, match="out: uint8; expected an array of uint32"):
        x.get(out=np.zeros((3, 4), "u1"))
    with pytest.raises(ShapeError, match="out: shape"):
        x.get(out=np.zeros((4, 3), "u4"))


def test_one_element_as_a_number(device: Device) -> None:
    x = device.asarray(np.array([[5]], "u2"))
    assert (int(x), bool(x), x.item(), x.tolist()) == (5, True, 5, [[5]])
    assert not device.asarray(np.zeros((), "i4"))
    assert range(9)[x[0, 0]] == 5
    assert [int(row[0]) for row in device.asarray([[1], [2]])] == [1, 2]
    with pytest.raises(ShapeError, match="2 elements; expected one"):
        bool(device.asarray([1, 2]))
    with pytest.raises(ShapeError, match="without axes has no length"):
        len(x[0, 0])


def test_an_array_that_is_there_comes_back_as_it_is(device: Device) -> None:
    x = device.asarray(random(5, "u1"))
    assert device.asarray(x) is x
    assert device.asarray(x, copy=True) is not x
    assert device.asarray(x, np.uint16).dtype == np.uint16
    for wrong in (
        lambda: device.asarray(x, np.uint16, copy=False),
        lambda: x.__array__(copy=False),
    ):
        with pytest.raises(CopyError, match="copy: False"):
            wrong()
    with pytest.raises(CopyError):
        device.asarray([1, 2], copy=False)


# --- memory -------------------------------------------------------------------------------------


def test_memory_is_freed_with_the_last_array_that_shows_it() -> None:
    gc.disable()
    try:
        device = model()
        allocator = device.driver
        x = device.asarray(random(1000, "u4"))
        view, pending = x[::2], x ^ 1
        del x
        assert allocator.allocator.pieces == 1
        del view
        assert allocator.allocator.pieces == 1
        pending.get()
        assert allocator.allocator.pieces == 1
        del pending
        assert allocator.allocator.pieces == 0
        for _ in range(100):
            device.asarray(random(2000, "u4")).T[1:].copy().get()
    finally:
        gc.enable()


def test_out_of_memory_with_pending_arrays(device: Device) -> None:
    x = device.asarray(random(3 << 10, "u4"))
    kept = [device.asarray(random(3 << 10, "u4"))]
    log = link_of(device).log
    pending = ~(x ^ x[::-1])
    before = len(log)
    with pytest.raises(OutOfDeviceMemory, match="bytes") as caught:
        pending.get()
    assert "\n" not in str(caught.value)
    assert len(log) == before
    assert pending.pending
    kept.clear()
    assert same(pending.get(), ~(x.get() ^ x.get()[::-1]))
    with pytest.raises(OutOfDeviceMemory):
        device.asarray(random(1 << 16, "u1"))


def test_a_closed_device() -> None:
    device = model()
    x = device.asarray(random(5, "u1"))
    y = x ^ 1
    device.close()
    wrong: list[Callable[[], Any]] = [
        x.get,
        y.get,
        lambda: x.__setitem__(0, 1),
        lambda: device.asarray([1]),
        lambda: device.bit_xor(x, 1),
        lambda: x ^ [1] * 5,
        lambda: np.bitwise_or.reduce(x).item(),
        lambda: np.array_equal(x, x ^ 1),
    ]
    for call in wrong:
        with pytest.raises(LinkError, match=r"the device is closed; bitlane\.open opens it anew"):
            call()
    assert "closed" in repr(x)


def test_freed_memory(device: Device) -> None:
    x = device.asarray(random(5, "u1"))
    view, pending = x[1:], x ^ 1
    x.free()
    assert device.driver.allocator.pieces == 0
    for call in (x.get, view.get, pending.get, lambda: x ^ 1, lambda: x.__setitem__(0, 1)):
        with pytest.raises(FreedError, match="memory has been freed"):
            call()
    x.free()
    assert "freed" in repr(x)


def test_arrays_of_two_devices(device: Device) -> None:
    other = model()
    a = random(5, "u1")
    x, y = device.asarray(a), other.asarray(a)
    wrong: list[Callable[[], Any]] = [
        lambda: x ^ y,
        lambda: device.bit_and(x, y),
        lambda: np.array_equal(x, y),
        lambda: np.concatenate([x, y]),
        lambda: x.__setitem__(..., y),
        lambda: np.bitwise_xor(x, 1, out=y),
        lambda: device.bit_xor(y, 1),
        lambda: bitlane.explain(x ^ 1, y ^ 1),
    ]
    for call in wrong:
        with pytest.raises(OtherDeviceError, match=r"device\.asarray copies it there"):
            call()
    assert same((x ^ device.asarray(y)).get(), a ^ a)
    assert same(x.to_device(other).get(), a)


# --- threads ------------------------------------------------------------------------------------


class SlowLink(ModelLink):
    """A link that waits before the next command once it is told to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.wanted, self.entered, self.go = False, Event(), Event()

    def write(self, address: int, data: BytesLike) -> None:
        if self.wanted and address >= CONTROL_BASE:
            self.wanted = False
            self.entered.set()
            assert self.go.wait(30)
        super().write(address, data)


def test_an_array_that_another_thread_writes() -> None:
    link = SlowLink(memory_bytes=1 << 15)
    device = Device(Driver(link))
    a = random(64, "u4")
    x, y = device.asarray(a), device.asarray(a)
    link.wanted = True
    thread = Thread(target=lambda: x.__ixor__(5))
    thread.start()
    assert link.entered.wait(30)
    try:
        wrong: list[Callable[[], Any]] = [
            x.get,
            (x ^ 1).get,
            lambda: x.__setitem__(0, 1),
            lambda: x.__ior__(1),
            x.free,
        ]
        for call in wrong:
            with pytest.raises(BusyError, match="another thread is writing it"):
                call()
    finally:
        link.go.set()
        thread.join(30)
    assert same(x.get(), a ^ 5)
    assert same(y.get(), a)


def test_threads_may_read_the_same_array(device: Device) -> None:
    a = random(500, "u4")
    x = device.asarray(a)
    results: list[NDArray[Any]] = []
    threads = [Thread(target=lambda: results.append((x ^ 3).get())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == 4
    assert all(same(result, a ^ 3) for result in results)


# --- what it does not do ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x + 1, NotOfferedError, r"operator \+: .*np\.asarray\(x\)"),
        (lambda x: 1 - x, NotOfferedError, "operator -"),
        (lambda x: x == x, NotOfferedError, r"np\.array_equal"),
        (lambda x: x < 3, NotOfferedError, "operator <"),
        (lambda x: 3 in x, NotOfferedError, "operator in"),
        (lambda x: abs(x), NotOfferedError, "abs"),
        (lambda x: x[[0, 1]], NotOfferedError, r"x\.get\(\)\[index\]"),
        (lambda x: x[x.get() > 3], NotOfferedError, "a ndarray"),
        (lambda x: x.sum(), MissingError, r"x\.get\(\)\.sum does it on the host"),
        (lambda x: x.bogus, MissingError, "no bogus"),
        (lambda x: x.reshape(5), ShapeError, "has 12 elements"),
        (lambda x: x.T.reshape(12, copy=False), CopyError, "takes a copy"),
        (lambda x: x ^ np.zeros(3, "u1"), ShapeError, "do not broadcast"),
        (lambda x: x.broadcast_to((2, 3, 4)).__setitem__((0, 0), 1), ShapeError, "repeats"),
        (lambda x: np.broadcast_to(x, (2, 3, 4)).__ixor__(1), ShapeError, "repeats"),
        (lambda x: x.__setitem__(0, [1, 2, 3]), ShapeError, "broadcast"),
        (lambda x: x ^ "text", DataTypeError, "b: data type"),
        (lambda x: x ^ None, DataTypeError, "b: data type object"),
        (lambda x: x ^ 1j, DataTypeError, "b: data type complex128"),
        (lambda x: x.astype("f4"), DataTypeError, "floats take arithmetic"),
        (lambda x: x.astype("bogus"), DataTypeError, "expected a data type"),
        (lambda x: x.__setitem__(0, 1.5), DataTypeError, "value: data type float64 for uint8"),
        (lambda x: hash(x), TypeError, "unhashable"),
        (lambda x: x.T.mT[0].mT, ShapeError, "expected two axes"),
    ],
)
def test_refusals_name_the_alternative(
    device: Device, call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    x = device.asarray(random((3, 4), "u1"))
    log = len(link_of(device).log)
    with pytest.raises(error, match=message) as caught:
        call(x)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, BitlaneError) or error is TypeError
    assert len(link_of(device).log) == log
