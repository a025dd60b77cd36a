"""Validation catches most flips of random bits in used LUTs of a bitstream.

Only visible flips count: many rows of LUTs are never looked up, whatever the line carries. A flip
that passes validation is visible if the board ever sends another level because of it, in any cycle
of a long run of random traffic.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from bitlane_boards import boards
from bitlane_boards.board import Board
from bitlane_boards.pins import GateModel, PinModel, PinSimulation
from bitlane_boards.readback import Bitstream, bitstream_model, board_pins, extract
from bitlane_rtl.abi import (
    COMPLETION_OFFSET,
    CONTROL_BASE,
    FRAME_DATA_BYTES,
    RECEIVE_BYTES,
    register,
)
from cppsim.errors import SimulationError
from flips.copies import Flip, flipped, random_flips
from flips.exchanges import ExchangeWriter
from support.boards.board_builds import built, write
from support.boards.session import validated
from support.record import random_record
from support.rotation import drawn
from support.rtl.records import pack
from support.sim.flip_copies import COPIES, FlippedCopies
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS, pytest.mark.judges("bitlane_sim.fields")]

DEEP = pytest.mark.deep

NAME, PACKAGE = "hx8k", "ct256"
_REST = 1000
"""Idle cycles of both lines after which an exchange is complete."""

_MOST = 300_000
"""Maximum length of an exchange, in cycles."""


class RandomTraffic(ExchangeWriter):
    """A generator of random exchanges of all kinds with ``model``, a model of ``board``.

    The answers are not checked: the traffic shows the parts of a circuit that can ever matter.
    """

    def __init__(self, model: PinModel, board: Board, seed: int) -> None:
        super().__init__(board.configuration)
        self._memory = board.configuration.memory_bytes
        self._random.seed(seed)
        self._bit = board.clock_hz / board.baud
        self._simulation = PinSimulation(model, self._bit)
        self._simulation.run(round(100e-6 * board.clock_hz))
        self._send(self._requests.hello())

    def run(self, exchanges: int) -> None:
        """Send ``exchanges`` exchanges, each until the lines are idle again."""
        kinds: dict[Callable[[], None], int] = {
            self._commands: 30,
            self._records: 25,
            self._accesses: 15,
            self._crowd: 4,
            self._damages: 10,
            self._line: 3,
        }
        for exchange in self._random.choices(list(kinds), list(kinds.values()), k=exchanges):
            exchange()

    # --- kinds of exchanges -----------------------------------------------------------------------

    def _commands(self) -> None:
        """Send valid commands; TIMEOUT is now and then so short that it expires."""
        choose = self._random
        patience = choose.choice([1, 2, 3, 8]) if choose.random() < 0.1 else 1 << 20
        size = choose.randrange(1, FRAME_DATA_BYTES)
        at = choose.randrange(self._memory - size)
        self._send(
            self._requests.register("TIMEOUT", patience)
            + self._requests.write(at, self._content(size))
        )
        records = [pack(self._task()) for _ in range(choose.randint(1, 4))]
        meanwhile = self._access() if choose.random() < 0.5 else b""
        self._send(self._submit(records) + meanwhile)
        self._look(records)

    def _records(self) -> None:
        """Send records of which half are refused, and the others have random addresses."""
        count = self._random.choice([1, 2, 4, 8])
        records = [random_record(self._random, self._configuration) for _ in range(count)]
        self._send(self._requests.register("INTERRUPT", self._random.randrange(4)))
        for first in range(0, count, 4):
            self._send(self._submit(records[first : first + 4]))
        self._look(records)

    def _accesses(self) -> None:
        """Read and write memory and control window, and addresses beside them."""
        self._send(b"".join(self._access() for _ in range(self._random.randint(1, 5))))
        if self._random.random() < 0.3:
            self._send(self._clear())

    def _crowd(self) -> None:
        """Send as many requests at once as the board can buffer."""
        line = b""
        while True:
            size = self._random.choice([0, 1, 4, 100, self._random.randrange(FRAME_DATA_BYTES)])
            frame = self._read_or_write(self._random.randrange(self._memory - size), size)
            if len(line) + len(frame) > RECEIVE_BYTES:
                return self._send(line)
            line += frame

    def _damages(self) -> None:
        """Send frames that are damaged, out of turn or of an unknown kind, and noise."""
        self._send(b"".join(self._damage() for _ in range(self._random.randint(1, 6))))
        self._send(self._requests.hello())

    def _line(self) -> None:
        """Send glitches, a broken line, and bits that are longer or shorter than the board's."""
        simulation = self._simulation
        for _ in range(3):
            simulation.set("rx", 0)
            simulation.run(self._random.choice([1, 5, 8, 9, 16, 150, 2000]))
            simulation.set("rx", 1)
            simulation.run(self._random.randrange(1, 400))
        simulation.divider = self._bit * self._random.uniform(0.95, 1.05)
        self._send(self._requests.hello())
        self._accesses()
        simulation.divider = self._bit
        self._send(self._requests.hello())

    # --- parts of exchanges -----------------------------------------------------------------------

    def _access(self) -> bytes:
        """Return an access; unlike in `ExchangeWriter`, many are long or too long."""
        choose = self._random
        if choose.random() < 0.5:
            return super()._access()
        if choose.random() < 0.1:
            return self._requests.read(CONTROL_BASE + 4 * choose.randrange(24), 128)
        size = choose.randrange(FRAME_DATA_BYTES + 3)
        inside = self._base + choose.randrange(self._memory - size)
        beside = self._end - size + choose.randrange(3)
        return self._read_or_write(
            choose.choice([inside, inside, beside, choose.getrandbits(32)]), size
        )

    def _read_or_write(self, at: int, size: int) -> bytes:
        if self._random.random() < 0.5:
            return self._requests.write(at, self._content(size))
        return self._requests.read(at, size)

    def _look(self, records: Sequence[Sequence[int]]) -> None:
        """Read the commands' status, completions and outputs; write CLEAR."""
        line = self._requests.read(CONTROL_BASE + register("STATUS").offset, 20)
        line += self._requests.read(CONTROL_BASE + COMPLETION_OFFSET, 4 * self._configuration.slots)
        for words in records:
            line += self._requests.read(min(words[4], self._base + self._memory - 200), 200)
        self._send(line)
        self._send(self._clear())

    def _clear(self) -> bytes:
        return super()._clear() + self._requests.register("INTERRUPT", 3)

    def _send(self, line: bytes) -> None:
        self._simulation.send(line)
        self._simulation.settle(_REST, _MOST)
        self._simulation.receive()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("count", "exchanges", "least"), [(16, 250, 0.6), pytest.param(COPIES, 1000, 0.8, marks=DEEP)]
)
def test_flipped_bits_that_can_be_seen_are_caught(
    count: int,
    exchanges: int,
    least: float,
    record_property: Callable[[str, object], None],
    tmp_path: Path,
) -> None:
    """A thousand exchanges are some hundred million cycles. ``least``: caught ones of the seen.

    A run of 478 flips caught nine of ten; a sample of 50 scatters by one in 25.
    """
    board = boards()[NAME]
    pins = {role: pin.package_pin for role, pin in board_pins(board).items()}
    bits = Bitstream.read(built(board) / f"{NAME}.bin")
    found = extract(bits, PACKAGE, pins)
    flips = drawn(random_flips(found.cells, COPIES, seed=1), count)
    tables = [flip.table for flip in flips]

    model = FlippedCopies(found.netlist, NAME, tables)
    assert validated(model, board) == ""
    reasons = {}
    for number in sorted(model.diverged):
        alone = GateModel(tables[number].put_into(found.netlist), str(flips[number]))
        try:
            reasons[number] = validated(alone, board)
        except SimulationError as error:
            # The flip closes a loop of LUTs, which oscillates.
            reasons[number] = str(error)
    caught = {number for number, reason in reasons.items() if reason}

    model = FlippedCopies(found.netlist, NAME, tables)
    RandomTraffic(model, board, seed=1).run(exchanges)
    seen = caught | reasons.keys() | model.diverged
    for number, flip in enumerate(flips):
        missed = "seen, but not caught" if number in seen else "never seen"
        print(f"{flip}: {reasons.get(number) or missed}")
    text = f"{NAME}: {count} LUT bits flipped, {len(seen)} seen, {len(caught)} of them caught"
    record_property("report", text)
    assert len(seen) > count // 4, text
    assert len(caught) >= least * len(seen), text
    sound = [number for number in sorted(caught) if "loop" not in reasons[number]]
    # What comes from a broken board depends on the session's random number.
    assert any(caught_in_a_file(bits, flips[number], board, tmp_path) for number in sound[:3])


def caught_in_a_file(bits: Bitstream, flip: Flip, board: Board, folder: Path) -> bool:
    """Return whether validation also catches ``flip`` where it is read back from a file."""
    pins = {role: pin.package_pin for role, pin in board_pins(board).items()}
    sound, damaged = folder / "sound.bin", folder / "damaged.bin"
    write(bits, sound)
    with flipped(bits, flip):
        write(bits, damaged)
        netlist = extract(bits, PACKAGE, pins).netlist
    pairs = zip(sound.read_bytes(), damaged.read_bytes(), strict=True)
    # One bit of the table, and the checksum at the end.
    assert 1 < sum(one != other for one, other in pairs) < 6
    again = extract(Bitstream.read(damaged), PACKAGE, pins).netlist
    assert np.array_equal(again.luts, netlist.luts)
    assert np.array_equal(again.wires, netlist.wires)
    return bool(validated(bitstream_model(board, damaged), board))
