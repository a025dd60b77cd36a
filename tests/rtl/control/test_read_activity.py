"""Beats are reported a cycle late, and stalls while a requested beat is missing."""

from typing import Any

from bitlane_rtl.control.read_activity import ReadActivity
from support.rtl.streams import simulate


def test_beats_and_stalls_of_two_bursts() -> None:
    """A burst of 2 beats, then one of 1 that is requested while the last beat arrives."""
    dut = ReadActivity()
    seen: list[str] = []

    async def drive(ctx: Any) -> None:
        for request, length, beat in zip("1000100000", "1000000000", "0010100100", strict=True):
            ctx.set(dut.request, int(request))
            ctx.set(dut.length, int(length))
            ctx.set(dut.data, int(beat))
            seen.append("b" if ctx.get(dut.beat) else "s" if ctx.get(dut.stall) else ".")
            await ctx.tick()

    simulate(dut, drive)
    assert "".join(seen) == "..sbsbssb."
