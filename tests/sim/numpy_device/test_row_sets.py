"""Jobs in other rows of an SDRAM chip: one prediction serves all that share rows alike."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bitlane.driver.commands import encode
from bitlane_rtl.abi import RECORD, RECORD_BYTES, Lane, Op
from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7, EM638325_6H, SdramPart
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.configurations import full
from bitlane_sim.campaigns.commands import move
from bitlane_sim.numpy_device.counters import PredictedCounters, shape_of
from bitlane_sim.numpy_device.cycles import CommandShape, CounterValues
from bitlane_sim.numpy_device.memories import SdramRows
from bitlane_sim.numpy_device.row_sets import RowSets
from support.commands import RandomCommands
from support.rtl.records import pack
from support.seeds import seeds

SET = 4096
"""Bytes of a row set of both chips."""

REGION = 2048
"""Half a row set, so that streams often share rows."""

CLOCK_HZ = 100_000_000


class WhereTheyAre(SdramRows):
    """A chip whose jobs are predicted in the rows in which they are."""

    @property
    def row_set(self) -> int:
        return 0


def circuit() -> Configuration:
    search = Search(units=4, row_bits=64, queries=16, nearest=4)
    return replace(full(64), memory_bytes=1 << 20, search=search)


def execute(counters: PredictedCounters, job: Sequence[Sequence[int]]) -> CounterValues:
    """Return the counters of a job, and leave the arbiters as they then are."""
    counters.clear()
    counters.wrote(32, ring=True)
    counters.submitted(
        tuple(np.array(each, "<u4").tobytes().ljust(RECORD_BYTES, b"\0") for each in job)
    )
    return counters.counts()


def drawn(chance: random.Random) -> list[list[int]]:
    """Return a job of up to four commands in few of the chip's row sets."""

    def place() -> int:
        return chance.randrange(12) * REGION

    commands = RandomCommands(
        configuration=circuit(), size=REGION, fences=0.3, long=0.3, disjoint=False
    )
    return [
        search(place(), place(), place())
        if chance.random() < 0.2
        else pack(replace(commands, a=place(), b=place()).draw(chance, place()))
        for _ in range(chance.randint(1, 4))
    ]


def search(a: int, b: int, y: int) -> list[int]:
    """Return the record of a search of one query in 32 rows."""
    words = dict.fromkeys(RECORD, 0)
    words |= {"RUN": 256, "A_BASE": a, "A_LAST": (1 << 20) - 1}
    words |= {"B_BASE": b, "B_LAST": b + 7, "Y_BASE": y, "Y_LAST": y + 31}
    fields = {"OP": Op.SEARCH, "LANE": Lane.BITS_8, "OUT_LANE": Lane.BITS_32, "LOOPS": 1}
    words["CONTROL"] = sum(bits.insert(fields.get(bits.name, 0)) for bits in RECORD["CONTROL"].bits)
    return [words[name] for name in RECORD]


def xor(a: int, b: int, y: int, size: int = 1024) -> CommandShape:
    words = encode(move(Op.XOR, size, a, b, y)).tolist()
    return shape_of(words, AS4C16M16SA_7.size)


def renumbered(*shapes: CommandShape, used: int = 0) -> list[CommandShape]:
    sets = RowSets(shapes, SET, used)
    return [sets.renumbered(shape) for shape in shapes]


@pytest.mark.parametrize("seed", seeds(1, 2))
@pytest.mark.parametrize("part", [AS4C16M16SA_7, EM638325_6H], ids=lambda part: part.name)
def test_a_job_takes_what_it_does_where_it_is(part: SdramPart, seed: int) -> None:
    chance = random.Random(seed)
    shared, apart = (
        PredictedCounters(circuit(), kind(part=part, clock_hz=CLOCK_HZ))
        for kind in (SdramRows, WhereTheyAre)
    )
    for number in range(40):
        job = drawn(chance)
        assert execute(shared, job) == execute(apart, job), f"seed {seed}, job {number}"


def test_equal_jobs_at_other_addresses_are_one() -> None:
    """A distance of whole row sets between streams does not count, either."""
    first = renumbered(xor(100, SET + 200, 2 * SET + 300))
    assert first == renumbered(xor(7 * SET + 100, 31 * SET + 200, 5 * SET + 300))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(xor(100, SET + 200, SET + 2300), id="two streams share a row set"),
        pytest.param(xor(100, 2 * SET - 500, 3 * SET + 300), id="a stream has two row sets"),
        pytest.param(xor(100, SET + 328, 2 * SET + 300), id="another bank"),
    ],
)
def test_jobs_that_share_rows_otherwise_differ(other: CommandShape) -> None:
    assert renumbered(other) != renumbered(xor(100, SET + 200, 2 * SET + 300))


@pytest.mark.parametrize(
    ("bases", "want"),
    [
        ((5 * SET, 6 * SET - 512, 6 * SET + 2048), (0, SET - 512, SET + 2048)),
        ((6 * SET + 2048, 6 * SET - 512, 5 * SET), (SET + 2048, SET - 512, 0)),
        ((5 * SET, 6 * SET - 512, 9 * SET), (0, SET - 512, 2 * SET)),
    ],
)
def test_streams_that_share_a_row_set_move_together(
    bases: tuple[int, int, int], want: tuple[int, int, int]
) -> None:
    """The second stream has two row sets."""
    (found,) = renumbered(xor(*bases))
    assert tuple(stream.walk.base for stream in found.streams) == want


def test_the_row_set_of_a_search_stays_the_first() -> None:
    """The one access that is followed of a search is to address 0."""
    (found,) = renumbered(xor(9 * SET, 0, 3 * SET), used=1)
    assert [stream.walk.base for stream in found.streams] == [SET, 0, 2 * SET]


@pytest.mark.parametrize("part", [AS4C16M16SA_7, EM638325_6H], ids=lambda part: part.name)
def test_a_row_set_is_that_of_the_chip(part: SdramPart) -> None:
    assert SdramRows(part=part, clock_hz=CLOCK_HZ).row_set == SET
