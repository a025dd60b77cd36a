"""Predicted cycles on the memories of boards, beside those of the boards' engines on them."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bitlane.driver.commands import encode
from bitlane_boards import boards
from bitlane_boards.board import Board, MemoryKind
from bitlane_boards.pins.sdram_rows import CLOCK_HZ, logic
from bitlane_boards.predicted import predicted_boards
from bitlane_rtl.abi import RECORD_BYTES, Op
from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7, EM638325_6H, SdramPart, SdramTiming
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full
from bitlane_sim.bench.sram import three_streams
from bitlane_sim.campaigns.commands import move
from bitlane_sim.numpy_device.counters import PredictedCounters
from bitlane_sim.numpy_device.cycles import CounterValues
from bitlane_sim.numpy_device.memories import Memory, OneRam, RamBanks, SdramRows
from support.commands import RandomCommands
from support.rtl.records import pack
from support.seeds import seeds
from support.sim.board_engine import SimulatedBoard

FAR = 4
"""Times as far as four of five predictions of jobs, which none may be off."""

_BOARDS = "ulx3s", "ulx3s-sdram", "colorlight-i5", "tangnano9k", "hx8k", "icebreaker"
"""A board for each pair of a circuit and a memory; the Ethernet board's chip has no masks."""


def submit(counters: PredictedCounters, records: Sequence[Sequence[int]]) -> CounterValues:
    """Return the counters of a job whose records have been in the ring for a while."""
    counters.clear()
    counters.wrote(32, ring=True)
    counters.wrote(20, ring=False)
    counters.submitted(
        tuple(np.array(each, "<u4").tobytes().ljust(RECORD_BYTES, b"\0") for each in records)
    )
    return counters.counts()


