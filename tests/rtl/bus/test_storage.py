"""Memories of a board behind one port keep what is written, byte by byte."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from amaranth.back import rtlil

from bitlane_boards.pins.model import VENDOR_CELLS
from bitlane_rtl.bus.storage import BlockRam, SinglePortRam
from cppsim import Model
from cppsim.circuits import AnyModel, Circuit

SIZES = {"block": 64, "spram": 1 << 14, "two spram": 1 << 15}
"""Words of each kind of memory."""


@pytest.fixture(params=SIZES, scope="module")
def memory(request: Any) -> Iterator[tuple[AnyModel, int]]:
    words = SIZES[request.param]
    circuit: Any = BlockRam(words, 32) if request.param == "block" else SinglePortRam(words)
    run = Model(Circuit(circuit, VENDOR_CELLS))
    yield run, words
    run.close()


def access(run: AnyModel, word: int, strobe: int = 0, data: int = 0, *, enable: bool = True) -> int:
    run.set("memory__address", word)
    run.set("memory__enable", enable)
    run.set("memory__strobe", strobe)
    run.set("memory__write_data", data)
    run.step()
    return run.get("memory__read_data")


def test_random_accesses_read_what_was_written(memory: tuple[AnyModel, int]) -> None:
    run, words = memory
    rng = random.Random(0)
    # At the edges of every RAM, where wrong bits of an address would show.
    places = sorted({(1 << bit) + step for bit in range(15) for step in (-1, 0)} | {words - 1})
    places = [place for place in places if 0 <= place < words]
    model = {place: rng.getrandbits(32) for place in places}
    for place, data in model.items():
        access(run, place, 0xF, data)
    for step in range(1000):
        place, strobe = rng.choice(places), rng.randrange(16)
        if rng.random() < 0.5:
            data = rng.getrandbits(32)
            enable = rng.random() < 0.8
            access(run, place, strobe, data, enable=enable)
            if enable:
                mask = sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
                model[place] = model[place] & ~mask | data & mask
        else:
            assert access(run, place) == model[place], f"step {step}, word {place:#x}"


def test_a_word_that_was_read_changes_only_with_the_next_access(
    memory: tuple[AnyModel, int],
) -> None:
    run, words = memory
    access(run, 1, 0xF, 0x11111111)
    access(run, words - 1, 0xF, 0x22222222)
    assert access(run, words - 1) == 0x22222222
    assert access(run, 1, enable=False) == 0x22222222
    assert access(run, 1) == 0x11111111


@pytest.mark.parametrize("words", [1, 1 << 13, 3 << 13, 1 << 16])
def test_single_port_ram_comes_in_two_sizes(words: int) -> None:
    with pytest.raises(ValueError, match=f"words: {words} is neither 16384 nor 32768"):
        SinglePortRam(words)


def test_the_rams_are_never_asleep() -> None:
    """Their models know no other state."""
    text = rtlil.convert(SinglePortRam(1 << 14))
    for port, value in (("STANDBY", 0), ("SLEEP", 0), ("POWEROFF", 1)):
        assert text.count(f"connect \\{port} 1'{value}\n") == 2, port
