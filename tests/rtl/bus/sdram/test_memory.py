"""The controller and a chip: the right bytes under any stalls, and no rule of the chip broken."""

import random
from dataclasses import replace

import numpy as np
import pytest

from bitlane_boards.pins.sdram import SdramChip
from bitlane_rtl.abi import register
from bitlane_rtl.abi.rows import Rows
from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7
from bitlane_rtl.bus.sdram.pins import ChipCommand
from bitlane_rtl.capabilities import geometry
from bitlane_rtl.configuration import Configuration
from support.rtl.bursts import BASE, BLOCKS, bursts_of, ragged, stored
from support.rtl.sdram import CLOCK_HZ, PART, WITHOUT_MASKS, ChipAtPins, memory
from support.rtl.streams import ALL_STALLS, Sink, Source, Stalls, simulate
from support.seeds import seeds, slow


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


# --- a chip without masks -------------------------------------------------------------------------


def content(chip: SdramChip, width: int) -> list[int]:
    """Return the bytes of the blocks in the chip: each block lies in another bank."""
    words = chip.words[:BLOCKS, 0, : 16 * width // 32]
    return list(words.astype("<u4").tobytes())


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
@pytest.mark.parametrize("seed", seeds(2, 12))
def test_bytes_beside_those_that_are_written_stay(width: int, stalls: Stalls, seed: int) -> None:
    rng = random.Random(seed)
    dut = memory(width, part="without masks")
    chip = SdramChip(WITHOUT_MASKS, CLOCK_HZ)
    asked, beats = ragged(rng, width, 30)
    expected = stored(asked, beats, width)
    benches = bursts_of(dut, write=asked, beats=beats, stalls=stalls)
    at_pins = ChipAtPins(dut.pins, chip)
    simulate(dut, *benches.values(), background=[at_pins])
    assert content(chip, width) == expected, (width, stalls, seed)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(
    ("partial", "reads"),
    [({}, 0), ({0}, 1), ({15}, 1), ({5}, 1), ({3, 9}, 7), ({0, 15}, 16)],
    ids=["none", "first", "last", "middle", "between", "ends"],
)
def test_a_burst_is_read_from_its_first_partial_beat_to_its_last(
    width: int, partial: set[int], reads: int
) -> None:
    dut = memory(width, part="without masks")
    chip = SdramChip(WITHOUT_MASKS, CLOCK_HZ)
    full = (1 << width // 8) - 1
    asked = [{"address": BASE, "length": 15}]
    beats = [
        {"data": 0, "strobe": full - (beat in partial), "last": beat == 15} for beat in range(16)
    ]
    at_pins = ChipAtPins(dut.pins, chip)
    simulate(dut, *bursts_of(dut, write=asked, beats=beats).values(), background=[at_pins])
    given = [command for _, command in at_pins.given]
    assert given.count(ChipCommand.READ) == reads
    assert given.count(ChipCommand.WRITE) == 16


# --- the geometry of a chip's memory --------------------------------------------------------------


def test_geometry_reports_the_rows_of_the_chip() -> None:
    assert AS4C16M16SA_7.rows == Rows(size_log2=12, banks_log2=2, word_bytes_log2=1)
    word = geometry(Configuration(rows=AS4C16M16SA_7.rows))
    fields = ("ROWS_LOG2", "BANKS_LOG2", "WORD_BYTES_LOG2")
    assert [register("GEOMETRY")[name].extract(word) for name in fields] == [12, 2, 1]


@pytest.mark.parametrize("width", [8, 16, 32])
def test_rows_of_one_number_and_words_have_all_bytes_of_the_chip(width: int) -> None:
    part = replace(AS4C16M16SA_7, width=width)
    assert 8 << part.rows.word_bytes_log2 == width
    assert part.size == 1 << part.rows.size_log2 + part.row_bits
