"""The sequencer starts or refuses each record once, in order, as the record demands.

The expected command or code comes from `support.models.record`, an independent model of `abi`.
"""

import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from bitlane_rtl.abi import RECORD_WORDS, Lane, Mode, Op, Status
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.control.sequencer import ring_columns
from support.commands import logic
from support.models.record import Record
from support.rtl.random_records import interpreter, random_record
from support.rtl.records import Task, pack
from support.rtl.sequencing import Outcome, SequencerBench, expected_command
from support.rtl.walks import Walk
from support.seeds import slow

MEMORY = Configuration(memory_base=0x20000, memory_bytes=0x30000, slots=8)

NOT = pack(logic(Op.NOT, 0x20000, None, 0x30000, 64))
XOR = pack(logic(Op.XOR, 0x20000, 0x28000, 0x30000, 64))
ROWS = pack(
    Task(
        Op.NOT,
        Walk(0x20000, [8, 2, 3], [8, 64, 256], Mode.STRIDED, Lane.BITS_32),
        None,
        Walk(0x30000, [8, 2, 3], [4, 32, 64], Mode.DENSE, Lane.BITS_32),
    )
)
REFUSED = pack(logic(Op.NOT, 0, None, 0x30000, 64))


def check(outcome: Outcome, words: list[int], configuration: Configuration, told: str) -> None:
    """Compare the outcome of a record with the command or the code that the contract requires."""
    words = words + [0] * (RECORD_WORDS - len(words))
    status = interpreter(configuration).refusal(Record(words))
    if status is not Status.OK:
        assert outcome.code == status, f"{outcome}, expected {status.name}: {told}"
        return
    assert outcome.command is not None, f"refused with {outcome.code}: {told}"
    expected = expected_command(words, configuration)
    assert {name: outcome.command[name] for name in expected} == expected, told
    assert outcome.command["alone"] or not Record(words).control["FENCE"], told


@pytest.mark.parametrize(
    ("width", "pause", "slots"),
    [
        *((32, 0.3, 8), (64, 0.0, 8), (64, 0.8, 8), (128, 0.0, 8)),
        *(slow(*each, 4) for each in product((32, 64, 128), (0.0, 0.3, 0.8))),
    ],
)
def test_random_records_while_others_run(width: int, pause: float, slots: int) -> None:
    """Jobs of records run to their first refusal; the ring still holds records of the job before.

    A record that is fetched before all its words are written is an old record, or a mixture.
    """
    configuration = replace(MEMORY, data_width=width, slots=slots)
    run_random_records(configuration, f"{width} {pause}", pause)


@pytest.mark.parametrize(
    ("width", "pause", "slots"),
    [(32, 0.3, 8), (64, 0.0, 8), *(slow(*each, 4) for each in product((32, 64), (0.0, 0.3)))],
)
def test_random_searches_among_others(width: int, pause: float, slots: int) -> None:
    search = Search(units=1, row_bits=256, queries=32, nearest=4)
    ops = frozenset({Op.NOT, Op.COUNT})
    configuration = replace(MEMORY, data_width=width, slots=slots, ops=ops, search=search)
    run_random_records(configuration, f"searches {width} {pause}", pause)


def run_random_records(configuration: Configuration, seed: str, pause: float) -> None:
    """Execute 40 jobs of random records and check the outcome of each record."""
    generator = random.Random(seed)
    bench = SequencerBench(configuration, generator, pause)
    ended = {"started": 0, "refused": 0}

    async def host(ctx: Any) -> None:
        for job in range(40):
            records = [random_record(generator, configuration) for _ in range(12)]
            outcomes = await bench.execute(ctx, records)
            for number, outcome in enumerate(outcomes):
                words = records[number]
                listed = [hex(word) for word in words[: Record(words).used]]
                told = f"seed {seed!r}, job {job}, record {number}: {listed}"
                check(outcome, words, configuration, told)
                ended["started" if outcome.code is None else "refused"] += 1
            await bench.clear(ctx)

    bench.simulate(host)
    assert min(ended.values()) > 30, str(ended)


@pytest.mark.parametrize(("width", "columns"), [(32, 1), (64, 2), (128, 4), (256, 4), (512, 4)])
def test_the_ring_is_read_a_beat_at_a_time_and_at_most_128_bits(width: int, columns: int) -> None:
    assert ring_columns(replace(MEMORY, data_width=width)) == columns


@pytest.mark.parametrize("width", [32, 64, slow(128)])
def test_a_word_written_around_the_start_before_it_is_seen(width: int) -> None:
    """One word of a prefetched record changes, in every cycle of the start of the record before."""
    bench = SequencerBench(replace(MEMORY, data_width=width), random.Random(0))

    async def host(ctx: Any) -> None:
        for wait in range(6):
            for word in range(1, len(NOT)):
                stale = list(NOT)
                stale[word] ^= 0x0101  # in two bytes, so that the seal stays right
                bench.write(0, NOT)
                bench.write(1, stale)
                await bench.wait(ctx, 40)
                bench.ring(1)
                await bench.wait(ctx, wait)
                bench.change(1, word, NOT[word])
                await bench.wait(ctx, 20)
                bench.ring(2)
                await bench.finish(ctx, 2)
                told = f"word {word}, {wait} cycles after the doorbell"
                check(bench.outcomes[1], NOT, bench.configuration, told)
                await bench.clear(ctx)

    bench.simulate(host)


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize("words", [NOT, XOR, ROWS], ids=["NOT", "XOR", "ROWS"])
def test_a_record_fetched_ahead_starts_in_the_cycle_after_its_doorbell(
    words: list[int], width: int
) -> None:
    bench = SequencerBench(replace(MEMORY, data_width=width), random.Random(0))

    async def host(ctx: Any) -> None:
        bench.write(0, words)
        await bench.wait(ctx, 70)
        bench.ring(1)
        await bench.finish(ctx, 1)

    bench.simulate(host)
    assert bench.outcomes[0].cycle == bench.rings[0] + 1


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize("words", [NOT, XOR, ROWS, REFUSED])
def test_a_fetch_takes_four_cycles_and_one_for_each_group(words: list[int], width: int) -> None:
    """Count from the last write to the ring, in the doorbell's cycle, to the start or refusal."""
    bench = SequencerBench(replace(MEMORY, data_width=width), random.Random(0))

    async def host(ctx: Any) -> None:
        await bench.execute(ctx, [words])

    bench.simulate(host)
    groups = -(-len(words) // (width // 32))
    assert bench.outcomes[0].cycle == bench.rings[0] + 4 + groups


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize("words", [NOT, XOR])
@pytest.mark.parametrize("slots", [8, slow(16)])
def test_a_command_every_two_cycles_and_one_for_each_group(
    words: list[int], width: int, slots: int
) -> None:
    bench = SequencerBench(replace(MEMORY, data_width=width, slots=slots), random.Random(0))
    count = 8

    async def host(ctx: Any) -> None:
        for index in range(count):
            bench.write(index, words)
        bench.ring(count)
        await bench.finish(ctx, count)

    bench.simulate(host)
    cycles = [outcome.cycle for outcome in bench.outcomes]
    period = 2 + -(-len(words) // (width // 32))
    assert cycles == [cycles[0] + period * number for number in range(count)]
