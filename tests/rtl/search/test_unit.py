"""A unit outputs, every cycle, the Hamming distance of a query from the loaded row."""

import random
from typing import Any

import pytest

from bitlane_rtl.search.unit import Unit
from support.rtl.streams import simulate
from support.seeds import slow


def distances(unit: Unit, script: list[tuple[int, bool]]) -> list[int]:
    """Apply each ``bits`` and ``load`` of ``script`` for a cycle; return ``distance`` for each."""
    seen: list[int] = []

    async def drive(ctx: Any) -> None:
        for bits, load in [*script, *[(0, False)] * unit.latency]:
            ctx.set(unit.bits, bits)
            ctx.set(unit.load, load)
            _, _, distance = await ctx.tick().sample(unit.distance)
            seen.append(distance)

    simulate(unit, drive)
    return seen[unit.latency :]


@pytest.mark.parametrize("row_bits", [64, slow(128), slow(256), 512, slow(1024)])
def test_every_query_is_compared_with_the_last_row(row_bits: int) -> None:
    generator = random.Random(row_bits)
    script, row = [(0, True)], 0
    expected: list[int | None] = [None]
    extremes = [0, 1, 1 << row_bits - 1, (1 << row_bits) - 1]
    for _ in range(200):
        bits = generator.choice([*extremes, generator.getrandbits(row_bits), row])
        load = generator.random() < 0.1
        script.append((bits, load))
        expected.append(None if load else (bits ^ row).bit_count())
        row = bits if load else row
    got = distances(Unit(row_bits), script)
    wrong = [place for place, want in enumerate(expected) if want not in (None, got[place])]
    assert not wrong, f"seed {row_bits}: cycles {wrong} of {len(script)}"