class Pair:
    """A simulated board, and the prediction of its counters."""

    def __init__(self, board: Board, due: int) -> None:
        memory = predicted_boards()[board.name].memory
        if isinstance(memory, SdramRows):
            memory = replace(memory, due=due)
        self.memory = memory
        self.configuration = replace(board.configuration, counters=True)
        self.board = SimulatedBoard(board, due)
        self._stalls = ("a_stalls", "b_stalls", "y_stalls") if board.configuration.counters else ()
        self.counters = PredictedCounters(self.configuration, memory)

    def expect(self, records: Sequence[Sequence[int]], share: float, by: str) -> bool:
        """Return whether cycles are within a ``share`` of them or 2.

        Expect equal beats, similar stalls, and cycles within `FAR` times that.
        Stalls of a board without counters cannot be read.
        """
        took, found = self.board.execute(records), submit(self.counters, records)
        text = f"{by}\nboard {took}\nmodel {found}"
        beats = [(each.a_beats, each.b_beats, each.y_beats) for each in (took, found)]
        assert beats[0] == beats[1], text
        bound = max(2, share * took.busy)
        assert abs(found.busy - took.busy) <= FAR * bound, text
        for name in self._stalls:
            off = abs(getattr(found, name) - getattr(took, name))
            assert off <= max(10, 0.1 * took.busy), f"{name}: {text}"
        return abs(found.busy - took.busy) <= bound


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 4))
@pytest.mark.parametrize("name", _BOARDS)
def test_commands_and_jobs_take_what_they_do_on_the_board(name: str, seed: int) -> None:
    """Short rows, gathered and scattered elements included, anywhere between two refreshes."""
    chance = random.Random(seed)
    pair = Pair(boards()[name], due=chance.randrange(20, 700))
    circuit = pair.configuration
    base, size = circuit.memory_base, min(8192, circuit.memory_bytes // 4)
    drawn = RandomCommands(
        configuration=circuit,
        size=size,
        a=base,
        b=base + size,
        fences=0,
        long=0.3,
        runs=(1, 3, 8, 33, 100, 300),
        counts=(1, 2, 3, 8),
    )
    for number in range(40):
        record = pack(drawn.draw(chance, base + 2 * size))
        assert pair.expect([record], 0.05, f"{name}, seed {seed}, command {number}")
    share, near = 0.05 if isinstance(pair.memory, OneRam) else 0.02, []
    for number in range(10):
        fenced = replace(drawn, fences=chance.choice([0, 0.5]))
        count = chance.randint(2, circuit.slots)
        records = [pack(fenced.draw(chance, base + 2 * size)) for _ in range(count)]
        near.append(pair.expect(records, share, f"{name}, seed {seed}, job {number}"))
    assert near.count(False) <= 2, f"{name}, seed {seed}: {near}"
    pair.board.close()


def circuit_of(width: int) -> Configuration:
    return replace(full(width), memory_bytes=1 << 20)


def predicted(width: int, op: Op, size: int, memory: Memory) -> CounterValues:
    """Return the counters of ``op`` on ``size`` bytes, operands and output behind each other."""
    command = move(op, size, 0, size if op.reads_b else None, 2 * size)
    return submit(PredictedCounters(circuit_of(width), memory), [encode(command).tolist()])


@pytest.mark.slow
@pytest.mark.parametrize("part", [AS4C16M16SA_7, EM638325_6H], ids=lambda part: part.name)
@pytest.mark.parametrize("op", [Op.XOR, Op.NOT], ids=["XOR", "NOT"])
@pytest.mark.parametrize("size", [1 << 14, 1 << 16, 1 << 18])
def test_streams_on_sdram_take_what_the_circuit_does(part: SdramPart, op: Op, size: int) -> None:
    took = logic(64, op, size, part).cycles
    found = predicted(64, op, size, SdramRows(part=part, clock_hz=CLOCK_HZ)).busy
    assert abs(found / took - 1) <= 0.02, f"{found} predicted, {took} on the circuit"


@pytest.mark.slow
@pytest.mark.parametrize("width", [32, 64])
def test_streams_on_one_port_take_what_the_circuit_does(width: int) -> None:
    took = (1 << 14) // (width // 8) / three_streams(width, "compiled")
    found = predicted(width, Op.XOR, 1 << 14, OneRam()).busy
    assert abs(found / took - 1) <= 0.01, f"{found} predicted, {took:.0f} on the circuit"


@pytest.mark.parametrize("name", boards())
def test_the_memory_of_a_prediction_is_that_of_the_board(name: str) -> None:
    board, memory = boards()[name], predicted_boards()[name].memory
    if board.memory is MemoryKind.SDRAM:
        assert isinstance(memory, SdramRows)
        assert (memory.part, memory.clock_hz) == (board.sdram, board.clock_hz)
        assert memory.shared
    elif board.memory is MemoryKind.BANKS:
        assert memory == RamBanks(banks=board.banks)
    else:
        assert memory == OneRam()


@pytest.mark.parametrize("part", [AS4C16M16SA_7, EM638325_6H], ids=lambda part: part.name)
def test_the_first_beat_of_a_closed_row_has_the_latency_of_the_controller(part: SdramPart) -> None:
    """`SdramMemory`: ``cas + words + 8``, and tRCD because the row is closed."""
    timing = SdramTiming.of(part, CLOCK_HZ)
    words = 64 // part.width
    found = predicted(64, Op.NOT, 8, SdramRows(part=part, clock_hz=CLOCK_HZ))
    latency = timing.cas + words + 8 + timing.activate_to_access
    assert found.a_stalls == latency - 1


def test_a_refresh_delays_what_begins_behind_it() -> None:
    timing = SdramTiming.of(AS4C16M16SA_7, CLOCK_HZ)
    early, late = (
        predicted(64, Op.NOT, 64, SdramRows(part=AS4C16M16SA_7, clock_hz=CLOCK_HZ, due=due)).busy
        for due in (1, 700)
    )
    assert 0 < early - late <= timing.precharge + timing.refresh_cycle + 2


@pytest.mark.parametrize("op", [Op.XOR, Op.NOT], ids=["XOR", "NOT"])
def test_streams_of_one_ram_take_turns(op: Op) -> None:
    ideal, one = predicted(64, op, 1 << 12, Memory()), predicted(64, op, 1 << 12, OneRam())
    assert one.beats <= one.busy <= one.beats + ideal.busy - 512
    assert one.y_stalls > ideal.y_stalls == 0


def test_readers_in_one_bank_take_turns() -> None:
    """The second of two streams that begin in one bank is a block behind in two banks."""
    ideal, one, two = (
        predicted(64, Op.XOR, 1 << 12, memory).busy
        for memory in (Memory(), RamBanks(banks=1), RamBanks(banks=2))
    )
    assert one >= 2 * 512
    assert ideal < two <= ideal + 16 + 2
