"""The ring returns the written words in groups; completions are one word per slot."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import COMPLETION, RECORD_WORDS, register
from bitlane_rtl.control.ring import Completions, Ring
from support.rtl.streams import simulate
from support.seeds import slow


def group(words: list[int], address: int, width: int) -> int:
    count = width // 32
    part = words[address * count : (address + 1) * count]
    return sum(word << 32 * index for index, word in enumerate(part))


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize("slots", [2, 16])
def test_every_word_comes_back_in_its_group(slots: int, width: int) -> None:
    dut = Ring(slots, width // 32)
    rng = random.Random(slots * width)
    words = [rng.getrandbits(32) for _ in range(slots * RECORD_WORDS)]

    async def bench(ctx: Any) -> None:
        ctx.set(dut.write.enable, 1)
        for address in rng.sample(range(len(words)), len(words)):
            ctx.set(dut.write.address, address)
            ctx.set(dut.write.data, words[address])
            await ctx.tick()
        ctx.set(dut.write.enable, 0)
        ctx.set(dut.read.enable, 1)
        for address in range(len(words) * 32 // width):
            ctx.set(dut.read.address, address)
            await ctx.tick()
            assert ctx.get(dut.read.words) == group(words, address, width)

    simulate(dut, bench)


@pytest.mark.parametrize("width", [32, 64, slow(128)])
def test_reads_and_writes_of_other_groups_go_on_at_once(width: int) -> None:
    slots = 4
    dut = Ring(slots, width // 32)
    groups = slots * RECORD_WORDS * 32 // width
    words = [0] * (slots * RECORD_WORDS)
    written: set[int] = set()
    rng = random.Random(width)
    compared = 0

    async def bench(ctx: Any) -> None:
        nonlocal compared
        expected: int | None = None
        for _ in range(1500):
            write, read = rng.random() < 0.7, rng.random() < 0.7
            word, address = rng.randrange(len(words)), rng.randrange(groups)
            data = rng.getrandbits(32)
            write = write and word * 32 // width != address
            ctx.set(dut.write.enable, write)
            ctx.set(dut.write.address, word)
            ctx.set(dut.write.data, data)
            ctx.set(dut.read.enable, read)
            ctx.set(dut.read.address, address)
            if read:
                expected = None
                if written.issuperset(range(address * width // 32, (address + 1) * width // 32)):
                    expected = group(words, address, width)
            await ctx.tick()
            if write:
                words[word] = data
                written.add(word)
            if expected is not None:
                compared += 1
                assert ctx.get(dut.read.words) == expected, "not what was read last"

    simulate(dut, bench)
    assert compared > 500


def test_a_write_can_be_read_in_the_next_cycle() -> None:
    dut = Ring(2, 2)

    async def bench(ctx: Any) -> None:
        for write, read in ((1, 0), (0, 1)):
            ctx.set(dut.write.enable, write)
            ctx.set(dut.write.address, 5)
            ctx.set(dut.write.data, 0x01234567)
            ctx.set(dut.read.enable, read)
            ctx.set(dut.read.address, 2)
            await ctx.tick()
        assert ctx.get(dut.read.words) >> 32 == 0x01234567

    simulate(dut, bench)


def test_completions_come_back_by_slot() -> None:
    slots = 16
    dut = Completions(slots)
    rng = random.Random(5)
    words = [0] * slots

    async def bench(ctx: Any) -> None:
        for _ in range(300):
            write, slot, other = rng.random() < 0.5, rng.randrange(slots), rng.randrange(slots)
            status, index = rng.getrandbits(8), rng.getrandbits(12) << 4 | slot
            write = write and slot != other
            ctx.set(dut.write, write)
            ctx.set(dut.status, status)
            ctx.set(dut.index, index)
            ctx.set(dut.read_slot, other)
            await ctx.tick()
            assert ctx.get(dut.read_data) == words[other]
            if write:
                words[slot] = index << 8 | status

    simulate(dut, bench)


def test_a_completion_has_room_for_what_the_circuit_counts() -> None:
    """A completion's index has as many bits as the counters in RETIRED and FAULT."""
    dut = Completions(2)
    _, index = COMPLETION
    assert (index.low, len(dut.index)) == (8, index.width)
    assert index.width == register("RETIRED")["COUNT"].width == register("FAULT")["INDEX"].width


@pytest.mark.parametrize("slots", [0, 1, 12])
def test_slots_that_are_no_power_of_two_are_refused(slots: int) -> None:
    with pytest.raises(ValueError, match=f"slots: {slots} is not a power of two"):
        Ring(slots, 2)
    with pytest.raises(ValueError, match=f"slots: {slots} is not a power of two"):
        Completions(slots)


def test_columns_that_records_do_not_divide_into_are_refused() -> None:
    with pytest.raises(ValueError, match="columns: 3 is none of 1, 2 and 4"):
        Ring(16, 3)
