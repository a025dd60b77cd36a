"""Banks serve two reads and a write in one cycle."""

import random
from typing import Any

import pytest

from bitlane_rtl.bus.banks import BankedMemory
from support.rtl.bursts import (
    BASE,
    BYTES,
    WORDS,
    beats_to_write,
    blocks,
    check_at_random,
    transfer_bursts,
)
from support.rtl.streams import ALL_STALLS, Sink, Source, Stalls, compiled, elaborated, simulate
from support.seeds import slow


def memory(banks: int = 2, read_ports: int = 2) -> Any:
    known = compiled if banks == 2 else elaborated
    return known(BankedMemory, 32, 8 * BYTES, WORDS, banks=banks, read_ports=read_ports)


@pytest.mark.parametrize(("banks", "read_ports"), [slow(1, 1), (1, 2), (2, 1), (2, 2), slow(4, 2)])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_the_engine_reaches_the_right_bytes(stalls: Stalls, banks: int, read_ports: int) -> None:
    dut = memory(banks, read_ports)
    check_at_random(dut, read_ports, stalls)


def test_each_word_of_four_banks_keeps_its_content() -> None:
    dut = memory(banks=4)
    asked = blocks(WORDS // 16, 0)
    beats = [{**beat, "strobe": 15} for beat in beats_to_write(asked, random.Random(0))]
    responses, data = Sink(dut.write.response, len(asked)), Sink(dut.a.data, WORDS)

    async def read_back(ctx: Any) -> None:
        await responses.run(ctx)
        await Source(dut.a.request, asked).run(ctx)

    written = Source(dut.write.request, asked), Source(dut.write.data, beats)
    simulate(dut, *written, read_back, data)
    assert [beat.data for beat in data.payloads] == [beat["data"] for beat in beats]


def test_a_beat_comes_two_cycles_after_it_is_asked_for() -> None:
    dut = memory()
    ran = transfer_bursts(dut, b=[{"address": BASE + 40, "length": 1}])
    assert ran.ask_b.cycles == [1], "the request is taken with its last beat"
    assert ran.b.cycles == [2, 3]


def test_a_read_and_a_write_have_every_cycle() -> None:
    dut = memory(banks=1, read_ports=1)
    ran = transfer_bursts(dut, a=blocks(4, 0), write=blocks(4, 8))
    assert ran.a.cycles == list(range(2, 66))
    assert ran.beats.cycles == list(range(64))
    assert ran.response.cycles == [16, 32, 48, 64]


@pytest.mark.parametrize("banks", [2, 4])
@pytest.mark.parametrize("distance", [0, 4, 7, 8])
def test_two_readers_stagger_themselves_and_then_have_every_cycle(
    banks: int, distance: int
) -> None:
    dut = memory(banks)
    ran = transfer_bursts(dut, a=blocks(4, 0), b=blocks(4, distance))
    late = 0 if distance % banks else 16
    assert ran.a.cycles == list(range(2, 66))
    assert ran.b.cycles == list(range(2 + late, 66 + late))


def test_one_bank_is_shared_burst_by_burst() -> None:
    dut = memory(banks=1)
    ran = transfer_bursts(dut, a=blocks(4, 0), b=blocks(4, 4))
    assert ran.a.cycles == [block + beat for block in range(2, 130, 32) for beat in range(16)]
    assert ran.b.cycles == [block + beat for block in range(18, 130, 32) for beat in range(16)]


def test_a_beat_that_is_not_taken_stays_and_holds_up_its_bank_only() -> None:
    dut = memory()
    seen: list[tuple[int, int]] = []

    async def stuck(ctx: Any) -> None:
        ctx.set(dut.a.request.payload.address, BASE)
        ctx.set(dut.a.request.payload.length, 3)
        ctx.set(dut.a.request.valid, 1)
        for _ in range(100):
            await ctx.tick()
            seen.append((ctx.get(dut.a.data.valid), ctx.get(dut.a.data.payload.data)))
        ctx.set(dut.a.data.ready, 1)
        await ctx.tick()
        ctx.set(dut.a.request.valid, 0)
        for _ in range(16):
            await ctx.tick()

    # Banks 1, 1, 0: the last request waits for the beat that bank 0 holds.
    requests = [*blocks(1, 1), *blocks(1, 3), *blocks(1, 2)]
    ran = transfer_bursts(dut, stuck, b=requests)
    assert seen[1:] == [(1, 0)] * 99
    assert ran.b.cycles[:32] == list(range(2, 34))
    assert ran.b.cycles[32] > 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"read_ports": 3}, "read_ports: 3 is neither 1 nor 2"),
        ({"banks": 3}, "banks: 3 is not a power of two"),
        ({"words": 48}, "words: 48 is not a power of two, 32 or more"),
        ({"words": 16}, "words: 16 is not a power of two, 32 or more"),
    ],
)
def test_other_parameters_are_refused(arguments: dict[str, int], message: str) -> None:
    words = arguments.pop("words", WORDS)
    with pytest.raises(ValueError, match=message):
        BankedMemory(32, 32, words, **arguments)
