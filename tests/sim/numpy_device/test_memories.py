"""Predicted cycles on memories that all streams share, beside those of the circuit on them."""

from dataclasses import replace

import pytest

from bitlane.driver.commands import encode
from bitlane_boards import boards
from bitlane_boards.board import MemoryKind
from bitlane_boards.pins.sdram_rows import logic
from bitlane_boards.predicted import predicted_boards
from bitlane_rtl.abi import Op
from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7, EM638325_6H, SdramPart
from bitlane_rtl.configurations import full
from bitlane_sim.bench.sram import three_streams
from bitlane_sim.campaigns.commands import move
from bitlane_sim.numpy_device.counters import PredictedCounters
from bitlane_sim.numpy_device.cycles import SDRAM_SHARE, Memory


def predicted(width: int, op: Op, size: int, memory: Memory) -> int:
    """Return the cycles of ``op`` on ``size`` bytes, operands and output behind each other."""
    counters = PredictedCounters(replace(full(width), memory_bytes=1 << 20), memory)
    command = move(op, size, 0, size if op.reads_b else None, 2 * size)
    counters.wrote(32, ring=True)
    counters.wrote(20, ring=False)
    counters.submitted((encode(command).tobytes().ljust(128, b"\0"),))
    return counters.counts().busy


@pytest.mark.slow
@pytest.mark.parametrize("part", [AS4C16M16SA_7, EM638325_6H], ids=lambda part: part.name)
@pytest.mark.parametrize("op", [Op.XOR, Op.NOT], ids=["XOR", "NOT"])
@pytest.mark.parametrize("size", [1 << 14, 1 << 16])
def test_streams_on_sdram_take_what_the_circuit_does(part: SdramPart, op: Op, size: int) -> None:
    took = logic(64, op, size, part).cycles
    found = predicted(64, op, size, Memory(shared=64 / part.width / SDRAM_SHARE))
    assert abs(found / took - 1) <= 0.05, f"{found} predicted, {took} on the circuit"


@pytest.mark.slow
@pytest.mark.parametrize("width", [32, 64])
def test_streams_on_one_port_take_what_the_circuit_does(width: int) -> None:
    took = (1 << 14) // (width // 8) / three_streams(width, "compiled")
    found = predicted(width, Op.XOR, 1 << 14, Memory(shared=1))
    assert abs(found / took - 1) <= 0.01, f"{found} predicted, {took:.0f} on the circuit"


@pytest.mark.parametrize("name", boards())
def test_a_beat_takes_a_boards_memory_as_long_as_its_words(name: str) -> None:
    board, shared = boards()[name], predicted_boards()[name].memory.shared
    if board.memory is MemoryKind.SDRAM:
        assert board.sdram is not None
        words = board.configuration.data_width // board.sdram.width
        assert shared == words / SDRAM_SHARE > words
    elif board.memory is MemoryKind.BANKS:
        assert shared * board.banks == 1
    else:
        assert shared == 1


@pytest.mark.parametrize("shared", [0, 1, 4])
def test_a_job_takes_no_less_than_its_beats_on_the_port(shared: int) -> None:
    beats = 3 * (1 << 12) // 8
    alone = predicted(64, Op.XOR, 1 << 12, Memory())
    assert predicted(64, Op.XOR, 1 << 12, Memory(shared=shared)) == max(alone, shared * beats)
