"""The joiner makes output beats of a reader's words, whatever follows whatever."""

from typing import Any

import pytest
from amaranth.hdl import Value

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath.joiner import Joiner
from support.rtl.streams import STALLS, Sink, Source, Stalls, simulate, to_bits, transfer


def word(data: int, split: int, *flags: str, **edge: int) -> dict[str, Any]:
    """A word of a 32-bit reader; ``flags`` and ``edge`` name what is 1."""
    fields = {name: int(name in flags) for name in ("prime", "flush", "merge", "repeat")}
    return {"data": data, "split": split, **fields, "edge": edge}


@pytest.mark.parametrize("stalls", STALLS)
def test_gather_behind_a_flush_keeps_its_first_element(stalls: Stalls) -> None:
    """Its first word is taken while the run before still gives its last beat."""
    words = [
        word(0x11111111, 0, "flush", last=1, end=1),
        word(0x000000AA, 0, "prime", "merge"),
        word(0x0000BB00, 1, "prime", "merge"),
        word(0x00CC0000, 2, "prime", "merge"),
        word(0xDD000000, 3, "merge", last=1, end=1),
    ]
    dut = Joiner(Configuration(data_width=32))
    _, sink = transfer(dut, dut.i, dut.o, words, 3, stalls)
    assert [int(beat.data) for beat in sink.payloads] == [0x11111111, 0x11111111, 0xDDCCBBAA]
    assert [int(beat.edge.last) for beat in sink.payloads] == [0, 1, 1]


def test_prime_behind_a_flush_costs_no_cycle() -> None:
    words = [
        word(0x44332211, 2, "prime"),
        word(0x88776655, 2, "flush", last=1, end=1),
        word(0x04030201, 1, "prime"),
        word(0x08070605, 1, last=1, end=1),
    ]
    dut = Joiner(Configuration(data_width=32))
    _, sink = transfer(dut, dut.i, dut.o, words, 3)
    assert [int(beat.data) for beat in sink.payloads] == [0x88772211, 0x88776655, 0x08070601]
    assert sink.cycles[2] - sink.cycles[0] == 2


@pytest.mark.parametrize("stalls", STALLS)
def test_repeat_behind_a_flush_gives_all_its_beats(stalls: Stalls) -> None:
    """The beat that the flush gives is not one of the repeated ones."""
    words = [
        word(0x11111111, 0, "flush", last=1, end=1),
        word(0xEEEEEEEE, 0, "repeat", last=1, end=1),
        word(0x22222222, 0, last=1, end=1),
    ]
    dut = Joiner(Configuration(data_width=32))
    lengths = [{"beats": beats, "several": beats > 0} for beats in (1, 2, 0)]
    sink = Sink(dut.o, 6, stalls)
    simulate(dut, Source(dut.i, words, stalls), Source(dut.lengths, lengths), sink)
    assert [int(beat.data) for beat in sink.payloads] == [
        0x11111111,
        0x11111111,
        0xEEEEEEEE,
        0xEEEEEEEE,
        0xEEEEEEEE,
        0x22222222,
    ]
    assert [int(beat.edge.end) for beat in sink.payloads] == [0, 1, 0, 0, 1, 1]


def test_rows_that_alternate_cost_a_cycle_once_and_not_a_row() -> None:
    """Behind once, the output stays a word behind, so that each prime finds an output beside it."""
    plain = [word(0x11111111, 0), word(0x22222222, 0, last=1)]
    shifted = [word(0x44332211, 2, "prime"), word(0x88776655, 2, "flush", last=1)]
    rows = 20
    words = (plain + shifted) * rows
    dut = Joiner(Configuration(data_width=32))
    _, sink = transfer(dut, dut.i, dut.o, words, 4 * rows)
    expected = [0x11111111, 0x22222222, 0x88772211, 0x88776655] * rows
    assert [int(beat.data) for beat in sink.payloads] == expected
    assert sink.cycles[-1] - sink.cycles[0] == 4 * rows - 1 + 1


@pytest.mark.parametrize("stalls", STALLS)
def test_an_absorbed_prime_carries_its_flush_and_its_error(stalls: Stalls) -> None:
    words = [
        word(0x11111111, 0, last=1),
        word(0x44332211, 2, "prime", "flush", last=1, error=1),
        word(0x22222222, 0, last=1, end=1),
    ]
    dut = Joiner(Configuration(data_width=32))
    _, sink = transfer(dut, dut.i, dut.o, words, 3, stalls)
    assert [int(beat.data) for beat in sink.payloads] == [0x11111111, 0x44332211, 0x22222222]
    assert [int(beat.edge.error) for beat in sink.payloads] == [0, 1, 1]
    assert [int(beat.edge.end) for beat in sink.payloads] == [0, 0, 1]


@pytest.mark.parametrize("gap", range(6))
def test_repeat_after_a_gap_has_the_length_of_its_own_command(gap: int) -> None:
    """Nothing is in front any more when it comes, and the length of the next command waits."""
    dut = Joiner(Configuration(data_width=32))
    words = [
        word(0x11111111, 0, last=1, end=1),
        word(0xEEEEEEEE, 0, "repeat", last=1, end=1),
        word(0x22222222, 0, last=1, end=1),
    ]
    lengths = [{"beats": beats, "several": beats > 0} for beats in (0, 2, 0)]

    async def send(ctx: Any) -> None:
        payload = Value.cast(dut.i.payload)
        await ctx.tick().repeat(4)
        for each in words:
            ctx.set(payload, to_bits(dut.i.payload.shape(), each))
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            if gap:
                await ctx.tick().repeat(gap)

    sink = Sink(dut.o, 5)
    simulate(dut, send, Source(dut.lengths, lengths), sink)
    assert [int(beat.data) for beat in sink.payloads] == [0x11111111] + 3 * [0xEEEEEEEE] + [
        0x22222222
    ]


@pytest.mark.parametrize("stalls", STALLS)
def test_a_cycle_never_ends_two_commands(stalls: Stalls) -> None:
    """A command of a single ``prime`` word is not absorbed: its length has to be passed."""
    dut = Joiner(Configuration(data_width=32))
    words = [
        word(0x11111111, 0, last=1, end=1),
        word(0x44332211, 2, "prime", "flush", last=1, end=1),
        word(0xEEEEEEEE, 0, "repeat", last=1, end=1),
        word(0x22222222, 0, last=1, end=1),
    ]
    lengths = [{"beats": beats, "several": beats > 0} for beats in (0, 0, 2, 0)]

    async def send(ctx: Any) -> None:
        await ctx.tick().repeat(4)
        await Source(dut.i, words, stalls).run(ctx)

    sink = Sink(dut.o, 6, stalls)
    simulate(dut, send, Source(dut.lengths, lengths), sink)
    data = [int(beat.data) for beat in sink.payloads]
    assert data == [0x11111111, 0x44332211] + 3 * [0xEEEEEEEE] + [0x22222222]
    assert [int(beat.edge.end) for beat in sink.payloads] == [1, 1, 0, 0, 1, 1]
