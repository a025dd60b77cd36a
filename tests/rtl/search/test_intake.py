"""The intake writes each beat of queries and rows to its own word of the store."""

from typing import Any

import numpy as np
import pytest

from bitlane_rtl.search.intake import Intake
from bitlane_rtl.search.layouts import Sizes
from support.rtl.searching import beats, configured
from support.rtl.streams import STALLS, Source, Stalls, simulate


@pytest.mark.parametrize("row_bits", [64, 128])
@pytest.mark.parametrize("stalls", STALLS[:2], ids=str)
def test_every_beat_is_written_to_its_own_word(row_bits: int, stalls: Stalls) -> None:
    sizes = Sizes(configured(2, row_bits=row_bits, data_width=32, queries=4))
    dut = Intake(sizes)
    generator = np.random.default_rng(row_bits)
    queries = generator.integers(0, 256, (3, row_bits // 8), np.uint8)
    rows = generator.integers(0, 256, (5, row_bits // 8), np.uint8)
    written: dict[tuple[int, int], int] = {}

    async def store(ctx: Any) -> None:
        while True:
            seen = dut.write.enable, dut.write.address, dut.write.word, dut.write.data
            _, _, write, address, word, data = await ctx.tick().sample(*seen)
            if write:
                assert (address, word) not in written
                written[address, word] = data

    async def rest(ctx: Any) -> None:
        await Source(dut.rows, beats(rows, 32), stalls).run(ctx)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.ended)
        assert (ctx.get(dut.count), ctx.get(dut.stored)) == (5, 5)
        assert not ctx.get(dut.failed)

    simulate(dut, Source(dut.queries, beats(queries, 32), stalls), rest, background=[store])
    upper = sizes.store_depth // 2
    expected = {
        (first + number, word): int(data)
        for first, run in ((0, queries), (upper, rows))
        for number, row in enumerate(run)
        for word, data in enumerate(row.view("<u4"))
    }
    assert written == expected
