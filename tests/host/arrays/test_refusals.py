"""Arrays refuse bad input and indices by name: nothing is executed, and the device works on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import (
    ArrayIndexError,
    BusyError,
    CopyError,
    DataTypeError,
    Device,
    FreedError,
    LinkError,
    MissingError,
    NotOfferedError,
    OtherDeviceError,
    OutOfDeviceMemory,
    OutOfRangeError,
    ShapeError,
)
from bitlane.arrays import elementwise as operations
from bitlane.arrays import value
from bitlane.compiler.nodes import Expression, apply
from bitlane.driver.driver import Driver
from bitlane.links.link import BytesLike
from bitlane_rtl.abi import CONTROL_BASE
from support.host.arrays import link_of, model, random, same
from support.host.model_link import ModelLink
from support.host.refusals import refusals


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


def test_an_array_that_does_not_fit_says_what_does(device: Device) -> None:
    size = device.driver.geometry.memory_bytes + 1
    with pytest.raises(OutOfDeviceMemory, match=r"pass the NumPy array itself.*sim\?memory=") as e:
        device.asarray(np.zeros(size, np.uint8))
    assert "\n" not in str(e.value)
    assert device.bit_not(np.zeros(size, np.uint8)).all()


def test_a_closed_device_is_shown_once() -> None:
    device = model()
    x = device.asarray(np.zeros(3, np.uint8))
    device.close()
    assert repr(x) == (
        "<bitlane.Array: shape (3,), uint8, on <bitlane.Device: model of the contract, closed>,"
        " not shown>"
    )


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
    """A link that blocks once, at the next write to the control window after ``wanted`` is set."""

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
    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(lambda: (x ^ 3).get()) for _ in range(4)]
    assert all(same(result.result(), a ^ 3) for result in results)


def test_a_thread_may_compute_a_part_of_what_another_is_looking_at(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = random(64, "u4")
    part = device.asarray(a) ^ 1
    whole = part & 3
    computing = Thread(target=part.get)
    looked = value._members

    def look(group: Any) -> list[Any]:
        found = looked(group)
        if group is whole._value.storages and not computing.ident:
            computing.start()
            computing.join(0.2)
        return found

    monkeypatch.setattr(value, "_members", look)
    assert same(whole.get(), (a ^ 1) & 3)
    assert computing.ident
    computing.join(30)
    assert not computing.is_alive()


def test_what_another_thread_computes_while_it_is_noted_stays_as_it_was(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = random(64, "u4")
    x = device.asarray(a)
    parts = [x ^ 1]

    def interrupted(*operands: Any, **options: Any) -> Expression:
        node = apply(*operands, **options)
        parts[0].get()
        return node

    with monkeypatch.context() as patch:
        patch.setattr(operations, "apply", interrupted)
        whole = parts[0] & 3
    parts.clear()
    x[...] = 0
    assert same(whole.get(), (a ^ 1) & 3)


# --- unsupported calls --------------------------------------------------------------------------


MORE = np.ones((4, 3, 4), bool)
"""Truth values with one axis more than the array of the next test."""


test_refusals_name_the_alternative = refusals(
    random((3, 4), "u1"),
    [
        (lambda x: x + 1, NotOfferedError, r"operator \+: .*np\.asarray\(x\)"),
        (lambda x: 1 - x, NotOfferedError, "operator -"),
        (lambda x: x < 3, NotOfferedError, r"operator <: .* == != alone; np\.asarray\(x\)"),
        (lambda x: x == object(), DataTypeError, "b: data type object"),
        (lambda x: x == [None], DataTypeError, "b: data type object"),
        (lambda x: x == np.zeros(3, "f4"), DataTypeError, "uint8 and float32; expected integers"),
        (lambda x: x != np.zeros(3, "u1"), ShapeError, "do not broadcast"),
        (lambda x: x.view("u4").astype("u8") == 2.0**60, DataTypeError, "which NumPy rounds"),
        (lambda x: x.view("f4") == 10**400, OutOfRangeError, "expected a number that float64"),
        (lambda x: np.any(x, axis=2), ShapeError, "axis: 2"),
        (lambda x: np.equal(x, 1, dtype="O"), NotOfferedError, r"np\.equal: dtype is not offered"),
        (lambda x: np.array_equal(x, x, equal_nan=True), NotOfferedError, "equal_nan"),
        (lambda x: abs(x), NotOfferedError, "abs"),
        (lambda x: x.mean(), MissingError, r"x\.get\(\)\.mean does it on the host"),
        (lambda x: x.repeat(2), MissingError, r"np\.repeat\(x\) does it on the device"),
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
        (lambda x: x[[0, 3]], ArrayIndexError, "index: 3 for axis 0 of 3; expected -3 to 2"),
        (lambda x: x[:, [-5]], ArrayIndexError, "index: -5 for axis 1 of 4; expected -4 to 3"),
        (lambda x: x[[[0], [0, 1]]], ArrayIndexError, "lists of different lengths"),
        (lambda x: x[np.uint64([2**63])], ArrayIndexError, "9223372036854775808 for axis 0"),
        (lambda x: x[[0.5]], ArrayIndexError, "an array of float64; expected integers or truth"),
        (lambda x: x[np.ones(4, bool)], ArrayIndexError, r"of shape \(4,\) for axis 0"),
        (lambda x: x[[0, 1], [0, 1, 2]], ArrayIndexError, r"\(2,\), \(3,\) do not broadcast"),
        (lambda x: x[[0], [0], [0]], ArrayIndexError, "index: 3 axes; the array has 2"),
        (lambda x: x[..., [0], ...], ArrayIndexError, "more than one"),
        (lambda x: x["row"], ArrayIndexError, "of type str; expected integers, slices"),
        (lambda x: x[[0], 0.5], ArrayIndexError, "of type float"),
        (lambda x: x.__setitem__([0, 1], [1, 2, 3]), ShapeError, "does not broadcast"),
        (lambda x: x.__setitem__([0, 1], 1.5), DataTypeError, "value: data type float64"),
        (lambda x: x.broadcast_to((2, 3, 4)).__setitem__([0], 1), ShapeError, "repeats"),
        (
            lambda x: x.sum(where=np.ones(3, bool)),
            ShapeError,
            r"where: shape \(3,\); expected one that broadcasts to",
        ),
        (lambda x: x.any(where=MORE), ShapeError, r"where: shape \(4, 3, 4\); expected .*\(3, 4\)"),
        (
            lambda x: np.invert(x, out=x, where=MORE),
            ShapeError,
            r"out: shape \(3, 4\); expected \(4, 3, 4\)",
        ),
        (lambda x: x.sum(where=np.ones(4, "c8")), DataTypeError, "where: data type"),
        (lambda x: np.where(x), NotOfferedError, r"np\.where: .*missing"),
        (lambda x: np.where(x, x, np.zeros(4, "f4")), DataTypeError, "uint8 and float32"),
        (
            lambda x: x.get(out=np.zeros((3, 4), "u4")),
            DataTypeError,
            "out: uint32; expected an array of uint8",
        ),
        (lambda x: x.get(out=np.zeros((4, 3), "u1")), ShapeError, "out: shape"),
        (lambda x: bool(x[0, :2]), ShapeError, "2 elements; expected one"),
        (lambda x: len(x[0, 0]), ShapeError, "without axes has no length"),
        (lambda x: x.item(12), ArrayIndexError, "item: 12; the array has 12 elements"),
        (lambda x: x.item(-13), ArrayIndexError, "item: -13; the array has 12 elements"),
        (lambda x: x[:, :0].item(0), ArrayIndexError, "item: 0; the array has 0 elements"),
        (lambda x: bitlane.compute(), DataTypeError, "^compute: expected arrays on a device"),
        (lambda x: bitlane.compute(x, A), DataTypeError, "^compute: expected arrays on a device"),
        (lambda x: bitlane.compute(1), DataTypeError, "^compute: expected arrays on a device"),
        (lambda x: x.reshape(x), ShapeError, "shape: of type Array"),
        (lambda x: x.transpose(x), ShapeError, "axes: of type Array"),
        (lambda x: x.to_device(x), DataTypeError, "of type"),
        (lambda x: x.__index__(), DataTypeError, r"shape \(3, 4\), uint8"),
        (lambda x: np.full_like(x, 1 << 70), OutOfRangeError, "fill_value"),
    ],
)


A, W = np.ones((4, 6), np.uint8), np.ones((4, 7), np.uint8)
"""Elements of a shape that fits an array of 4 by 6 elements, and of another one."""


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x ^ W,
        lambda x: W ^ x,
        lambda x: x == W,
        lambda x: np.bitwise_xor(x, A, out=x[:2]),
        lambda x: np.bitwise_xor(x, A, out=A[:2].copy()),
        lambda x: np.bitwise_xor(x, A, out=x, where=W > 0),
        lambda x: np.bitwise_xor(x, A, where=W > 0),
        lambda x: np.logical_xor(x, W),
        lambda x: np.where(x, W, A),
        lambda x: np.where(W, x, A),
        lambda x: np.where(x, A, W),
        lambda x: x.sum(where=W > 0),
        lambda x: x.any(where=W > 0),
        lambda x: np.bitwise_or.reduce(x, where=W > 0),
        lambda x: np.copyto(x, W),
        lambda x: np.copyto(x, A, where=W > 0),
        lambda x: np.copyto(x, W, where=A > 0),
        lambda x: np.putmask(x, W, 1),
        lambda x: x.__setitem__(slice(None), W),
        lambda x: x.__setitem__(slice(2), A),
        lambda x: bitlane.hamming(x, W),
        lambda x: bitlane.jaccard(W, x),
        lambda x: bitlane.bit_xor(x, W),
        lambda x: x.device.bit_xor(A, A, out=x[:2]),
        lambda x: x.device.bit_not(A, out=x[:2]),
        lambda x: x.device.bit_count(A, out=x[:2]),
    ],
)
def test_an_operand_of_a_wrong_shape_is_not_sent(call: Callable[[Any], Any]) -> None:
    device = model()
    x = device.asarray(A)
    link_of(device).traffic.clear()
    with pytest.raises(ShapeError) as caught:
        call(x)
    assert "\n" not in str(caught.value)
    assert not [each for each in link_of(device).traffic if each[0] == "write"]
    assert same(x.get(), A)


def test_axes_of_one_element_before_the_others_are_copied() -> None:
    x, y = model().asarray(A), A.copy()
    mask = A.cumsum().reshape(4, 6) % 3 == 0
    for each in (x, y):
        np.copyto(each, A[None] * 7, where=mask)
        each[1:] = A[None, 1:] * 5
    assert same(x.get(), y)


F = DataTypeError, "float32|floats"
test_floats_have_bits_alone = refusals(
    random((2, 3), "f4"),
    [
        (lambda x: x ^ x, *F),
        (lambda x: ~x, *F),
        (lambda x: x << 1, *F),
        (lambda x: x.astype("i4"), *F),
        (lambda x: x.astype("f8"), *F),
        (lambda x: x == x.view("i4"), *F),
        (lambda x: x == np.zeros((2, 3)), *F),
        (lambda x: x.view("i4") & 1.5, *F),
        (lambda x: x.device.bit_shift_left(x, x), *F),
    ],
)
