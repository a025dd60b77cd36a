"""The search array finds the nearest rows of each query, under any stalls, in known cycles."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from amaranth.back import rtlil
from numpy.typing import NDArray

from bitlane_boards.flow import YOSYS, ToolError, run_tool
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.search import CountTree, SearchArray, Unit, additions
from support.oracle import nearest
from support.rtl.streams import (
    NO_STALLS,
    STALLS,
    Resettable,
    Sink,
    Source,
    Stalls,
    Testbench,
    clocked,
    compiled,
    simulate,
)
from support.seeds import slow

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Found:
    """The output of an array: (query, rank, {distance, index}), and the cycle of the last beat."""

    words: NDArray[np.uint32]
    last: int


def configured(
    units: int, row_bits: int = 64, queries: int = 16, nearest: int = 4, **others: int
) -> Configuration:
    """Return the configuration of a circuit with an array of these parameters."""
    search = Search(units=units, row_bits=row_bits, queries=queries, nearest=nearest)
    return replace(Configuration(search=search), **others)


def beats(run: Bytes, data_width: int, bad: int | None = None) -> Iterator[dict[str, int]]:
    """Yield ``run`` as beats; the beat number ``bad`` has its error bit set."""
    content = run.tobytes()
    size = data_width // 8
    for start in range(0, len(content), size):
        yield {
            "data": int.from_bytes(content[start : start + size], "little"),
            "last": start + size == len(content),
            "error": start // size == bad,
        }


def search(
    configuration: Configuration,
    batches: Sequence[tuple[Bytes, Bytes]],
    stalls: Stalls = NO_STALLS,
    deadline: int = 100_000,
) -> list[Found]:
    """Send the (queries, rows) of ``batches`` through one array, one batch after the other."""
    array = compiled(SearchArray, configuration)
    search, width = configuration.search, configuration.data_width
    assert search is not None
    sizes = [len(queries) * search.nearest * 64 // width for queries, _ in batches]

    def run(which: int) -> list[Any]:
        return [beat for batch in batches for beat in beats(batch[which], width)]

    sink = Sink(array.o, sum(sizes), stalls, "results")
    queries = Source(array.queries, run(0), stalls, "queries")
    rows = Source(array.rows, run(1), stalls, "rows")
    simulate(array, queries, rows, sink, deadline=deadline)
    found, start = [], 0
    for (queries_sent, _), size in zip(batches, sizes, strict=True):
        payloads = sink.payloads[start : start + size]
        assert not any(payload.error for payload in payloads), "an error that nothing caused"
        content = b"".join(payload.data.to_bytes(width // 8, "little") for payload in payloads)
        words = np.frombuffer(content, np.uint32).reshape(len(queries_sent), search.nearest, 2)
        start += size
        found.append(Found(words, sink.cycles[start - 1]))
    return found


CIRCUITS = {
    "one unit": configured(1, nearest=1),
    "two clusters": configured(6),
    "narrow beats": configured(5, data_width=32, nearest=2, length_bits=12),
    "rows of four beats": configured(8, row_bits=128, data_width=32, queries=8, nearest=8),
    "units beyond queries": configured(21, queries=2),
}

QUICK = {"two clusters", "narrow beats"}
"""Circuits of the quick tier."""


def random_batch(seed: int, configuration: Configuration) -> tuple[Bytes, Bytes]:
    """Return queries and rows; many rows appear twice or more."""
    generator = np.random.default_rng(seed)
    circuit = configuration.search
    assert circuit is not None
    count, rows = generator.integers(1, circuit.queries + 1), generator.integers(1, 400)
    row_bytes = circuit.row_bits // 8
    database = generator.integers(0, 256, (rows, row_bytes), np.uint8)
    database = database[np.sort(generator.integers(0, rows, rows))]
    return generator.integers(0, 256, (count, row_bytes), np.uint8), database


def assert_found(
    configuration: Configuration, batches: list[tuple[Bytes, Bytes]], stalls: Stalls
) -> None:
    """Search ``batches`` one after the other, and compare all lists with the oracle's."""
    circuit = configuration.search
    assert circuit is not None
    for found, (queries, rows) in zip(search(configuration, batches, stalls), batches, strict=True):
        want = np.array(nearest(rows, queries, circuit.nearest), np.uint32)
        wrong = np.argwhere((found.words != want).any(axis=2))
        assert not len(wrong), (
            f"{configuration.search}, {stalls}, {len(rows)} rows, {len(queries)} queries:"
            f" (query, rank) {wrong[:5].tolist()}"
        )


