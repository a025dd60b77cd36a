"""The controller and a chip: the right bytes under any stalls, and no rule of the chip broken."""

import numpy as np
import pytest

from bitlane_boards.pins.sdram import SdramChip
from support.rtl.bursts import BYTES, check_at_random
from support.rtl.sdram import CLOCK_HZ, PART, PARTS, ChipAtPins, memory
from support.rtl.streams import ALL_STALLS, Sink, Source, Stalls, simulate
from support.seeds import slow


@pytest.mark.parametrize("part", ["fast", "without masks"])
@pytest.mark.parametrize("read_ports", [1, 2])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_the_engine_reaches_the_right_bytes(stalls: Stalls, read_ports: int, part: str) -> None:
    dut = memory(8 * BYTES, read_ports, part=part)
    chip = SdramChip(PARTS[part], CLOCK_HZ)
    check_at_random(dut, read_ports, stalls, [ChipAtPins(dut.pins, chip)])


@pytest.mark.parametrize("read_ports", [slow(1), 2])
def test_a_reader_that_takes_its_beats_late_loses_none(read_ports: int) -> None:
    dut = memory(64, read_ports)
    chip = SdramChip(PART, CLOCK_HZ)
    words = chip.words[:, 0, :64]
    words[:] = np.arange(words.size).reshape(words.shape)
    asked = [{"address": 128 * block, "length": 15} for block in range(4)]
    beats = Sink(dut.a.data, 64, Stalls(seed=1, probability=0.9, longest=40))
    background = [ChipAtPins(dut.pins, chip)]
    simulate(dut, Source(dut.a.request, asked), beats, background=background)
    expected = words.reshape(-1, 4).astype(np.uint64) @ (1 << 16 * np.arange(4, dtype=np.uint64))
    assert [beat.data for beat in beats.payloads] == expected.tolist()


@pytest.mark.parametrize("read_ports", [slow(1), 2])
def test_a_burst_is_written_once_all_of_its_late_beats_are_there(read_ports: int) -> None:
    dut = memory(64, read_ports)
    chip = SdramChip(PART, CLOCK_HZ)
    asked = [{"address": 128 * block, "length": 15} for block in range(4)]
    beats = [{"data": 0x0101 << 48 | n, "strobe": 255, "last": n % 16 == 15} for n in range(64)]
    late = Source(dut.write.data, beats, Stalls(seed=1, probability=0.9, longest=40))
    simulate(
        dut,
        Source(dut.write.request, asked),
        late,
        Sink(dut.write.response, 4),
        background=[ChipAtPins(dut.pins, chip)],
    )
    words = chip.words[:, 0, :64].reshape(-1, 4)
    assert words.tolist() == [[n, 0, 0, 0x0101] for n in range(64)]
