"""The counters that `numpy` predicts, beside those of the compiled circuit and of boards' engines.

Beats are equal, cycles within a bound for each class, and stalls within a tenth of the cycles.
"""

import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import bitlane
from bitlane.driver import Command, Driver, RecordingDriver, Walk, encode
from bitlane.links import open_link
from bitlane.profile import RecordedCommand, busy_spans, ports, recorded_commands
from bitlane_boards import boards
from bitlane_rtl.abi import Lane, Op, register
from bitlane_sim import commands
from bitlane_sim.numpy_device import OneRam
from support.commands import RandomCommands
from support.rtl.records import pack
from support.seeds import seeds, slow
from support.sim.beside import PairedBoard, PairedLinks, Records, read_words

NARROW, WIDE, ONE_PORT = "width=32", "width=128", "width=32&ports=1&memory=256KiB"

REGION = 8192

FAR = 4
"""Times as far as nine of ten predictions, which none may be off."""

Paired = PairedLinks | PairedBoard


def is_near(pair: Paired, records: Records, share: float, cycles: int, by: str) -> bool:
    """Return whether busy cycles are within a ``share`` of them or ``cycles``.

    Expect equal beats, similar stalls, and busy cycles within `FAR` times that.
    """
    took, found = pair.execute(records)
    shown = "\n".join(str([hex(word) for word in words]) for words in records)
    text = f"{by}, {pair.options}\ncircuit {took}\nmodel   {found}\n{shown}"
    for name in pair.equal:
        assert getattr(took, name) == getattr(found, name), f"{name}: {text}"
    names, least = pair.stalls
    for name in names:
        off = abs(getattr(found, name) - getattr(took, name))
        assert off <= max(least, 0.1 * took.busy), f"{name}: {text}"
    bound = max(cycles, share * took.busy)
    assert abs(found.busy - took.busy) <= FAR * bound, text
    return abs(found.busy - took.busy) <= bound


def draws(pair: Paired, size: int = REGION, **more: float) -> RandomCommands:
    base, runs = pair.configuration.memory_base, (1, 3, 8, 33, 100, 300)
    drawn = RandomCommands(
        configuration=pair.configuration, size=size, fences=0, runs=runs, counts=(1, 2, 3, 8)
    )
    return replace(drawn, a=base, b=base + size, long=0.3, **more)


def jobs(pair: Paired, chance: random.Random, count: int, size: int = REGION) -> list[Records]:
    """Return jobs: half of the commands have a FENCE in some of them, and none in the others."""
    found: list[Records] = []
    for _ in range(count):
        drawn = draws(pair, size, fences=chance.choice([0, 0.5]))
        y, slots = pair.configuration.memory_base + 2 * size, pair.configuration.slots
        found.append([pack(drawn.draw(chance, y)) for _ in range(chance.randint(2, slots))])
    return found


def expect_most(near: Sequence[bool]) -> None:
    """Expect that nine of ten predictions are as near as the page of boards says."""
    assert near.count(False) <= len(near) // 10, f"{near.count(False)} of {len(near)} are far off"


@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize(
    ("options", "latency"),
    [
        *(("", 0), ("", 30), slow("", 100), slow("", 255), slow(NARROW, 0), slow(NARROW, 7)),
        *(slow(WIDE, 0), slow(WIDE, 30), slow(ONE_PORT, 0)),
    ],
)
def test_commands_and_jobs_take_what_they_do_on_the_circuit(
    options: str, latency: int, seed: int
) -> None:
    with closing(PairedLinks(options, latency)) as pair:
        chance, drawn, by = random.Random(seed), draws(pair), f"seed {seed}"
        alone = [[pack(drawn.draw(chance, 2 * REGION))] for _ in range(60)]
        expect_most([is_near(pair, job, 0.005, 1, by) for job in alone])
        share = 0.01 if options == ONE_PORT else 0.02
        expect_most(
            [is_near(pair, job, share, 2, by) for job in jobs(pair, random.Random(seed), 12)]
        )


