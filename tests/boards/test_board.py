"""Every board is sound data, and small enough to be read."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import bitlane_boards
from bitlane_boards import boards
from bitlane_boards.board import CHOICES, Board, MemoryKind
from bitlane_boards.flow.families import FLOWS
from bitlane_boards.flow.platform import expect_clock, load_platform
from bitlane_boards.flow.pll import PllError
from bitlane_rtl.abi import Mode, Op

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