@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in CIRCUITS])
def test_the_nearest_rows_are_found(name: str, stalls: Stalls) -> None:
    circuit = CIRCUITS[name]
    assert_found(circuit, [random_batch(seed, circuit) for seed in range(6)], stalls)


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 6, 7, 12, 13])
@pytest.mark.parametrize("queries", [1, 2, 16])
def test_few_rows_leave_places_empty(queries: int, rows: int) -> None:
    generator = np.random.default_rng(rows)
    some, all_rows = (generator.integers(0, 256, (n, 8), np.uint8) for n in (queries, rows))
    assert_found(CIRCUITS["two clusters"], [(some, all_rows)] * 2, STALLS[0])


def test_of_equal_distances_the_lower_index_wins(stalls: Stalls) -> None:
    """Rows of eight bytes, each 0 or 1, have only nine distinct distances."""
    generator = np.random.default_rng(7)
    rows = generator.integers(0, 2, (500, 8), np.uint8)
    assert_found(CIRCUITS["two clusters"], [(rows[:16], rows)], stalls)
    assert_found(CIRCUITS["two clusters"], [(rows[:3], np.repeat(rows[:4], 50, axis=0))], stalls)


@pytest.mark.parametrize("queries", [1, 16])
def test_each_row_nearer_than_all_before_is_slow_and_right(queries: int, stalls: Stalls) -> None:
    bits = np.arange(64) < np.arange(64, -1, -1)[:, np.newaxis]
    rows = np.repeat(np.packbits(bits, axis=1), 4, axis=0)
    assert_found(CIRCUITS["two clusters"], [(np.zeros((queries, 8), np.uint8), rows)] * 2, stalls)


def test_hits_in_the_farthest_units_alone_are_not_lost() -> None:
    """Rows of each tile in the second cluster are nearer than all before; the others are far."""
    bits = np.arange(64) < np.arange(63, 23, -1)[:, np.newaxis]
    near = np.repeat(np.packbits(bits, axis=1), 2, axis=0).reshape(40, 2, 8)
    rows = np.concatenate([np.full((40, 4, 8), 255, np.uint8), near], axis=1).reshape(240, 8)
    queries = np.zeros((16, 8), np.uint8)
    assert_found(CIRCUITS["two clusters"], [(queries, rows)], STALLS[0])


@pytest.mark.parametrize("circuit", [CIRCUITS["narrow beats"], slow(configured(5, length_bits=12))])
def test_the_longest_run_has_no_row_twice(circuit: Configuration) -> None:
    """Four units of the last tile still hold rows of the tile before, which are the nearest."""
    rows = np.full((511, 8), 255, np.uint8)
    rows[505:510] = 1
    assert_found(circuit, [(np.zeros((16, 8), np.uint8), rows)], STALLS[0])


# --- cycles of a search ---------------------------------------------------------------------------


SETTLES = 32 + 5
"""Cycles from the last query to the first list: a FIFO's depth, and the registers on the way."""


def found_of_equal_rows(
    units: int, data_width: int, rows: int, queries: int, capacity: int
) -> Found:
    """Search rows that equal the queries: only rows of the first tiles are hits.

    The array stores ``capacity`` queries.
    """
    configuration = configured(units, queries=capacity, data_width=data_width)
    batch = np.zeros((queries, 8), np.uint8), np.zeros((rows, 8), np.uint8)
    return search(configuration, [batch])[0]


