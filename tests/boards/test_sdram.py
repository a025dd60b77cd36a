"""A board with SDRAM at its pins: it computes on the chip, at a share of its peak that is exact.

A wrong chip fails, and where it does is said.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bitlane import Device
from bitlane.driver import Driver
from bitlane_boards import boards
from bitlane_boards.board import Board, MemoryKind
from bitlane_boards.flow import Top
from bitlane_boards.pins import CircuitModel, SdramModel, SplitPins
from bitlane_boards.pins.sdram_rows import Transfer, logic, reads
from bitlane_boards.readback import rtl_model
from bitlane_rtl.abi import Op
from bitlane_rtl.sdram_part import AS4C16M16SA_7, EM638325_6H, SdramPart
from cppsim.errors import SimulationError
from support.boards.session import SILENCE, connect, opened, validated
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

THROUGH_COMMANDS = pytest.mark.judges(*AT_THE_PINS.args, "bitlane.command_line")


def faster(name: str, **changes: Any) -> Board:
    """Return the board ``name`` with a line of 8 clocks a bit, which no bridge accepts.

    A session takes at most a quarter of the time. ``changes`` of the circuit save some more.
    """
    board = boards()[name]
    configuration = replace(board.configuration, **changes)
    return replace(board, baud=board.clock_hz // 8, configuration=configuration)


BOARD = faster("ulx3s-sdram", ops=frozenset({Op.XOR}), loops=1)
WITHOUT_MASKS = faster("colorlight-i5-uart")


def part() -> SdramPart:
    assert BOARD.sdram is not None
    return BOARD.sdram


@pytest.mark.parametrize("board", [BOARD, WITHOUT_MASKS], ids=lambda board: board.name)
@THROUGH_COMMANDS
def test_a_job_goes_through_the_chip(board: Board) -> None:
    model = rtl_model(board)
    assert isinstance(model, SdramModel)
    port = opened(model, board)
    a, b = (np.random.default_rng(seed).integers(0, 256, 1000, np.uint8) for seed in range(2))
    link = connect(port, board.name)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        assert (device.bit_xor(a[1:], b[:-1]) == a[1:] ^ b[:-1]).all()
        counts = model.chip.counts
    words = 3000 * 8 // model.chip.part.width
    assert counts.words_read >= words
    assert counts.words_written >= words
    assert counts.faults == counts.lost_rows == 0


@THROUGH_COMMANDS
def test_a_board_without_masks_passes_validation() -> None:
    assert validated(rtl_model(WITHOUT_MASKS), WITHOUT_MASKS, 1024) == ""


@THROUGH_COMMANDS
def test_a_chip_of_half_the_columns_is_named_by_bank_row_and_bits() -> None:
    half = replace(part(), column_bits=8)
    model = SdramModel(CircuitModel(SplitPins(Top(BOARD))), half, BOARD.clock_hz)
    trouble = validated(model, BOARD, 8192)
    # What was written 2 KiB further lies there, too: 256 columns in each of four banks.
    assert re.search(r"memory +FAIL .* address in address, bits 11 from bank 0, row 0 on", trouble)


@THROUGH_COMMANDS
def test_a_chip_of_half_the_banks_stops_the_simulation() -> None:
    half = replace(part(), bank_bits=1)
    model = SdramModel(CircuitModel(SplitPins(Top(BOARD))), half, BOARD.clock_hz)
    with pytest.raises(SimulationError, match=f"{part().name}: open bank: "):
        validated(model, BOARD, 1024)


@THROUGH_COMMANDS
def test_a_chip_on_a_faster_clock_stops_the_simulation() -> None:
    model = SdramModel(CircuitModel(SplitPins(Top(BOARD))), part(), 1.3 * BOARD.clock_hz)
    with pytest.raises(SimulationError, match=f"{part().name}: pause: "):
        validated(model, BOARD, 1024)


@THROUGH_COMMANDS
def test_a_board_has_the_chip_that_its_memory_asks_for() -> None:
    for changes, message in (
        ({"sdram": None}, "sdram: expected with MemoryKind.SDRAM"),
        ({"memory": MemoryKind.BANKS}, "sdram: expected with MemoryKind.SDRAM"),
        ({"sdram": replace(part(), row_bits=12)}, "is more than AS4C16M16SA-7 has"),
        ({"sdram": replace(part(), bank_bits=3)}, "are not those of the memory"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(BOARD, **changes)  # type: ignore[arg-type]


REFRESH = 18
"""Cycles that a refresh costs a stream, including the activation of a row."""


@pytest.mark.parametrize(("size", "refreshes"), [(1 << 14, 11), (1 << 15, 22), (1 << 16, 43)])
def test_a_stream_reads_a_word_a_cycle_but_for_refreshes(size: int, refreshes: int) -> None:
    words = size // 2
    assert reads(64, size, (0,)) == Transfer(words, words + REFRESH * refreshes + 15)


@pytest.mark.parametrize(
    ("width", "part", "share"),
    [(64, AS4C16M16SA_7, 0.94), (64, EM638325_6H, 0.93), (32, EM638325_6H, 0.83)],
    ids=["with masks", "without masks", "a beat a word"],
)
@pytest.mark.parametrize(("op", "streams"), [(Op.XOR, 3), (Op.NOT, 2)], ids=["XOR", "NOT"])
def test_an_operator_transfers_its_words_once_and_has_most_of_the_peak(
    op: Op, streams: int, width: int, part: SdramPart, share: float
) -> None:
    transfer = logic(width, op, 1 << 16, part)
    assert transfer.words == streams * (1 << 19) // part.width
    assert transfer.efficiency > share
