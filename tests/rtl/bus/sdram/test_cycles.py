"""Cycles that a beat takes, and cycles lost to row changes and to turning the data lines round."""

from itertools import groupby, pairwise
from typing import Any

import pytest

from bitlane_boards.pins.sdram import SdramChip
from bitlane_rtl.bus.sdram.part import SdramTiming
from bitlane_rtl.bus.sdram.pins import ChipCommand
from bitlane_rtl.bus.sdram.refresher import Refresher
from support.rtl.bursts import bursts_of
from support.rtl.sdram import CLOCK_HZ, PART, PARTS, ChipAtPins, memory
from support.rtl.streams import simulate

TIMING = SdramTiming.of(PART, CLOCK_HZ)
WIDTH = 64
WORDS = WIDTH // PART.width
BLOCK = 16 * WIDTH // 8
ROW = BLOCK * 4 * (512 // (16 * WORDS))
"""Bytes from one row to the next in the same bank."""
READY = 200
"""Cycle by which the chip has started; no refresh follows within 500 more cycles."""

_A, _P, _R, _W = ChipCommand.ACTIVATE, ChipCommand.PRECHARGE, ChipCommand.READ, ChipCommand.WRITE


class Later:
    """A testbench that begins after ``cycles`` cycles and counts its cycles from then on."""

    def __init__(self, bench: Any, cycles: int) -> None:
        self._bench = bench
        self._cycles = cycles

    async def run(self, ctx: Any) -> None:
        await ctx.tick().repeat(self._cycles)
        await self._bench.run(ctx)


def bursts(*places: int, length: int = 15) -> list[dict[str, int]]:
    return [{"address": place, "length": length} for place in places]


def run(
    *, a: Any = (), b: Any = (), write: Any = (), b_after: int = 0
) -> tuple[dict[str, Any], list[tuple[int, ChipCommand]]]:
    """Run the bursts of each port; those of ``b`` start ``b_after`` cycles after the others.

    Returns the benches, each counting cycles from its start, and the commands from `READY` on.
    """
    dut = memory(WIDTH)
    at_pins = ChipAtPins(dut.pins, SdramChip(PART, CLOCK_HZ))
    benches = bursts_of(dut, a=a, b=b, write=write)
    late = dict.fromkeys(("ask_b", "b"), READY + b_after)
    later = [Later(bench, late.get(name, READY)) for name, bench in benches.items()]
    simulate(dut, *later, background=[at_pins])
    return benches, [(cycle - READY, what) for cycle, what in at_pins.given if cycle >= READY]


def accesses(given: list[tuple[int, ChipCommand]], kind: ChipCommand) -> list[int]:
    return [cycle for cycle, what in given if what is kind]


def test_the_initialization_waits_for_each_time_of_the_data_sheet_and_no_longer() -> None:
    dut = Refresher(TIMING)
    given: list[tuple[int, ChipCommand]] = []

    async def watch(ctx: Any) -> None:
        async for _, _, command, started in ctx.tick().sample(dut.command, dut.started):
            what = ChipCommand(command)
            given.append((len(given), what))
            if started:
                return

    simulate(dut, watch)
    commands = [(cycle, what) for cycle, what in given if what is not ChipCommand.NONE]
    refreshes = [ChipCommand.REFRESH] * TIMING.first_refreshes
    assert [what for _, what in commands] == [_P, *refreshes, ChipCommand.SET_MODE]
    times = [cycle for cycle, _ in commands]
    # `started` is a register, so that it is seen a cycle after the last wait.
    assert [after - before for before, after in pairwise([*times, given[-1][0] - 1])] == [
        TIMING.precharge,
        *[TIMING.refresh_cycle] * TIMING.first_refreshes,
        TIMING.mode_cycle,
    ]
    assert times[0] == TIMING.pause - 1


@pytest.mark.parametrize(
    ("second", "given", "more"),
    [
        (BLOCK * 4, [_R], 0),
        (BLOCK, [_A, _R], TIMING.activate_to_access),
        (ROW, [_P, _A, _R], TIMING.activate_to_access + TIMING.precharge),
    ],
    ids=["open", "closed", "another"],
)
def test_a_beat_takes_what_its_row_does(second: int, given: list[ChipCommand], more: int) -> None:
    benches, commands = run(a=bursts(0, length=0), b=bursts(second, length=0), b_after=50)
    assert benches["a"].cycles == [TIMING.cas + WORDS + 8 + TIMING.activate_to_access]
    assert benches["b"].cycles == [TIMING.cas + WORDS + 8 + more]
    assert [what for _, what in commands] == [_A, _R, *given]


def test_a_response_comes_with_the_last_write() -> None:
    benches, given = run(write=bursts(0, length=1))
    _, last = accesses(given, _W)
    assert benches["response"].cycles == [last], "two after it was given, as its pins are"


@pytest.mark.parametrize("second", [BLOCK, 4 * BLOCK, ROW + BLOCK], ids=["bank", "row", "both"])
def test_bursts_have_no_gap_if_their_banks_differ_or_their_row_is_one(second: int) -> None:
    for blocks in (bursts(0, second), bursts(0, second, length=3)):
        _, given = run(a=blocks)
        reads = accesses(given, _R)
        assert {after - before for before, after in pairwise(reads)} == {WORDS}


def test_a_row_is_opened_between_reads_of_every_cycle() -> None:
    """Each beat is a single word of the chip, so reads leave no cycle free for a row."""
    dut = memory(32, part="without masks")
    at_pins = ChipAtPins(dut.pins, SdramChip(PARTS["without masks"], CLOCK_HZ))
    block = 16 * 4
    benches = bursts_of(dut, a=bursts(0, block))
    simulate(dut, *(Later(each, READY) for each in benches.values()), background=[at_pins])
    reads = [cycle for cycle, what in at_pins.given if what is _R]
    assert len(reads) == 32
    assert reads[-1] - reads[0] == 32, "the second bank's row takes one cycle of the first burst"


def test_streams_that_began_in_one_bank_go_on_a_block_apart() -> None:
    _, given = run(
        a=bursts(*range(0, 6 * BLOCK, BLOCK)), b=bursts(*range(ROW, ROW + 6 * BLOCK, BLOCK))
    )
    reads = accesses(given, _R)
    gaps = {after - before for before, after in pairwise(reads)}
    (refresh,) = accesses(given, ChipCommand.REFRESH)
    at_refresh = min(cycle for cycle in reads if cycle > refresh)
    before = max(cycle for cycle in reads if cycle < refresh)
    assert gaps == {WORDS, at_refresh - before}
    assert at_refresh - before == 22, "the last words, tRP, tRFC, and a row to open"


@pytest.mark.parametrize("bank", range(4))
def test_two_streams_that_begin_in_any_one_bank_lose_no_cycle(bank: int) -> None:
    """The first beat opens its row; each of the 127 beats behind it adds just its words' cycles."""
    first = bank * BLOCK
    benches, _ = run(
        a=bursts(*range(first, first + 4 * BLOCK, BLOCK)),
        b=bursts(*range(ROW + first, ROW + first + 4 * BLOCK, BLOCK)),
    )
    opening = TIMING.cas + WORDS + 8 + TIMING.activate_to_access
    cycles = sorted(benches["a"].cycles + benches["b"].cycles)
    assert cycles == [opening + WORDS * beat for beat in range(128)]


def test_lines_that_turn_round() -> None:
    writes = bursts(2 * BLOCK, 6 * BLOCK)
    _, given = run(a=bursts(0), write=writes, b=bursts(4 * BLOCK), b_after=80)
    data = [(cycle, what) for cycle, what in given if what in (_R, _W)]
    kinds = [what for what, _ in groupby(what for _, what in data)]
    assert kinds == [_R, _W, _R]
    lost = {
        (one, other): later - sooner - WORDS
        for (sooner, one), (later, other) in pairwise(data)
        if one is not other
    }
    assert lost == {(_R, _W): TIMING.cas + 2, (_W, _R): 0}, "the latter, and cas to its first word"