@pytest.mark.parametrize("queries", [1, 2, 4])
@pytest.mark.parametrize("tiles", [16, 17, 40])
@pytest.mark.parametrize(("units", "capacity"), [(6, 16), slow(4, 64), slow(6, 64), slow(8, 64)])
def test_a_tile_takes_a_cycle_a_unit_and_a_query_and_one_more(
    units: int, capacity: int, tiles: int, queries: int
) -> None:
    found = found_of_equal_rows(units, 64, units * tiles, queries, capacity)
    first_tile_comes = queries + units
    lists_leave = queries * (2 + 4)
    passes = tiles * (units + queries + 1)
    assert found.last + 1 == first_tile_comes + passes + SETTLES + lists_leave


@pytest.mark.slow
@pytest.mark.parametrize("rows", [8 * 40, 8 * 40 + 5])
def test_rows_come_without_a_gap_where_their_beats_are_the_bound(rows: int) -> None:
    """A query, and rows of two beats: 16 beats a tile, which is 10 cycles in the units."""
    queries = 1
    found = found_of_equal_rows(8, 32, rows, queries, 64)
    last_tile = (rows - 1) % 8 + 1 + queries + 1
    assert found.last + 1 == 2 * queries + 2 * rows + last_tile + SETTLES + queries * (2 + 8)


@pytest.mark.parametrize(
    ("units", "queries", "capacity"), [(6, 16, 16), slow(8, 16, 64), slow(8, 64, 64)]
)
def test_hits_of_the_first_rows_take_their_cycles(units: int, queries: int, capacity: int) -> None:
    """Random rows, within 5 %: the first tile, 5 cycles for 4 hits, then 2 cycles a hit."""
    tiles, generator = 200, np.random.default_rng(queries)
    configuration = configured(units, queries=capacity)
    rows = generator.integers(0, 256, (units * tiles, 8), np.uint8)
    batch = generator.integers(0, 256, (queries, 8), np.uint8), rows
    (found,) = search(configuration, [batch])
    assert (found.words == nearest(rows, batch[0], 4)).all()
    first = 1.25 * units * queries
    later = sum(max(units + queries + 1, 2 * 4 / tile * queries) for tile in range(1, tiles))
    expected = queries + units + first + later + SETTLES + queries * (2 + 4)
    assert abs(found.last + 1 - expected) < 0.05 * expected, f"{found.last + 1}, not {expected}"


# --- errors ---------------------------------------------------------------------------------------


ROWS, QUERIES, NEAREST = 60, 5, 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_rows", "bad"), [(False, 0), (False, 2 * QUERIES - 1), (True, 0), (True, 2 * ROWS - 1)]
)
def test_a_bad_beat_makes_errors_until_a_reset(of_rows: bool, bad: int, stalls: Stalls) -> None:
    generator = np.random.default_rng(bad)
    queries = generator.integers(0, 256, (QUERIES, 16), np.uint8)
    rows = generator.integers(0, 256, (ROWS, 16), np.uint8)
    dut = compiled(Resettable, SearchArray, configured(6, row_bits=128, nearest=NEAREST))
    array = dut.dut
    spoiled = Sink(array.o, 20, stalls, "spoiled", idle=0)
    good = Sink(array.o, QUERIES * NEAREST, stalls, "good")
    taken: list[bool] = []

    def twice(port: Any, run: Any, bad_beat: int | None) -> Testbench:
        async def send(ctx: Any) -> None:
            await Source(port, beats(run, 64, bad_beat), stalls).run(ctx)
            taken.append(True)
            await ctx.tick().until(dut.reset)
            await Source(port, beats(run, 64), stalls).run(ctx)

        return send

    async def receive(ctx: Any) -> None:
        await spoiled.run(ctx)
        while len(taken) < 2:
            await ctx.tick()
        ctx.set(dut.reset, 1)
        await ctx.tick()
        ctx.set(dut.reset, 0)
        await good.run(ctx)

    simulate(
        dut,
        twice(array.queries, queries, None if of_rows else bad),
        twice(array.rows, rows, bad if of_rows else None),
        receive,
    )
    assert all(payload.error for payload in spoiled.payloads)
    assert not any(payload.error for payload in good.payloads)
    words = np.array([payload.data for payload in good.payloads], np.uint64).view(np.uint32)
    assert (words.reshape(QUERIES, NEAREST, 2) == nearest(rows, queries, NEAREST)).all()


# --- the counting tree ----------------------------------------------------------------------------


