"""A chip without masks: bytes beside those that are written stay, and whole beats cost nothing."""

import random

import pytest

from bitlane_boards.pins.sdram import SdramChip
from bitlane_rtl.bus.sdram.pins import ChipCommand
from support.rtl.bursts import BASE, BLOCKS, bursts_of, ragged, stored
from support.rtl.sdram import CLOCK_HZ, WITHOUT_MASKS, ChipAtPins, memory
from support.rtl.streams import ALL_STALLS, Stalls, simulate
from support.seeds import seeds


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
