"""Cycle counts follow from the data sheet and the clock. A controller that waits too few cycles
breaks the chip's rule of that name, so the controller really waits for each rule."""

import random
from dataclasses import replace
from typing import Any

import pytest

from bitlane_boards.pins import CircuitModel
from bitlane_boards.pins.sdram import SdramChip, SdramModel, SplitPins
from bitlane_rtl.bus.sdram.memory import SdramMemory
from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7, SdramPart, SdramTiming
from cppsim.errors import SimulationError
from support.rtl.bursts import beats_to_write, transfer_bursts
from support.rtl.sdram import CLOCK_HZ, PART, PARTS, SLOW, ChipAtPins, memory

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
    with pytest.raises(ValueError, match="150000000 Hz is too fast for AS4C16M16SA-7"):
        SdramTiming.of(AS4C16M16SA_7, 150_000_000)


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


def test_a_part_that_is_no_match_for_the_beats_is_refused() -> None:
    for width, part, message in (
        (8, PART, "data_width: 8 bits are not 1, 2, 4 or 8 words of 16 bits"),
        (256, PART, "data_width: 256 bits are not"),
        (64, replace(PART, column_bits=5), "a row holds no 16 beats"),
        (64, replace(PART, row_bits=10), "10 address lines; expected 11 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            SdramMemory(25, width, part, SdramTiming.of(part, CLOCK_HZ))
    with pytest.raises(ValueError, match="read_ports: 3 is neither 1 nor 2"):
        SdramMemory(25, 64, PART, SdramTiming.of(PART, CLOCK_HZ), read_ports=3)
