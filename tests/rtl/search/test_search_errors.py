"""A beat in error spoils a search: nothing but errors leaves, and a reset makes all well again."""

from typing import Any

import numpy as np
import pytest

from bitlane_rtl.search.search_array import SearchArray
from support.oracle import nearest
from support.rtl.searching import beats, configured
from support.rtl.streams import (
    ALL_STALLS,
    Resettable,
    Sink,
    Source,
    Stalls,
    Testbench,
    compiled,
    simulate,
)

pytestmark = pytest.mark.slow

ROWS, QUERIES, NEAREST = 60, 5, 4


@pytest.mark.parametrize("stalls", ALL_STALLS)
@pytest.mark.parametrize(
    ("of_rows", "bad"), [(False, 0), (False, 2 * QUERIES - 1), (True, 0), (True, 2 * ROWS - 1)]
)
def test_a_bad_beat_makes_errors_until_a_reset(of_rows: bool, bad: int, stalls: Stalls) -> None:
    generator = np.random.default_rng(bad)
    queries = generator.integers(0, 256, (QUERIES, 16), np.uint8)
    rows = generator.integers(0, 256, (ROWS, 16), np.uint8)
    dut = compiled(Resettable, SearchArray, configured(6, row_bits=128, nearest=NEAREST))
    array = dut.dut
    spoiled = Sink(array.o, 20, stalls, "spoiled", idle=0)
    good = Sink(array.o, QUERIES * NEAREST, stalls, "good")
    taken: list[bool] = []

    def twice(port: Any, run: Any, bad_beat: int | None) -> Testbench:
        async def send(ctx: Any) -> None:
            await Source(port, beats(run, 64, bad_beat), stalls).run(ctx)
            taken.append(True)
            await ctx.tick().until(dut.reset)
            await Source(port, beats(run, 64), stalls).run(ctx)

        return send

    async def receive(ctx: Any) -> None:
        await spoiled.run(ctx)
        while len(taken) < 2:
            await ctx.tick()
        ctx.set(dut.reset, 1)
        await ctx.tick()
        ctx.set(dut.reset, 0)
        await good.run(ctx)

    simulate(
        dut,
        twice(array.queries, queries, None if of_rows else bad),
        twice(array.rows, rows, bad if of_rows else None),
        receive,
    )
    assert all(payload.error for payload in spoiled.payloads)
    assert not any(payload.error for payload in good.payloads)
    words = np.array([payload.data for payload in good.payloads], np.uint64).view(np.uint32)
    assert (words.reshape(QUERIES, NEAREST, 2) == nearest(rows, queries, NEAREST)).all()
