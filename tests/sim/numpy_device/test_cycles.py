"""The counters and the recording that `numpy` predicts, beside those of the compiled circuit.

Beats are equal, cycles within a bound for each class, and stalls within a tenth of the cycles.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pytest

import bitlane
from bitlane.driver.commands import Command, Walk, encode
from bitlane.driver.driver import Driver
from bitlane.driver.dry_run import RecordingDriver
from bitlane.errors import LinkError
from bitlane.links.link import Link, open_link
from bitlane.profile.activity import RecordedCommand, busy_spans, ports, recorded_commands
from bitlane_rtl.abi import (
    CONTROL_BASE,
    RECORD_BYTES,
    REGISTERS,
    RING_OFFSET,
    WORD_BYTES,
    Lane,
    Op,
    register,
)
from bitlane_sim.campaigns import commands
from bitlane_sim.circuit_options import configuration_of
from bitlane_sim.device.link import open_link as open_circuit
from bitlane_sim.numpy_device.link import open_link as open_numpy
from support.commands import RandomCommands
from support.rtl.records import pack
from support.seeds import seeds, slow

COUNTERS = [each.name for each in REGISTERS if each.offset >= register("BUSY_CYCLES").offset]

NARROW, WIDE, ONE_PORT = "width=32", "width=128", "width=32&ports=1&memory=256KiB"

REGION = 8192


FAR = 4
"""Times as far as nine of ten predictions, which none may be off."""


class Beside:
    """A circuit and the model of it, which execute the same records."""

    def __init__(self, options: str, latency: int) -> None:
        self.options = f"{options}&latency={latency}".lstrip("&")
        self.configuration = configuration_of(f"sim?{options}".rstrip("?"))
        self.circuit = open_circuit(f"sim:compiled?{self.options}")
        self.model = open_numpy(f"numpy?{self.options}")
        self.index = 0

    def close(self) -> None:
        self.circuit.close()
        self.model.close()

    def write(self, offset: int, words: Sequence[int]) -> None:
        for link in (self.circuit, self.model):
            link.write(CONTROL_BASE + offset, np.array(words, "<u4"))

    def read(self, link: Link, name: str, words: int = 1) -> list[int]:
        address = CONTROL_BASE + register(name).offset
        found: list[int] = link.read(address, words * WORD_BYTES).view("<u4").tolist()
        return found

    def execute(self, records: Sequence[Sequence[int]]) -> tuple[dict[str, int], dict[str, int]]:
        """Submit ``records`` with one doorbell. Return the counters of both links."""
        self.write(register("COUNTERS_CLEAR").offset, [1])
        for words in records:
            slot = self.index % self.configuration.slots
            self.write(RING_OFFSET + slot * RECORD_BYTES, words)
            self.index += 1
        self.write(register("DOORBELL").offset, [self.index % (1 << 16)])
        for _ in range(20_000):
            self.circuit.simulator.step(50)
            if not self.read(self.circuit, "STATUS")[0] & 1:
                break
        circuit, model = (
            dict(zip(COUNTERS, self.read(link, COUNTERS[0], len(COUNTERS)), strict=True))
            for link in (self.circuit, self.model)
        )
        return circuit, model

    def expect(self, records: Sequence[Sequence[int]], share: float, cycles: int, by: str) -> bool:
        """Return whether busy cycles are within a ``share`` of them or ``cycles``.

        Expect equal beats, and busy cycles within `FAR` times that.
        """
        circuit, model = self.execute(records)
        shown = "\n".join(str([hex(word) for word in words]) for words in records)
        text = f"{by}, {self.options}\ncircuit {circuit}\nmodel   {model}\n{shown}"
        for name in ("A_BEATS", "B_BEATS", "Y_BEATS", "Y_STALLS"):
            assert circuit[name] == model[name], f"{name}: {text}"
        busy = circuit["BUSY_CYCLES"]
        bound = max(cycles, share * busy)
        off = abs(model["BUSY_CYCLES"] - busy)
        assert off <= FAR * bound, f"BUSY_CYCLES: {text}"
        for name in ("A_STALLS", "B_STALLS"):
            assert abs(model[name] - circuit[name]) <= max(4, 0.1 * busy), f"{name}: {text}"
        return bool(off <= bound)


def expect_most(near: Sequence[bool]) -> None:
    """Expect that nine of ten predictions are as near as the page of boards says."""
    assert near.count(False) <= len(near) // 10, f"{near.count(False)} of {len(near)} are far off"


@pytest.fixture
def pairs() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def opened(pairs: ExitStack, options: str = "", latency: int = 0) -> Beside:
    pair = Beside(options, latency)
    pairs.callback(pair.close)
    return pair


def draws(pair: Beside, *, fences: float, long: float = 0.3) -> RandomCommands:
    return RandomCommands(
        configuration=pair.configuration,
        size=REGION,
        b=REGION,
        fences=fences,
        long=long,
        runs=(1, 3, 8, 33, 100, 300),
        counts=(1, 2, 3, 8),
    )


CIRCUITS = [
    ("", 0),
    ("", 30),
    slow("", 100),
    slow("", 255),
    slow(NARROW, 0),
    slow(NARROW, 7),
    slow(WIDE, 0),
    slow(WIDE, 30),
]


@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize(("options", "latency"), CIRCUITS)
def test_a_command_alone(pairs: ExitStack, options: str, latency: int, seed: int) -> None:
    pair, chance = opened(pairs, options, latency), random.Random(seed)
    near = []
    for _ in range(60):
        record = pack(draws(pair, fences=0).draw(chance, 2 * REGION))
        near.append(pair.expect([record], 0.005, 1, f"seed {seed}"))
    expect_most(near)


@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize(("options", "latency"), CIRCUITS)
def test_a_job_of_commands(pairs: ExitStack, options: str, latency: int, seed: int) -> None:
    """Half of the commands have a FENCE in some jobs, and none has in the others."""
    pair, chance = opened(pairs, options, latency), random.Random(seed)
    near = []
    for _ in range(12):
        drawn = draws(pair, fences=chance.choice([0, 0.5]))
        count = chance.randint(2, pair.configuration.slots)
        records = [pack(drawn.draw(chance, 2 * REGION)) for _ in range(count)]
        near.append(pair.expect(records, 0.02, 2, f"seed {seed}"))
    expect_most(near)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_a_shared_read_port(pairs: ExitStack, seed: int) -> None:
    pair, chance = opened(pairs, ONE_PORT), random.Random(seed)
    near = []
    for _ in range(40):
        drawn = draws(pair, fences=0)
        record = pack(drawn.draw(chance, 2 * REGION))
        near.append(pair.expect([record], 0.005, 1, f"seed {seed}"))
    for _ in range(12):
        count = chance.randint(2, pair.configuration.slots)
        records = [pack(drawn.draw(chance, 2 * REGION)) for _ in range(count)]
        near.append(pair.expect(records, 0.01, 2, f"seed {seed}"))
    expect_most(near)


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
def test_the_speed_contract(pairs: ExitStack, options: str, latency: int) -> None:
    pair = opened(pairs, options, latency)
    for name, work in ROWS.items():
        records = [encode(command, interrupt=False).tolist() for command in work]
        pair.expect(records, 0.01, 2, name)


def test_a_job_of_the_driver() -> None:
    """More commands than the ring has slots, so that several doorbells overlap."""
    generator = np.random.default_rng(5)
    content = generator.integers(0, 256, (3, 40, 700), np.uint8)
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


def test_the_counters_are_cleared_by_their_own_register(pairs: ExitStack) -> None:
    pair = opened(pairs)
    record = encode(commands.logic(Op.NOT, 64), interrupt=False).tolist()
    circuit, model = pair.execute([record])
    # The record is fetched 3 cycles later than if it had been written long before.
    assert circuit["BUSY_CYCLES"] == model["BUSY_CYCLES"] == 25
    pair.write(register("CLEAR").offset, [1])
    pair.write(register("COUNTERS_CLEAR").offset, [0])
    assert pair.read(pair.model, "BUSY_CYCLES") == [25]
    pair.write(register("COUNTERS_CLEAR").offset, [1])
    assert pair.read(pair.model, "BUSY_CYCLES", 7) == [0] * 7


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
        recording = link.recording
        assert recording is not None
        return recorded_commands(recording)


def test_the_spans_of_commands_add_up_to_the_busy_cycles() -> None:
    with open_link("numpy?memory=64KiB&record=100") as link, Driver(link) as driver:
        run(driver)
        recording = link.recording
        assert recording is not None
        assert not recording.cut
        assert len(recorded_commands(recording)) == 4
        spans = busy_spans(recording)
        assert sum(end - first for first, end in spans) == driver.read_register("BUSY_CYCLES")
        assert ports(recording) == [], "no bus carries anything"


def test_a_job_that_does_not_fit_is_left_out_and_told() -> None:
    with open_link("numpy?memory=64KiB&record=9") as link, Driver(link) as driver:
        run(driver)
        recording = link.recording
        assert recording is not None
        assert recording.cut
        assert len(recorded_commands(recording)) == 1, "3 entries; the next job has 7"


def test_nothing_is_recorded_unless_asked_for() -> None:
    with open_link("numpy") as link:
        assert link.recording is None
    with pytest.raises(LinkError, match="option record: -1; expected 0 or more entries"):
        open_link("numpy?board=ulx3s&record=-1")


@pytest.mark.slow
def test_commands_start_and_retire_as_on_a_circuit() -> None:
    options = "memory=64KiB&loops=2&record=1000"
    model, circuit = recorded(f"numpy?{options}"), recorded(f"sim:pysim?{options}")
    for mine, other in zip(model, circuit, strict=True):
        assert mine.started - mine.submitted == other.started - other.submitted
        assert mine.end - mine.submitted == other.end - other.submitted
