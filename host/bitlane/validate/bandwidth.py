"""How fast bytes move, up, down and both at once. What arrives is compared."""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np

from .session import Session, expect_equal

__all__ = ["check_bandwidth"]

_FIRST: Final = 4096
_MOST: Final = 16 << 20
_SECONDS: Final = 0.5
"""How long a measurement is to take, about; an eighth of it with ``quick``."""

_BACK: Final = "as they came back"


def check_bandwidth(session: Session) -> str:
    """Bytes a second in real time; a simulated line has a rate of its own in simulated time."""
    driver = session.driver
    base = session.geometry.memory_base
    half = session.geometry.memory_bytes // 2
    size = min(_FIRST, half)
    aim = _SECONDS / (8 if session.quick else 1)
    while True:
        content = session.random.integers(0, 256, size, np.uint8)
        up = _seconds(partial(driver.write, base, content))
        if up >= aim / 2 or size >= min(_MOST, half):
            break
        size = min(_MOST, half, size * max(2, min(64, int(aim / max(up, 1e-6)))))
    session.progress(0.5)
    results = []
    down = _seconds(lambda: results.append(driver.read(base, size)))
    expect_equal(results.pop(), content, base, _BACK)
    other = session.random.integers(0, 256, size, np.uint8)
    second = base + half
    both = _seconds(lambda: results.append(driver.exchange([(second, other)], [(base, size)])[0]))
    expect_equal(results.pop(), content, base, _BACK)
    expect_equal(driver.read(second, size), other, second, _BACK)
    return (
        f"{size / up:,.0f} bytes/s up, {size / down:,.0f} down,"
        f" {size / both:,.0f} each way at once ({size:,} bytes)"
    )


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return max(perf_counter() - start, 1e-9)
