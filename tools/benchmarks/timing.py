"""The time of a call."""

from collections.abc import Callable
from time import perf_counter


def fastest(
    call: Callable[[], object], rounds: int = 100, timer: Callable[[], float] = perf_counter
) -> float:
    """Return the seconds of the fastest call, because noise only adds time."""
    best = float("inf")
    for _ in range(rounds):
        started = timer()
        call()
        best = min(best, timer() - started)
    return best
