"""Every board is sound data, and small enough to be read; its PLL meets the data sheet's limits.

The last LED of a board blinks while its PHY works at another speed than a gigabit.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module

import bitlane_boards
import cppsim
from bitlane_boards import boards
from bitlane_boards.board import CHOICES, Board, MemoryKind
from bitlane_boards.flow import (
    ECP5,
    FLOWS,
    GW1N_9C,
    ICE40,
    Pll,
    PllError,
    Top,
    expect_clock,
    load_platform,
    settings,
)
from bitlane_boards.full_circuit import full_on_block_ram
from bitlane_rtl.abi import Mode, Op

pytestmark = pytest.mark.any_face

FOLDER = Path(bitlane_boards.__file__).parent


def names_of(chosen: Callable[[Board], object]) -> list[str]:
    """Return the names of the boards that are ``chosen``; there are some."""
    names = [name for name, board in sorted(boards().items()) if chosen(board)]
    assert names
    return names


@pytest.fixture(params=sorted(boards()))
def board(request: pytest.FixtureRequest) -> Board:
    return boards()[request.param]


def test_link_rate_and_memory_are_what_the_clock_and_the_words_give(board: Board) -> None:
    assert boards()[board.name] is board
    assert board.family in FLOWS
    if board.ethernet is None:
        assert board.divider >= 8
        assert abs(board.clock_hz / board.divider / board.baud - 1) <= 0.015
    assert board.words * board.configuration.data_width // 8 == board.configuration.memory_bytes


def test_every_board_executes_the_three_operators_of_the_project(board: Board) -> None:
    configuration = board.configuration
    assert {Op.NOT, Op.XOR, Op.COUNT} <= configuration.ops
    assert Mode.DENSE in configuration.modes


def test_a_plls_settings_or_the_oscillator_make_the_clock(board: Board) -> None:
    platform = load_platform(board)
    expect_clock(board, platform)
    with pytest.raises(PllError, match=r"makes .*20000003 Hz"):
        expect_clock(replace(board, clock_hz=20_000_003, baud=100_000), platform)


def test_a_board_of_a_platform_with_sdram_has_a_part_or_none(board: Board) -> None:
    pins = load_platform(board).resources.get(("sdram", 0))
    assert board.sdram is None or pins is not None


@pytest.mark.parametrize("board", names_of(lambda board: board.sdram), indirect=True)
def test_the_memory_chip_fits_the_pins(board: Board) -> None:
    """A chip that is simulated with masks, banks or bits that no pin has would hide lost bytes."""
    part, pins = board.sdram, load_platform(board).resources["sdram", 0]
    assert part is not None
    widths = {each.name: len(each.ios[0].names) for each in pins.ios}
    assert widths["dq"] == part.width
    assert widths.get("dqm", 0) == (part.width // 8 if part.masks else 0)
    assert widths["ba"] >= part.bank_bits
    assert widths["a"] >= max(part.row_bits, 11)  # A10 precharges all banks
    assert board.configuration.memory_bytes <= part.size


@pytest.mark.parametrize(
    "board", names_of(lambda board: board.memory is MemoryKind.BANKS), indirect=True
)
def test_no_block_ram_of_a_bank_holds_two_bytes_of_a_word(board: Board) -> None:
    """Commands without FENCE may read and write different bytes of a word in one cycle."""
    assert board.words // board.banks >= 2048


@pytest.mark.parametrize("board", names_of(lambda board: board.ethernet), indirect=True)
def test_the_pins_of_ethernet_are_those_that_the_simulated_chip_has(board: Board) -> None:
    assert board.ethernet is not None
    pins = load_platform(board).resources["eth_rgmii", board.ethernet.number]
    widths = {each.name.replace("ctrl", "ctl"): len(each.ios[0].names) for each in pins.ios}
    wanted = {"tx_clk": 1, "tx_ctl": 1, "tx_data": 4, "rx_clk": 1, "rx_ctl": 1, "rx_data": 4}
    assert wanted.items() <= widths.items()
    (clock,) = (each.clock for each in pins.ios if each.name == "rx_clk")
    assert clock is None or clock.frequency == 125e6


def test_every_choice_has_its_reason(board: Board) -> None:
    assert tuple(board.why) == CHOICES


def test_a_board_is_a_file_of_under_eighty_lines() -> None:
    for module in bitlane_boards._MODULES:
        lines = (FOLDER / f"{module}.py").read_text().count("\n")
        assert lines < 80, f"{module}.py has {lines} lines"


def test_what_the_boards_are_asked_for() -> None:
    known = boards()
    assert {"icebreaker", "hx8k", "ulx3s", "tangnano9k"} < set(known)
    assert known["icebreaker"].memory is MemoryKind.SPRAM
    assert known["ulx3s"].configuration.memory_bytes >= 1 << 18
    assert known["ulx3s"].memory is MemoryKind.BANKS


def test_a_rate_that_the_clock_cannot_make_is_refused() -> None:
    with pytest.raises(ValueError, match="baud: 3000000 from 25500000 Hz is off by"):
        replace(boards()["ulx3s"], clock_hz=25_500_000)
    with pytest.raises(ValueError, match=r"baud: 3000000 from 12000000 Hz is 4\.0 clocks a bit"):
        replace(boards()["ulx3s"], clock_hz=12_000_000)


# --- PLL settings ---------------------------------------------------------------------------------


MHZ = 1_000_000


@pytest.mark.parametrize(
    ("pll", "in_mhz", "slowest", "fastest"),
    [(ICE40, 12.5, 16.40625, 275), (ECP5, 20, 10, 400), (GW1N_9C, 12.5, 3.125, 600)],
    ids=["iCE40", "ECP5", "GW1N-9C"],
)
def test_outputs_reach_what_the_dividers_allow_and_end_where_the_range_does(
    pll: Pll, in_mhz: float, slowest: float, fastest: float
) -> None:
    in_hz = int(in_mhz * MHZ)
    for mhz in (slowest, fastest):
        out_hz = int(mhz * MHZ)
        reference, feedback, output = settings(pll, in_hz, out_hz)
        made = in_hz * feedback / reference
        assert (made if pll.divided_feedback else made / output) == out_hz
        assert pll.vco[0] * MHZ <= out_hz * output <= pll.vco[1] * MHZ
    low, high = pll.makes
    for hz in (int(low * MHZ) - 1, int(high * MHZ) + 1):
        with pytest.raises(PllError) as caught:
            settings(pll, in_hz, hz)
        assert str(caught.value) == f"clock_hz: {hz} Hz: the PLL makes {low} to {high} MHz"


@pytest.mark.parametrize(("in_mhz", "out_mhz"), [(12, 300), (12, 9), (100, 300), (48, 9)])
def test_an_ice40_makes_neither_300_nor_9_mhz(in_mhz: int, out_mhz: int) -> None:
    with pytest.raises(PllError, match=f"{out_mhz * MHZ} Hz: the PLL makes 16 to 275 MHz"):
        settings(ICE40, in_mhz * MHZ, out_mhz * MHZ)


@pytest.mark.parametrize(
    ("pll", "in_mhz"),
    [(ICE40, 8), (ICE40, 150), (ECP5, 5), (ECP5, 500), (GW1N_9C, 2), (GW1N_9C, 450)],
)
def test_inputs_outside_of_their_range_are_refused(pll: Pll, in_mhz: int) -> None:
    low, high = pll.takes
    with pytest.raises(PllError) as caught:
        settings(pll, in_mhz * MHZ, 50 * MHZ)
    assert str(caught.value) == f"clock_hz: {in_mhz * MHZ} Hz: the PLL takes {low} to {high} MHz"


@pytest.mark.parametrize("out_hz", [48 * MHZ + 1, 37_875_000])
def test_what_no_setting_makes_exactly_is_refused(out_hz: int) -> None:
    """37.875 MHz would need a phase detector frequency of 6 MHz, which is below the limit."""
    with pytest.raises(PllError, match=f"no setting of the PLL makes {out_hz} Hz of 12000000 Hz"):
        settings(ICE40, 12 * MHZ, out_hz)


def test_two_outputs_divide_one_oscillator() -> None:
    reference, feedback, output = settings(ECP5, 25 * MHZ, 125 * MHZ, 93_750_000)
    vco = 25 * MHZ // reference * feedback * output
    assert vco == 750 * MHZ
    assert vco % 125 == vco % 93_750_000 == 0
    message = "makes 125000000 Hz and 87500000 Hz of 25000000 Hz"
    with pytest.raises(PllError, match=message):  # 875 MHz would be too fast
        settings(ECP5, 25 * MHZ, 125 * MHZ, 87_500_000)


# --- the light of the line ----------------------------------------------------------------------


CLOCK_HZ = 100
"""The light changes after 64 clocks."""

SLOW_BOARD = replace(
    boards()["ecpix5"],
    clock_hz=CLOCK_HZ,
    memory=MemoryKind.BLOCK,
    configuration=full_on_block_ram(16),
)


@pytest.mark.slow
@pytest.mark.parametrize(("fault_led", "light"), [("r", "fault"), (None, "busy")])
def test_a_light_of_the_board_blinks(fault_led: str | None, light: str) -> None:
    top: Any = Top(replace(SLOW_BOARD, fault_led=fault_led))
    m = Module()
    for name in ("rx", "tx", "sync"):
        m.domains += ClockDomain(name)
    m.submodules.top = top
    simulator = cppsim.Simulator(m)
    for number, name in enumerate(("rx", "tx", "sync")):
        simulator.add_clock(8e-9, phase=(1 + number) * 1e-9, domain=name)

    async def testbench(ctx: Any) -> None:
        for status, changes in ((0b1101, 0), (0b1011, 4), (0b1101, 0)):
            ctx.set(top.received.data, status)
            await ctx.tick("sync").repeat(8)
            levels = {"busy": [], "fault": []}
            for _ in range(256):
                await ctx.tick("sync")
                for name, seen in levels.items():
                    seen.append(ctx.get(getattr(top, name)))
            found = {name: sum(a != b for a, b in pairwise(seen)) for name, seen in levels.items()}
            assert found == {"busy": 0, "fault": 0} | {light: changes}

    simulator.add_testbench(testbench)
    simulator.run()
