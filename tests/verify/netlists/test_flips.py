"""Validation catches most flips of random bits in used LUTs of a bitstream.

Only visible flips count: many rows of LUTs are never looked up, whatever the line carries. A flip
that passes validation is visible if the board ever sends another level because of it, in any cycle
of a long run of random traffic.
"""

from collections.abc import Callable

import pytest

from bitlane_boards import boards
from bitlane_boards.readback.asc import Bitstream
from bitlane_boards.readback.ice40 import extract
from bitlane_boards.readback.pins import board_pins
from bitlane_sim.evaluator import SimulationError
from bitlane_sim.pins import COPIES, GateModel
from support.boards.board_builds import built
from support.boards.flips import random_flips
from support.boards.session import validated
from support.boards.traffic import RandomTraffic

pytestmark = pytest.mark.slow

NAME, PACKAGE = "hx8k", "ct256"
COUNT = COPIES
PIECES = 1000
"""Pieces of random traffic, some hundred million cycles in all."""


@pytest.mark.timeout(1800)
def test_flipped_bits_that_can_be_seen_are_caught(
    record_property: Callable[[str, object], None],
) -> None:
    board = boards()[NAME]
    pins = {role: pin.place for role, pin in board_pins(board).items()}
    found = extract(Bitstream.read(built(board) / f"{NAME}.bin"), PACKAGE, pins)
    flips = random_flips(found.cells, COUNT, seed=1)
    tables = [flip.table for flip in flips]

    model = GateModel(found.netlist, NAME, flips=tables)
    assert validated(model, board) == ""
    reasons = {}
    for number in sorted(model.apart):
        alone = GateModel(tables[number].put_into(found.netlist), str(flips[number]))
        try:
            reasons[number] = validated(alone, board)
        except SimulationError as error:
            # The flip closes a loop of LUTs, which oscillates.
            reasons[number] = str(error)
    caught = {number for number, reason in reasons.items() if reason}

    model = GateModel(found.netlist, NAME, flips=tables)
    RandomTraffic(model, board, seed=1).run(PIECES)
    seen = caught | reasons.keys() | model.apart
    for number, flip in enumerate(flips):
        missed = "seen, but not caught" if number in seen else "never seen"
        print(f"{flip}: {reasons.get(number) or missed}")
    text = f"{NAME}: {COUNT} LUT bits flipped, {len(seen)} seen, {len(caught)} of them caught"
    record_property("report", text)
    # The last run of 478 flips caught nine of ten; a sample of 50 scatters by one in 25.
    assert len(caught) >= 0.8 * len(seen), text
