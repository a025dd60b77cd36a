"""Ctrl-C at any point leaves arrays, their memory and the device as usable as before."""

import gc
from collections.abc import Callable
from itertools import count
from threading import Thread
from typing import Any

import numpy as np
import pytest

from bitlane import Array, Device
from bitlane.arrays import value
from support.host.arrays import model, random, same
from support.host.interrupts import attempt
from support.seeds import stride

ACTIONS: dict[str, Callable[[Device, Array, Array, Array], object]] = {
    "upload": lambda device, x, y, pending: device.asarray(random(64, "u4")),
    "evaluate": lambda device, x, y, pending: pending.get(),
    "evaluate two": lambda device, x, y, pending: (pending << 3 | pending).get(),
    "in place": lambda device, x, y, pending: x.__ixor__(y),
    "assign": lambda device, x, y, pending: x.__setitem__(slice(8, None, 2), y[::-1][:28]),
    "download": lambda device, x, y, pending: x[::9].get(),
}

WHERE = (
    *("driver.py", "allocator.py", "value.py", "evaluate.py"),
    *("weakref.py", "<string>"),
)
"""Sources that account for memory and its users; "<string>" is code that dataclasses generate."""


# A generator that Python closes may meet Ctrl-C, too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ACTIONS)
def test_ctrl_c_anywhere(name: str) -> None:
    a, b = random(64, "u4", 1), random(64, "u4", 2)
    device = model()
    for place in count(step=stride(3)):
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


@pytest.mark.parametrize("where", ["usage_of", "Claim", "_members", "_Usage", "_add", "ref"])
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
