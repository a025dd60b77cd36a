"""The simulated chip stores and sends the right data. It names each rule of its data sheet that a
command breaks by one edge, and accepts the same command at the first legal edge."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from bitlane_boards.pins import SdramChip
from bitlane_rtl.bus.sdram import ALL_BANKS, AS4C16M16SA_7, ChipCommand, SdramPart
from support.seeds import slow

CLOCK_HZ = 100_000_000
PART = replace(AS4C16M16SA_7, pause=200, retention=2e6)
ALL = 1 << ALL_BANKS
MODE = 0x22
"""Mode register: bursts of 4 words, CAS latency 2."""
BURST = 4


class Bus:
    """A driver that sends commands to a chip, edge by edge."""

    def __init__(self, part: SdramPart = PART, clock_hz: float = CLOCK_HZ) -> None:
        self.chip = SdramChip(part, clock_hz)
        self.period = 1e9 / clock_hz
        self.seen: list[int] = []
        """Level of the data lines at each edge."""

    def give(
        self,
        command: ChipCommand,
        bank: int = 0,
        address: int = 0,
        *,
        mask: int = 0,
        o: int | None = None,
    ) -> None:
        self.seen.append(self.chip.level)
        self.chip.edge(command, bank, address, mask, o or 0, int(o is not None))

    def rest(self, edges: int) -> None:
        for _ in range(edges):
            self.give(ChipCommand.NONE)

    def after(self, nanoseconds: float) -> None:
        """Send NONE until ``nanoseconds`` after the last command."""
        self.rest(ceil(nanoseconds / self.period - 1e-6) - 1)

    def start(self, *, refreshes: int = PART.first_refreshes, mode: int = MODE) -> None:
        self.rest(20)
        self.give(ChipCommand.PRECHARGE, address=ALL)
        for _ in range(refreshes):
            self.after(PART.refresh_cycle)
            self.give(ChipCommand.REFRESH)
        self.after(PART.refresh_cycle)
        self.give(ChipCommand.SET_MODE, address=mode)
        self.after(PART.mode_cycle)

    def activate(self, bank: int = 0, row: int = 5) -> None:
        self.give(ChipCommand.ACTIVATE, bank, row)
        self.after(PART.activate_to_access)

    def write(self, bank: int, column: int, words: list[int], mask: int = 0) -> None:
        self.give(ChipCommand.WRITE, bank, column, mask=mask, o=words[0])
        for word in words[1:]:
            self.give(ChipCommand.NONE, mask=mask, o=word)


def started() -> Bus:
    bus = Bus()
    bus.start()
    return bus


def test_words_are_read_as_they_were_written() -> None:
    bus = started()
    bus.activate(2, 77)
    bus.write(2, 8, [1, 2, 3, 4])
    bus.write(2, 9, [5, 6, 7, 8])  # wraps in its block of four
    bus.give(ChipCommand.READ, 2, 10)
    first = len(bus.seen) - 1
    bus.rest(8)
    assert bus.seen[first + 2 : first + 6] == [6, 7, 8, 5]
    assert bus.chip.words[2, 77, 8:12].tolist() == [8, 5, 6, 7]
    assert bus.chip.trouble == ""
    assert bus.chip.counts.words_read == 4
    assert bus.chip.counts.words_written == 8


def test_a_mask_keeps_bytes_from_being_written_and_read() -> None:
    bus = started()
    bus.activate()
    bus.write(0, 0, [0x1111] * 4)
    bus.write(0, 0, [0x2222] * 4, mask=1)
    assert bus.chip.words[0, 5, :4].tolist() == [0x2211] * 4
    bus.give(ChipCommand.READ, 0, 0)
    first = len(bus.seen) - 1
    bus.give(ChipCommand.NONE, mask=2)
    bus.rest(6)
    assert bus.seen[first + 2] == 0x2211
    assert bus.seen[first + 3] & 0xFF == 0x11
    assert bus.seen[first + 3] >> 8 != 0x22, "masked two edges before"
    assert bus.seen[first + 4 : first + 6] == [0x2211] * 2


def test_a_row_that_is_not_refreshed_in_time_loses_its_data() -> None:
    bus = started()
    bus.activate(1, 4000)
    bus.write(1, 0, [7, 7, 7, 7])
    bus.after(PART.write_recovery + bus.period)
    bus.give(ChipCommand.PRECHARGE, 1)
    bus.rest(ceil(PART.retention / bus.period) + 10)
    bus.activate(1, 4000)
    assert bus.chip.trouble.startswith("tREF: ")
    assert bus.chip.counts.lost_rows == 1
    assert bus.chip.words[1, 4000, :4].tolist() == [0xFFF8] * 4


@pytest.mark.parametrize("retention", [2e5, slow(PART.retention)])
def test_refreshes_in_time_keep_all_rows(retention: float) -> None:
    part = replace(PART, row_bits=3, retention=retention)
    bus = Bus(part)
    bus.start()
    for row in range(8):
        bus.activate(0, row)
        bus.write(0, 0, [row] * 4)
        bus.after(PART.write_recovery + bus.period)
        bus.give(ChipCommand.PRECHARGE)
        bus.after(PART.precharge)
    for _ in range(40):
        bus.after(part.retention / 8 - 100)
        bus.give(ChipCommand.REFRESH)
    assert bus.chip.trouble == ""
    assert bus.chip.words[0, :, 0].tolist() == list(range(8))


def precharge(bus: Bus) -> None:
    """Close bank 0 right after it was opened."""
    bus.after(PART.active - PART.activate_to_access)
    bus.give(ChipCommand.PRECHARGE)


Steps = Callable[[Bus], None]


def commands(*steps: Steps) -> Steps:
    def run(bus: Bus) -> None:
        for step in steps:
            step(bus)

    return run


def give(command: ChipCommand, bank: int = 0, address: int = 0, o: int | None = None) -> Steps:
    return lambda bus: bus.give(command, bank, address, o=o)


def rest(edges: int) -> Steps:
    return lambda bus: bus.rest(edges)


ACTIVATE = give(ChipCommand.ACTIVATE, 0, 5)
OPEN = commands(ACTIVATE, lambda bus: bus.after(PART.activate_to_access))
DRIVE = give(ChipCommand.NONE, o=1)
WRITTEN = commands(OPEN, rest(9), lambda bus: bus.write(0, 0, [1, 2, 3, 4]))

RULES: dict[str, tuple[Steps, float, Steps]] = {
    "tRCD": (ACTIVATE, PART.activate_to_access, give(ChipCommand.READ)),
    "tRAS": (ACTIVATE, PART.active, give(ChipCommand.PRECHARGE)),
    "tRP": (commands(OPEN, precharge), PART.precharge, ACTIVATE),
    "tRRD": (ACTIVATE, PART.activate_to_activate, give(ChipCommand.ACTIVATE, 1, 5)),
    "tRFC": (give(ChipCommand.REFRESH), PART.refresh_cycle, ACTIVATE),
    "tMRD": (give(ChipCommand.SET_MODE, 0, MODE), PART.mode_cycle, ACTIVATE),
    "tWR": (WRITTEN, PART.write_recovery, give(ChipCommand.PRECHARGE)),
    "burst": (commands(OPEN, give(ChipCommand.READ)), BURST * 10, give(ChipCommand.READ, 0, 8)),
}
"""Each rule's commands before, minimum nanoseconds, and the command that needs them."""


