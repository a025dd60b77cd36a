"""The controller and a chip: the right bytes under any stalls, and no rule of the chip broken.

Cycle counts follow from the data sheet and the clock: those of beats, and those that are lost to
row changes and to turning the data lines round. A controller that waits too few cycles breaks the
chip's rule of that name, so the controller really waits for each rule.
"""

import random
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import pytest

from bitlane_boards.pins import CircuitModel, SdramChip, SdramModel, SplitPins
from bitlane_rtl.abi import Rows, register
from bitlane_rtl.bus import SdramMemory
from bitlane_rtl.bus.sdram import AS4C16M16SA_7, ChipCommand, Refresher, SdramPart, SdramTiming
from bitlane_rtl.capabilities import geometry
from bitlane_rtl.configuration import Configuration
from cppsim.errors import SimulationError
from support.rtl.bursts import (
    BASE,
    BLOCKS,
    PARTIAL,
    beats_but,
    beats_to_write,
    bursts_of,
    ragged,
    stored,
    transfer_bursts,
)
from support.rtl.sdram import CLOCK_HZ, PART, PARTS, SLOW, WITHOUT_MASKS, ChipAtPins, memory
from support.rtl.streams import Sink, Source, Stalls, later, simulate
from support.seeds import seeds, slow


@pytest.mark.parametrize("read_ports", [slow(1), 2])
def test_beats_that_are_late_on_either_side_are_all_there(read_ports: int) -> None:
    """A burst is written once all of its beats are there; a reader that stalls loses no beat."""
    dut = memory(64, read_ports)
    chip = SdramChip(PART, CLOCK_HZ)
    asked = [{"address": 128 * block, "length": 15} for block in range(4)]
    data = [n * 0x0004_0003_0002_0001 for n in range(64)]
    beats = [{"data": n, "strobe": 255, "last": k % 16 == 15} for k, n in enumerate(data)]
    stalls = Stalls(seed=1, probability=0.9, longest=40)
    late = Source(dut.write.data, beats, stalls), Sink(dut.a.data, 64, stalls)
    responses = Sink(dut.write.response, 4)
    simulate(
        dut,
        Source(dut.write.request, asked),
        responses,
        *late,
        later(Source(dut.a.request, asked), lambda: len(responses.bits) == 4),
        background=[ChipAtPins(dut.pins, chip)],
        deadline=40_000,
    )
    words = chip.words[:, 0, :64].reshape(-1, 4)
    assert words.tolist() == [[n, 2 * n, 3 * n, 4 * n] for n in range(64)]
    assert [beat.data for beat in late[1].payloads] == data


