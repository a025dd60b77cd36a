"""A chip without masks: bytes beside those that are written stay, and whole beats cost nothing."""

import random

import pytest

from bitlane_boards.pins.sdram import SdramChip
from bitlane_rtl.bus.sdram.pins import ChipCommand
from support.rtl.bursts import BASE, Host, bursts_of
from support.rtl.sdram import CLOCK_HZ, WITHOUT_MASKS, ChipAtPins, memory
from support.rtl.streams import ALL_STALLS, Stalls, simulate
from support.seeds import seeds

BLOCKS = 2
"""Blocks of 16 beats that are written: few, so that bursts meet in one beat."""


def written(
    rng: random.Random, width: int, count: int
) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    """Return bursts and their beats: whole ones, runs with ragged ends, and any strobes."""
    bytes_ = width // 8
    full = (1 << bytes_) - 1
    asked, beats = [], []
    for _ in range(count):
        beat = rng.randrange(16)
        length = rng.choice([0, 15 - beat, rng.randrange(16 - beat)])
        address = BASE + (16 * rng.randrange(BLOCKS) + beat) * bytes_
        asked.append({"address": address, "length": length})
        strobes = [full] * (length + 1)
        kind = rng.randrange(4)
        if kind & 1:
            strobes[0] = full & full << rng.randrange(bytes_)
        if kind & 2:
            strobes[-1] &= full >> rng.randrange(bytes_)
        if rng.random() < 0.2:
            strobes = [rng.randrange(full + 1) for _ in strobes]
        beats += [
            {"data": rng.getrandbits(width), "strobe": strobe, "last": index == length}
            for index, strobe in enumerate(strobes)
        ]
    return asked, beats


def stored(asked: list[dict[str, int]], beats: list[dict[str, int]], width: int) -> list[int]:
    """Return the bytes of the blocks after all ``beats``, as a memory with masks has them."""
    content = bytearray(BLOCKS * 16 * width // 8)
    given = iter(beats)
    for burst in asked:
        for index in range(burst["length"] + 1):
            beat, at = next(given), burst["address"] - BASE + index * width // 8
            for byte in range(width // 8):
                if beat["strobe"] >> byte & 1:
                    content[at + byte] = beat["data"] >> 8 * byte & 0xFF
    return list(content)


def content(chip: SdramChip, width: int) -> list[int]:
    """Return the bytes of the blocks in the chip: each block lies in another bank."""
    words = chip.words[:BLOCKS, 0, : 16 * width // 32]
    return list(words.astype("<u4").tobytes())


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
@pytest.mark.parametrize("seed", seeds(2, 12))
def test_bytes_beside_those_that_are_written_stay(width: int, stalls: Stalls, seed: int) -> None:
    """The host's bytes lie beside the engine's, in the same beats."""
    rng = random.Random(seed)
    dut = memory(width, part="without masks")
    chip = SdramChip(WITHOUT_MASKS, CLOCK_HZ)
    asked, beats = written(rng, width, 30)
    for beat in beats:
        beat["strobe"] &= ~1  # the lowest byte of each beat is the host's
    expected = stored(asked, beats, width)
    accesses: list[tuple[int, int | None]] = []
    for _ in range(20):
        address = rng.randrange(16 * BLOCKS) * width // 8
        expected[address] = rng.randrange(256)
        accesses.append((address, expected[address]))
    host = Host(dut.host, [*accesses, (0, None)], stalls)
    benches = bursts_of(dut, write=asked, beats=beats, stalls=stalls)
    at_pins = ChipAtPins(dut.pins, chip)
    simulate(dut, *benches.values(), host, background=[at_pins])
    assert content(chip, width) == expected, (width, stalls, seed)
    assert host.read == [expected[0]]


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
