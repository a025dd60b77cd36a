"""Arrays whose memory or device is gone, full or busy are refused, and the device works on.

Ctrl-C at any point leaves arrays, their memory and the device as usable as before.
"""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane import (
    Array,
    BusyError,
    Device,
    FreedError,
    LinkError,
    OtherDeviceError,
    OutOfDeviceMemory,
)
from bitlane.arrays import Claim, value
from bitlane.arrays import elementwise as operations
from bitlane.compiler import Expression, apply
from bitlane.driver import Driver
from bitlane.links import BytesLike
from bitlane_rtl.abi import CONTROL_BASE
from support.host.arrays import link_of, model, random, same
from support.host.interrupts import attempt
from support.host.model_link import ModelLink
from support.seeds import stride


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
    device, host = model(), np.empty((0, 3), "u1")
    x, empty = device.asarray(random(5, "u1")), device.asarray(host)
    y = x ^ 1
    device.close()
    wrong: list[Callable[[], Any]] = [
        x.get,
        y.get,
        lambda: x.__setitem__(0, 1),
        empty.get,
        lambda: (empty ^ 1).get(),
        lambda: empty.__setitem__(..., 1),
        lambda: empty.__setitem__(..., host),
        lambda: np.bitwise_xor(empty, 1, out=host),
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


@pytest.mark.parametrize("operator", [False, True])
def test_what_waits_for_freed_memory_keeps_no_array_from_changes(
    operator: bool, device: Device
) -> None:
    a = random(5, "u1")
    x, other = device.asarray(a), device.asarray(a)
    freed = x ^ 1 if operator else other
    lost, whole = x & freed, ~x
    later = lost ^ 3
    bitlane.compute(freed)
    freed.free()
    x ^= 7
    assert same(x.get(), a ^ 7)
    assert same(whole.get(), ~a)
    del freed, other
    for pending in (lost, later):
        with pytest.raises(FreedError, match="memory has been freed"):
            pending.get()


def test_arrays_of_two_devices(device: Device) -> None:
    other = model()
    a = random(5, "u1")
    x, y = device.asarray(a), other.asarray(a)
    wrong: list[Callable[[], Any]] = [
        lambda: x ^ y,
        lambda: device.bit_and(x, y),
        lambda: np.array_equal(x, y),
        lambda: np.equal(x, y),
        lambda: np.logical_or(x, y),
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


def test_a_claim_of_this_thread_does_not_hide_one_of_another(device: Device) -> None:
    x = device.asarray(random(64, "u4"))
    storage = x._value.stored.storage
    with ThreadPoolExecutor(1) as pool:
        claim = pool.submit(Claim, [storage]).result()
        with claim, Claim([storage]), pytest.raises(BusyError, match="another thread is reading"):
            x.__ixor__(1)
    x.__ixor__(1)


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
    looked = value.members

    def look(group: Any) -> list[Any]:
        found = looked(group)
        if group is whole._value.storages and not computing.ident:
            computing.start()
            computing.join(0.2)
        return found

    monkeypatch.setattr(value, "members", look)
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


# --- interrupted ----------------------------------------------------------------------------------

ACTIONS: dict[str, Callable[[Device, Array, Array, Array], object]] = {
    "upload": lambda device, x, y, pending: device.asarray(random(64, "u4")),
    "evaluate": lambda device, x, y, pending: pending.get(),
    "evaluate two": lambda device, x, y, pending: (pending << 3 | pending).get(),
    "in place": lambda device, x, y, pending: x.__ixor__(y),
    "assign": lambda device, x, y, pending: x.__setitem__(slice(8, None, 2), y[::-1][:28]),
    "download": lambda device, x, y, pending: x[::9].get(),
}

WHERE = ("driver.py", "allocator.py", "value.py", "evaluation.py", "weakref.py", "<string>")
"""Sources that account for memory and its users; "<string>" is code that dataclasses generate."""


# A generator that Python closes may meet Ctrl-C, too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ACTIONS)
def test_ctrl_c_anywhere(name: str) -> None:
    a, b = random(64, "u4", 1), random(64, "u4", 2)
    device = model()
    for place in count(step=stride(4)):
        x, y = device.asarray(a), device.asarray(b)
        pending = ~(x ^ y) & (y | 7)
        later = pending & 3
        came = attempt(ACTIONS[name], WHERE, place, device, x, y, pending)
        where = f"{name}, place {place}"
        assert same(pending.get(), ~(a ^ b) & (b | 7)), where
        pending[...] = 0
        assert same(later.get(), ~(a ^ b) & (b | 7) & 3), where
        assert same(y.get(), b), where
        another = Thread(target=x.__setitem__, args=(..., b))
        another.start()
        another.join()
        assert same(x.get(), b), where
        del x, y, pending, later, another
        if device.driver.allocator.pieces:
            # A traceback and its frames may hold each other.
            gc.collect()
        assert device.driver.allocator.pieces == 0, f"{where}: memory was not given back"
        free = device.driver.allocator.free_bytes
        assert free == device.driver.geometry.memory_bytes, f"{where}: memory is lost"
        if not came:
            break
    assert place > 5, "Ctrl-C came too seldom"


class _Finalized:
    """Part of a reference cycle, so that the garbage collector finalizes it, at any time."""

    def __init__(self, use: Callable[[], object]) -> None:
        self.cycle = self
        self.use = use

    def __del__(self) -> None:
        self.use()


def _in_time(work: Callable[[], object]) -> None:
    """Run ``work`` in a thread that is left behind if it waits for itself."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001, raised again below
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "a thread waits for a lock that it holds"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("where", ["usage_of", "Claim", "members", "_Usage", "_add", "ref"])
def test_a_finalizer_may_use_arrays_anywhere(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = model()
    a, b = random(64, "u4", 1), random(64, "u4", 2)
    x, y, z = device.asarray(a), device.asarray(b), device.asarray(a)
    original, finalizing, finalized = getattr(value, where), False, 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal finalizing, finalized
        if not finalizing:
            finalizing = True
            finalized += 1
            z[...] = z ^ y
            finalizing = False
        return original(*arguments)

    def work() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(value, where, interrupted)
            pending = x ^ y
            x[...] = 0
            assert same(pending.get(), a ^ b)
            assert same((x | 7).get(), (a & 0) | 7)

    _in_time(work)
    assert finalized
    assert same(z.get(), a ^ b if finalized % 2 else a)


def test_finalizers_in_a_loop() -> None:
    device = model()
    a, b = random(64, "u4", 1), random(64, "u4", 2)
    x, y, z = device.asarray(a), device.asarray(b), device.asarray(a)
    rounds = 0

    def use() -> None:
        nonlocal rounds
        rounds += 1
        z[...] = (z ^ y) ^ y

    def work() -> None:
        for number in range(60):
            _Finalized(use)
            pending = (x ^ y) & number
            half = x ^ number
            _Finalized(use)
            x[...] = 3
            assert same(pending.get(), (a ^ b) & number)
            assert same(half.get(), a ^ np.uint32(number))
            x[...] = a

    threshold = gc.get_threshold()
    gc.set_threshold(17, 2, 2)
    try:
        _in_time(work)
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert rounds == 120
    assert same(z.get(), a)