_BOARDS = "ulx3s", "ulx3s-sdram", "colorlight-i5", "tangnano9k", "hx8k", "icebreaker"
"""A board for each pair of a circuit and a memory; the Ethernet board's chip has no masks."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 4))
@pytest.mark.parametrize("name", _BOARDS)
def test_commands_and_jobs_take_what_they_do_on_the_board(name: str, seed: int) -> None:
    """Short rows, gathered and scattered elements included, anywhere between two refreshes."""
    chance = random.Random(seed)
    with closing(PairedBoard(boards()[name], due=chance.randrange(20, 700))) as pair:
        circuit, by = pair.configuration, f"{name}, seed {seed}"
        size = min(REGION, circuit.memory_bytes // 4)
        drawn, y = draws(pair, size), circuit.memory_base + 2 * size
        for number in range(40):
            record = pack(drawn.draw(chance, y))
            assert is_near(pair, [record], 0.05, 2, f"{by}, command {number}")
        share = 0.05 if isinstance(pair.memory, OneRam) else 0.02
        near = [is_near(pair, job, share, 2, by) for job in jobs(pair, chance, 10, size)]
        assert near.count(False) <= 2, f"{by}: {near}"


_SEARCHES = [(1, 1), (6, 2), (24, 3), (64, 1), (64, 3), (500, 20), (1000, 64)]
"""Rows and queries."""


@pytest.mark.slow
def test_searches_of_random_rows() -> None:
    """Hits are taken from their chance, so the mean of several contents is expected."""
    options = "memory=4MiB&search=3,128,64,8"
    with (
        bitlane.open(f"sim:compiled?{options}") as simulated,
        bitlane.open(f"numpy?{options}") as model,
    ):
        for rows, queries in _SEARCHES:
            took, found = (
                [_search(each, rows, queries, seed) for seed in range(8)]
                for each in (simulated, model)
            )
            assert [each[1:] for each in took] == [each[1:] for each in found]
            mean = sum(each[0] for each in took) / len(took)
            assert found[0][0] == pytest.approx(mean, rel=0.02), f"{rows} rows, {queries} queries"


def _search(device: bitlane.Device, rows: int, queries: int, seed: int) -> list[int]:
    """Return the busy cycles of a search, and the beats of each port."""
    content = np.random.default_rng(seed).integers(0, 256, (rows + queries, 16), np.uint8)
    device.driver.clear_counters()
    device.search(content[:queries], content[queries:], 2)
    counters = device.driver.counters()
    return [counters[name] for name in ("BUSY_CYCLES", "A_BEATS", "B_BEATS", "Y_BEATS")]


ROWS: dict[str, Sequence[Command]] = {
    "64 KiB NOT": [commands.logic(Op.NOT, 1 << 16)],
    "64 KiB XOR": [commands.logic(Op.XOR, 1 << 16)],
    "64 B NOT": [commands.logic(Op.NOT, 64)],
    "queued NOT": commands.queue(Op.NOT, 12, 64),
    "queued XOR": commands.queue(Op.XOR, 12, 64),
    "queued NOT, Y at odd bytes": commands.queue(Op.NOT, 12, 64, y=1),
    "queued NOT, A at odd bytes": commands.queue(Op.NOT, 12, 64, a=1),
    "rows at odd addresses": [commands.rows(256)],
    "rows at odd addresses, XOR": [commands.rows(256, Op.XOR)],
    "gather": [commands.gather(4096)],
    "scatter": [commands.scatter(4096)],
    "COUNT that widens": [commands.count(Lane.BITS_8, Lane.BITS_32, 1 << 16)],
    "COUNT that narrows": [commands.count(Lane.BITS_64, Lane.BITS_8, 1 << 16)],
    "rows against one": [commands.against_one(256, 256)],
    "pairs of rows": [commands.pairs(256, 256)],
    "odd pairs of rows": [commands.odd_pairs(256, 255)],
    "short rows against one": [commands.against_one(1024, 8)],
    "whether arrays are equal": [commands.array_equal(1 << 16)],
}
"""The work of the speed contract, by `bitlane_sim.bench.contract`."""


@pytest.mark.parametrize(
    ("options", "latency"), [("", 0), slow("", 30), slow(NARROW, 0), slow(WIDE, 0)]
)
def test_the_speed_contract(options: str, latency: int) -> None:
    with closing(PairedLinks(options, latency)) as pair:
        for name, work in ROWS.items():
            is_near(pair, [encode(x, interrupt=False).tolist() for x in work], 0.01, 2, name)


def test_a_job_of_the_driver() -> None:
    """More commands than the ring has slots, so that several doorbells overlap."""
    content = np.random.default_rng(5).integers(0, 256, (3, 40, 700), np.uint8)
    busy = []
    for url in ("sim:compiled", "numpy"):
        with bitlane.open(url) as device:
            a, b, c = map(device.asarray, content)
            device.driver.clear_counters()
            bitlane.compute(*((a[k, k:] ^ b[k, k:]) & c[k, : 700 - k] for k in range(40)))
            busy.append(device.driver.counters())
    circuit, model = busy
    for name in ("A_BEATS", "B_BEATS", "Y_BEATS"):
        assert circuit[name] == model[name] > 0
    assert model["BUSY_CYCLES"] == pytest.approx(circuit["BUSY_CYCLES"], rel=0.02)


def test_the_counters_are_cleared_by_their_own_register() -> None:
    with closing(PairedLinks()) as pair:
        counters = register("BUSY_CYCLES").offset
        circuit, model = pair.execute(
            [encode(commands.logic(Op.NOT, 64), interrupt=False).tolist()]
        )
        # The record is fetched 3 cycles later than if it had been written long before.
        assert circuit.busy == model.busy == 25
        pair.write(register("CLEAR").offset, 1)
        pair.write(register("COUNTERS_CLEAR").offset, 0)
        assert read_words(pair.model, counters) == [25]
        pair.write(register("COUNTERS_CLEAR").offset, 1)
        assert read_words(pair.model, counters, 7) == [0] * 7


# --- the recording of numpy -----------------------------------------------------------------------


def run(driver: Driver) -> None:
    """Run two jobs, of one command and of three."""
    base = driver.geometry.memory_base
    driver.write(base, np.arange(1024, dtype=np.uint8))

    def walk(offset: int, run: int) -> Walk:
        return Walk(base + offset, base + offset + run - 1)

    commands = [
        Command(op, Lane.BITS_8, Lane.BITS_8, run, walk(0, run), walk(256, run), walk(1024, run))
        for op, run in ((Op.XOR, 250), (Op.AND, 64), (Op.OR, 33))
    ]
    driver.run(commands[:1])
    driver.run(commands)


def recorded(url: str) -> list[RecordedCommand]:
    with open_link(url) as link, RecordingDriver(link) as driver:
        run(driver)
        assert link.recording is not None
        return recorded_commands(link.recording)


def test_nothing_is_recorded_unless_asked_for() -> None:
    with open_link("numpy") as link:
        assert link.recording is None


@pytest.mark.parametrize(("room", "count"), [(100, 4), (9, 1)])
def test_a_job_that_does_not_fit_is_left_out_and_told(room: int, count: int) -> None:
    """The spans of commands add up to the busy cycles; 3 entries, and the next job has 7."""
    with open_link(f"numpy?memory=64KiB&record={room}") as link, Driver(link) as driver:
        run(driver)
        recording = link.recording
        assert recording is not None
        assert recording.cut == (room == 9)
        assert len(recorded_commands(recording)) == count
        if not recording.cut:
            spans = busy_spans(recording)
            assert sum(end - first for first, end in spans) == driver.read_register("BUSY_CYCLES")
            assert ports(recording) == [], "no bus carries anything"


@pytest.mark.slow
def test_commands_start_and_retire_as_on_a_circuit() -> None:
    options = "memory=64KiB&loops=2&record=1000"
    model, circuit = recorded(f"numpy?{options}"), recorded(f"sim:pysim?{options}")
    for mine, other in zip(model, circuit, strict=True):
        assert mine.started - mine.submitted == other.started - other.submitted
        assert mine.end - mine.submitted == other.end - other.submitted