def test_stages_have_as_many_levels_as_they_may() -> None:
    assert [*map(list, CountTree(512, 2).stages)] == [[1, 2], [3, 4], [5, 6], [7, 8], [9]]
    assert [*map(list, CountTree(64, 4).stages)] == [[1, 2, 3, 4], [5, 6]]


# --- a unit ---------------------------------------------------------------------------------------


def distances(unit: Unit, script: list[tuple[int, bool]]) -> list[int]:
    """Apply each ``bits`` and ``load`` of ``script`` for a cycle; return ``distance`` for each."""
    inputs = [
        {"bits": bits, "load": load} for bits, load in [*script, *[(0, False)] * unit.latency]
    ]
    (seen,) = clocked(unit, inputs, "distance")
    return [*seen[unit.latency :]]


@pytest.mark.parametrize("row_bits", [64, slow(128), slow(256), 512, slow(1024)])
def test_every_query_is_compared_with_the_last_row(row_bits: int) -> None:
    generator = random.Random(row_bits)
    script, row = [(0, True)], 0
    expected: list[int | None] = [None]
    extremes = [0, 1, 1 << row_bits - 1, (1 << row_bits) - 1]
    for _ in range(200):
        bits = generator.choice([*extremes, generator.getrandbits(row_bits), row])
        load = generator.random() < 0.1
        script.append((bits, load))
        expected.append(None if load else (bits ^ row).bit_count())
        row = bits if load else row
    got = distances(Unit(row_bits), script)
    wrong = [place for place, want in enumerate(expected) if want not in (None, got[place])]
    assert not wrong, f"seed {row_bits}: cycles {wrong} of {len(script)}"


# --- the carry chains of a unit -------------------------------------------------------------------


PROOF = (
    "read_verilog -DNO_INCLUDES +/lattice/cells_sim_ecp5.v; read_rtlil cells.il;"
    " hierarchy -top cells; proc; flatten; opt_clean; design -save cells; design -reset;"
    " read_rtlil plain.il; hierarchy -top plain; proc; flatten; opt_clean;"
    " design -copy-from cells cells; equiv_make plain cells both; hierarchy -top both; opt_clean;"
    " equiv_simple; equiv_status -assert"
)


def prove_equal(row_bits: int, folder: Path) -> str:
    """Return Yosys' log. Raises ``ToolError`` if a unit is a different circuit on an ECP5."""
    for name, family in (("plain", "none"), ("cells", "ecp5")):
        platform: Any = SimpleNamespace(family=family)
        text = rtlil.convert(Unit(row_bits), name=name, platform=platform)
        assert ("CCU2C" in text) == (name == "cells")
        (folder / f"{name}.il").write_text(text)
    run_tool(YOSYS, ["-p", PROOF], folder, folder / "log", lambda _: None)
    return (folder / "log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("row_bits", [4, 64, 512])
def test_units_are_equal(
    row_bits: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    log = prove_equal(row_bits, tmp_path)
    (proven,) = re.findall(r"Of those cells (\d+) are proven and 0 are unproven", log)
    record_property("report", f"{row_bits} bits: {proven} bits of counts and registers are equal")
    assert int(proven) >= 3 * row_bits, "some have no name in common"


@pytest.mark.slow
def test_chains_of_512_bits_fill_tiles() -> None:
    """Chains take whole tiles of four cells, because no other chain could begin inside a tile."""
    platform: Any = SimpleNamespace(family="ecp5")
    text = rtlil.convert(Unit(512), platform=platform)
    assert text.count("cell \\CCU2C") == 400


WRONG = [
    *[("COMPARED", 0x6997), ("COUNTS", 0x6006), ("COUNTS", 0xE00A), ("COUNT", 0xC000)],
    *[("NEXT", 0x000A), ("NEXT", 0xF006), ("LAST", 0x8000)],
]
"""Names of tables in `additions`, each with a wrong value."""


@pytest.mark.slow
@pytest.mark.parametrize(("table", "wrong"), WRONG)
def test_a_wrong_table_shows(
    table: str, wrong: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(additions, table, wrong)
    with pytest.raises(ToolError, match="unproven"):
        prove_equal(16, tmp_path)