@pytest.mark.parametrize("rule", RULES)
def test_a_command_that_comes_an_edge_early_breaks_the_rule(rule: str) -> None:
    before, least, command = RULES[rule]
    for early in (0, 1):
        bus = started()
        before(bus)
        bus.rest(ceil(least / bus.period - 1e-6) - 1 - early)
        assert bus.chip.trouble == ""
        command(bus)
        assert bus.chip.trouble.partition(":")[0] == (rule if early else ""), bus.chip.trouble


def test_a_row_cycle_that_is_longer_than_its_halves() -> None:
    for row_cycle in (PART.active + PART.precharge, 100):
        bus = Bus(replace(PART, row_cycle=row_cycle))
        bus.start()
        OPEN(bus)
        precharge(bus)
        bus.after(PART.precharge)
        ACTIVATE(bus)
        assert bus.chip.trouble.startswith("tRC: ") == (row_cycle == 100)


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        (commands(OPEN, ACTIVATE), "open bank"),
        (give(ChipCommand.READ), "closed bank"),
        (give(ChipCommand.WRITE, 3), "closed bank"),
        (commands(OPEN, give(ChipCommand.REFRESH)), "open bank"),
        (commands(OPEN, give(ChipCommand.SET_MODE, 0, MODE)), "open bank"),
        (commands(OPEN, give(ChipCommand.READ, 0, ALL)), "auto precharge"),
        (commands(OPEN, give(ChipCommand.STOP)), "burst"),
        (commands(OPEN, rest(12), give(ChipCommand.READ), give(ChipCommand.PRECHARGE)), "burst"),
        (give(ChipCommand.SET_MODE, 0, 0x12), "CAS latency"),
        (give(ChipCommand.SET_MODE, 0, 0x52), "CAS latency"),
        (give(ChipCommand.SET_MODE, 0, 0x27), "mode"),
        (commands(OPEN, give(ChipCommand.WRITE), rest(1)), "data lines"),
        (commands(OPEN, give(ChipCommand.READ), rest(1), DRIVE), "data lines"),
        (commands(OPEN, give(ChipCommand.READ), rest(5), DRIVE), "data lines"),
        (commands(OPEN, rest(12_001)), ""),
        (commands(OPEN, rest(12_001), give(ChipCommand.PRECHARGE)), "tRAS"),
    ],
)
def test_commands_in_the_wrong_state(steps: Steps, rule: str) -> None:
    bus = started()
    steps(bus)
    assert bus.chip.trouble.partition(":")[0] == rule, bus.chip.trouble


def test_the_start() -> None:
    bus = Bus()
    bus.rest(19)
    bus.give(ChipCommand.PRECHARGE, address=ALL)
    assert bus.chip.trouble.startswith("pause: ")
    bus = Bus()
    bus.rest(20)
    bus.give(ChipCommand.REFRESH)
    assert bus.chip.trouble == "start: at 200.0 ns: REFRESH before PRECHARGE of all banks"
    bus = Bus()
    bus.start(refreshes=PART.first_refreshes - 1)
    bus.activate()
    assert bus.chip.trouble.endswith("ACTIVATE before SET MODE and 8 REFRESHes")


def test_a_cas_latency_needs_a_slow_clock() -> None:
    for mode, trouble in ((0x32, ""), (MODE, "CAS latency: ")):
        bus = Bus(clock_hz=125e6)
        bus.rest(20)
        bus.start(mode=mode)
        assert bus.chip.trouble.startswith(trouble), bus.chip.trouble
        assert bool(bus.chip.trouble) == bool(trouble)


def test_words_are_shaped_by_bank_row_and_column() -> None:
    assert Bus().chip.words.shape == (4, 8192, 512)
    assert not np.any(Bus().chip.words[0])
