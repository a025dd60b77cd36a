"""The watchdog expires after exactly ``bound`` waiting cycles, and never otherwise."""

from typing import Any

import pytest

from bitlane_rtl.datapath.watchdog import Watchdog
from support.rtl.streams import simulate


def expiry(bound: int, script: str) -> list[int]:
    """Return the cycles with ``expired`` 1. ``script``, by cycle: w waits, p progress, i idle."""
    dut = Watchdog()
    seen = []

    async def drive(ctx: Any) -> None:
        ctx.set(dut.bound, bound)
        for cycle, what in enumerate(script):
            ctx.set(dut.waiting, what != "i")
            ctx.set(dut.progress, what == "p")
            _, _, expired = await ctx.tick().sample(dut.expired)
            if expired:
                seen.append(cycle)

    simulate(dut, drive)
    return seen


@pytest.mark.parametrize("bound", [1, 2, 7])
def test_waits_of_the_bound_expire(bound: int) -> None:
    assert expiry(bound, "i" + "w" * bound + "i") == []
    assert expiry(bound, "i" + "w" * (bound + 1)) == [bound + 1]


def test_progress_starts_the_count_again() -> None:
    assert expiry(3, "i" + "wwwp" * 5) == []
    assert expiry(3, "iwwwpwwww") == [8]


def test_progress_at_the_last_moment_counts() -> None:
    assert expiry(3, "iwwwp") == []


def test_no_bound_never_expires() -> None:
    assert expiry(0, "w" * 300) == []
