"""Fifty random bits of used LUTs of a bitstream, flipped one by one: how many a validation catches.

What is not caught does not matter to the bits that a validation looks at: most of it are rows that
the inputs never make.
"""

from collections.abc import Callable

import pytest

from bitlane_boards import boards
from bitlane_boards.readback.asc import Bits
from bitlane_boards.readback.ice40 import extract
from bitlane_boards.readback.pins import board_pins
from bitlane_sim.evaluator import SimulationError
from bitlane_sim.pins import GateModel
from support.boards.board_builds import built
from support.boards.flips import flipped, random_flips
from support.boards.session import validated

NAME, PACKAGE = "hx8k", "ct256"
COUNT = 50


@pytest.mark.timeout(3000)
def test_flipped_bits_are_caught(record_property: Callable[[str, object], None]) -> None:
    board = boards()[NAME]
    bits = Bits.read(built(board) / f"{NAME}.bin")
    pins = {role: pin.place for role, pin in board_pins(board).items()}
    cells = extract(bits, PACKAGE, pins).cells
    reasons = {}
    for flip in random_flips(cells, COUNT, seed=1):
        with flipped(bits, flip):
            try:
                model = GateModel(extract(bits, PACKAGE, pins).netlist, str(flip))
                reasons[str(flip)] = validated(model, board, memory_bytes=1024)
            except SimulationError as error:
                # LUTs in a loop: an oscillator or a latch, where there was neither.
                reasons[str(flip)] = str(error)
    caught = [flip for flip, reason in reasons.items() if reason]
    record_property("report", f"{NAME}: {len(caught)} of {COUNT} flipped LUT bits caught")
    for flip, reason in reasons.items():
        print(f"{flip}: {reason or 'not caught'}")
    assert len(caught) >= COUNT // 4
