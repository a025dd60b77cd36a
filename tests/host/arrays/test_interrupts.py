"""Ctrl-C at any point leaves arrays, their memory and the device as usable as before.

Python handles the signal at the start of every function, and at the end of every C function.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from itertools import count
from threading import Thread
from types import FrameType
from typing import Any

import pytest

from bitlane import Array
from bitlane.device import Device
from support.host.arrays import model, random, same
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


def _gives_back(frame: FrameType | None) -> bool:
    """Return whether Python calls this frame for a dead object, where it discards exceptions."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(("weakref.py", "_weakrefset.py")) and code.co_name in (
            "__call__",
            "_remove",
            "remove",
        ):
            return True
        frame = frame.f_back
    return False


@contextmanager
def interrupted(after: int) -> Iterator[None]:
    """Raise Ctrl-C at the ``after``th point from here."""
    places = count()

    def profile(frame: FrameType, event: str, _: object) -> None:
        # A profiler's error as a generator goes on leaves the frame behind: Python's own fault.
        begins = event == "call" and not frame.f_code.co_flags & CO_GENERATOR
        here = frame.f_code.co_filename.endswith(WHERE)
        if not here or not (begins or event == "c_return") or _gives_back(frame):
            return
        if next(places) == after:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def attempt(action: Callable[..., object], place: int, *arguments: Any) -> bool:
    """Return whether Ctrl-C at ``place`` came before the end of ``action``."""
    try:
        with interrupted(place):
            action(*arguments)
    except KeyboardInterrupt:
        return True
    return False


# A generator that Python closes may meet Ctrl-C, too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ACTIONS)
def test_ctrl_c_anywhere(name: str) -> None:
    a, b = random(64, "u4", 1), random(64, "u4", 2)
    device = model()
    for place in count(step=stride(3)):
        x, y = device.asarray(a), device.asarray(b)
        pending = ~(x ^ y) & (y | 7)
        came = attempt(ACTIONS[name], place, device, x, y, pending)
        where = f"{name}, place {place}"
        assert same(pending.get(), ~(a ^ b) & (b | 7)), where
        assert same(y.get(), b), where
        another = Thread(target=x.__setitem__, args=(..., b))
        another.start()
        another.join()
        assert same(x.get(), b), where
        del x, y, pending, another
        if device.driver.allocator.pieces:
            # A traceback and its frames may hold each other.
            gc.collect()
        assert device.driver.allocator.pieces == 0, f"{where}: memory was not given back"
        free = device.driver.allocator.free_bytes
        assert free == device.driver.geometry.memory_bytes, f"{where}: memory is lost"
        if not came:
            break
    assert place > 5, "Ctrl-C came too seldom"