# --- a chip without masks -------------------------------------------------------------------------


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("seed", seeds(2, 12))
def test_bytes_beside_those_that_are_written_stay(width: int, stalls: Stalls, seed: int) -> None:
    rng = random.Random(seed)
    dut = memory(width, part="without masks")
    chip = SdramChip(WITHOUT_MASKS, CLOCK_HZ)
    asked, beats = ragged(rng, width, 30)
    expected = stored(asked, beats, width)
    benches = bursts_of(dut, write=asked, beats=beats, stalls=stalls)
    at_pins = ChipAtPins(dut.pins, chip)
    simulate(dut, *benches.values(), background=[at_pins])
    # Each block lies in another bank.
    words = chip.words[:BLOCKS, 0, : 16 * width // 32].astype("<u4")
    assert list(words.tobytes()) == expected, (width, stalls, seed)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("partial", PARTIAL)
def test_a_burst_is_read_from_its_first_partial_beat_to_its_last(width: int, partial: str) -> None:
    lacking, _, reads = PARTIAL[partial]
    dut = memory(width, part="without masks")
    chip = SdramChip(WITHOUT_MASKS, CLOCK_HZ)
    asked, beats = [{"address": BASE, "length": 15}], beats_but(lacking, width)
    at_pins = ChipAtPins(dut.pins, chip)
    simulate(dut, *bursts_of(dut, write=asked, beats=beats).values(), background=[at_pins])
    given = [command for _, command in at_pins.given]
    assert given.count(ChipCommand.READ) == reads
    assert given.count(ChipCommand.WRITE) == 16


# --- the geometry of a chip's memory --------------------------------------------------------------


def test_geometry_reports_the_rows_of_the_chip() -> None:
    assert AS4C16M16SA_7.rows == Rows(size_log2=12, banks_log2=2, word_bytes_log2=1)
    word = geometry(Configuration(rows=AS4C16M16SA_7.rows))
    fields = ("ROWS_LOG2", "BANKS_LOG2", "WORD_BYTES_LOG2")
    assert [register("GEOMETRY")[name].extract(word) for name in fields] == [12, 2, 1]


@pytest.mark.parametrize("width", [8, 16, 32])
def test_rows_of_one_number_and_words_have_all_bytes_of_the_chip(width: int) -> None:
    part = replace(AS4C16M16SA_7, width=width)
    assert 8 << part.rows.word_bytes_log2 == width
    assert part.size == 1 << part.rows.size_log2 + part.row_bits


# --- timing ---------------------------------------------------------------------------------------


ROW = 1 << 12
"""Bytes from one row to the next in the same bank."""


def test_cycles_are_what_the_data_sheet_and_the_clock_give() -> None:
    timing = SdramTiming.of(AS4C16M16SA_7, 100_000_000)
    assert timing == SdramTiming(
        cas=2,
        activate_to_access=3,
        precharge=3,
        active=5,
        refresh_cycle=7,
        activate_to_activate=2,
        write_recovery=2,
        mode_cycle=2,
        refresh_interval=780,
        pause=20_000,
        first_refreshes=8,
    )
    faster = SdramTiming.of(AS4C16M16SA_7, 140_000_000)
    assert (faster.cas, faster.activate_to_access, faster.refresh_cycle) == (3, 3, 9)


def test_8192_intervals_leave_each_refresh_late_by_a_cycle_of_their_own() -> None:
    for clock_hz in (50_000_000, 62_500_000, 100_000_000, 133_000_000):
        interval = SdramTiming.of(AS4C16M16SA_7, clock_hz).refresh_interval
        assert 8192 * (interval + 1) / clock_hz <= 64e-3 < 8192 * (interval + 2) / clock_hz


def traffic(part: SdramPart, dut: Any) -> str:
    """Run accesses that write, close, open and read rows; return the chip's complaint, if any."""
    chip = SdramChip(part, CLOCK_HZ)
    rng = random.Random(1)
    places = [ROW * rng.randrange(3) + 64 * rng.randrange(4) for _ in range(120)]
    ask: Any = [{"address": place, "length": rng.choice([0, 0, 3, 15])} for place in places]
    beats = [{**beat, "strobe": 15} for beat in beats_to_write(ask, rng)]
    at_pins = ChipAtPins(dut.pins, chip)
    try:
        transfer_bursts(dut, a=ask, b=ask[::-1], write=ask, beats=beats, background=[at_pins])
    except AssertionError as error:
        return str(error)
    assert chip.counts.refreshes > part.first_refreshes + 1
    return ""


@pytest.mark.parametrize("part", PARTS)
def test_the_right_timing_breaks_no_rule(part: str) -> None:
    assert traffic(PARTS[part], memory(32, part=part)) == ""


@pytest.mark.parametrize(
    ("part", "field", "fewer", "rule"),
    [
        (PART, "activate_to_access", 1, "tRCD"),
        (PART, "precharge", 1, "tRP"),
        (SLOW, "active", 1, "tRAS"),
        (PART, "refresh_cycle", 1, "tRFC"),
        (PART, "write_recovery", 1, "tWR"),
        # The first burst waits 4 cycles anyway, and for a refresh that is due by then.
        (SLOW, "mode_cycle", 5, "tMRD"),
        (PART, "first_refreshes", 2, "start"),
        # The pins lag the controller's state by a cycle.
        (PART, "pause", 2, "pause"),
    ],
)
def test_a_cycle_less_breaks_the_rule(part: SdramPart, field: str, fewer: int, rule: str) -> None:
    timing = SdramTiming.of(part, CLOCK_HZ)
    hasty = replace(timing, **{field: getattr(timing, field) - fewer})
    assert traffic(part, SdramMemory(25, 32, part, hasty)).partition(":")[0] == rule


SHORT = replace(PART, row_bits=11, retention=2_048_000)
"""A part with a retention of 2 ms, which needs a refresh every microsecond."""


@pytest.mark.parametrize("late", [0, 2])
def test_rows_keep_their_data_if_refreshes_come_in_time(late: int) -> None:
    timing = SdramTiming.of(SHORT, CLOCK_HZ)
    timing = replace(timing, refresh_interval=timing.refresh_interval + late)
    dut = SdramMemory(25, 32, SHORT, timing, read_ports=1)
    model = SdramModel(CircuitModel(SplitPins(dut, "pins")), SHORT, CLOCK_HZ, "pins")
    assert model.run_until("started", 1000)
    # A burst of one beat, of which byte 5 is written.
    for name, payload in (("request", 4), ("data", 0xA500 | 1 << 33 | 1 << 36)):
        model.set(f"write__{name}__payload", payload)
        model.set(f"write__{name}__valid", 1)
        assert model.run_until(f"write__{name}__ready", 1)
        model.set(f"write__{name}__valid", 0)
    cycles = round(3 * SHORT.retention * CLOCK_HZ / 1e9)
    if late:
        with pytest.raises(SimulationError, match=r"tREF: .* bank 0, row 0 was restored 20"):
            model.run_until("a__data__valid", cycles)
    else:
        model.run_until("a__data__valid", cycles)
        assert model.chip.counts.refreshes > 6000
        assert model.chip.words[0, 0, :4].tolist() == [0, 0, 0xA500, 0]
    model.close()


# --- cycles of accesses ---------------------------------------------------------------------------


TIMING = SdramTiming.of(PART, CLOCK_HZ)
WIDTH = 64
WORDS = WIDTH // PART.width
BLOCK = 16 * WIDTH // 8
NEXT = BLOCK * 4 * (512 // (16 * WORDS))
"""Bytes from one row to the next in the same bank."""
READY = 200
"""Cycle by which the chip has started; no refresh follows within 500 more cycles."""

_A, _P, _R, _W = ChipCommand.ACTIVATE, ChipCommand.PRECHARGE, ChipCommand.READ, ChipCommand.WRITE


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
    all_late = [later(bench, late.get(name, READY)) for name, bench in benches.items()]
    simulate(dut, *all_late, background=[at_pins])
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
        (NEXT, [_P, _A, _R], TIMING.activate_to_access + TIMING.precharge),
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
    assert benches["response"].cycles == [last], "with the command's pins, two cycles after it"


@pytest.mark.parametrize("second", [BLOCK, 4 * BLOCK, NEXT + BLOCK], ids=["bank", "row", "both"])
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
    simulate(dut, *(later(each, READY) for each in benches.values()), background=[at_pins])
    reads = [cycle for cycle, what in at_pins.given if what is _R]
    assert len(reads) == 32
    assert reads[-1] - reads[0] == 32, "the second bank's row takes one cycle of the first burst"


def test_streams_that_began_in_one_bank_go_on_a_block_apart() -> None:
    _, given = run(
        a=bursts(*range(0, 6 * BLOCK, BLOCK)),
        b=bursts(*range(NEXT, NEXT + 6 * BLOCK, BLOCK)),
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
        b=bursts(*range(NEXT + first, NEXT + first + 4 * BLOCK, BLOCK)),
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
    assert lost == {(_R, _W): TIMING.cas + 2, (_W, _R): 0}, "a write waits for a read's last word"
