"""The sequencer starts or refuses each record once, in order, as the record demands.

The expected command or code comes from `support.record`, which takes words apart by `abi`.
"""

import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pytest
from amaranth.hdl import Value

from bitlane_rtl.abi import RECORD_WORDS, Lane, Mode, Op, Status
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.control import Sequencer, ring_columns
from support.commands import logic
from support.record import Record, random_record
from support.rtl.records import Task, pack
from support.rtl.streams import Resettable, compiled, simulate
from support.rtl.walks import Walk
from support.seeds import slow, stride

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

OPERATION = ("op", "lane", "out_lane", "saturate", "arithmetic", "test", "negate")
"""Fields of CONTROL that the data path gets unaltered."""


@dataclass
class Outcome:
    """The outcome of a record: the ``command`` that was started, or the ``code`` of a refusal."""

    cycle: int
    command: dict[str, Any] | None = None
    code: int | None = None


def expected_command(words: list[int], configuration: Configuration) -> dict[str, Any]:
    """Return the fields of the command that a valid record must start, by name."""
    record = Record(words)
    control, op = record.control, Op(record.op)
    y_dense = control["Y_MODE"] == Mode.DENSE and op is not Op.SEARCH
    told: dict[str, Any] = {
        "operation": [*(control[name.upper()] for name in OPERATION), record.sums],
        "interrupt": control["INTERRUPT"],
        "reads_b": op.reads_b,
        "counts": [(count - 2) % (2 << configuration.count_bits) for count in record.counts],
        "plain": record.loops == 1 and Mode.STRIDED not in record.modes,
        "form": {
            "lane": record.lane,
            "out_lane": record.out_lane,
            "widens": record.lane < record.out_lane,
            "ratio": abs(record.lane - record.out_lane),
            "y_dense": y_dense,
            "searches": op is Op.SEARCH,
        },
    }
    if Mode.STRIDED in record.modes:
        told["run"] = (record.run - 2) % (2 << configuration.length_bits)
    offset = record.word("Y_BASE") % configuration.data_bytes if y_dense else 0
    for name in record.streams:
        run = (1 if record.mode(name) is Mode.SUM else record.run) * record.size(name)
        if op is Op.SEARCH and name != "A":
            run = record.word(f"{name}_LAST") - record.word(f"{name}_BASE") + 1
        told[name] = {
            "address": record.word(f"{name}_BASE"),
            "offset": offset,
            "lane_offset": offset * record.lane.bytes // record.out_lane.bytes,
            "extent": run - 1,
            "mode": record.mode(name),
        }
        told[f"{name} jumps"] = [jump % (1 << 32) for jump in record.jumps(name)]
        if record.mode(name) is Mode.STRIDED:
            told[f"{name} stride"] = record.word(f"{name}_STRIDE")
    return told


class Bench:
    """Host, ring and data path of a sequencer; they stall in a cycle with probability ``pause``.

    The host keeps the ring's rules but makes full use of them: it writes the words of a record into
    a free slot in any order and with pauses, while earlier records wait or run.
    """

    def __init__(
        self, configuration: Configuration, generator: random.Random, pause: float = 0.0
    ) -> None:
        self.configuration = configuration
        self._circuit = compiled(Resettable, Sequencer, configuration)
        self.dut, self._flush = self._circuit.dut, self._circuit.reset
        self.generator = generator
        self.pause = pause
        self.cycle = 0
        self._columns = ring_columns(configuration)
        self._ring = [generator.getrandbits(32) for _ in range(configuration.slots * RECORD_WORDS)]
        self._restart()

    def _restart(self) -> None:
        self.outcomes: list[Outcome] = []
        self.rings: list[int] = []
        """Cycles in which DOORBELL was written."""
        self._accesses: deque[tuple[int | None, int]] = deque()
        """Planned writes of the host: address in the ring, or None for DOORBELL; value."""
        self._late: tuple[int, int] | None = None
        """The write that reaches the ring in this cycle, one cycle after the host's access."""
        self._read = 0
        self._doorbell = self._running = self._walk = 0
        self._offered: int | None = None
        self._loops = 0

    def simulate(self, host: Callable[[Any], Awaitable[None]]) -> None:
        simulate(self._circuit, host, deadline=60_000)

    async def clear(self, ctx: Any) -> None:
        """Reset the bench, as CLEAR does; the ring retains its words."""
        for signal in (self.dut.ring_write, self.dut.doorbell_write, self.dut.doorbell):
            ctx.set(signal, 0)
        ctx.set(self._flush, 1)
        await ctx.tick()
        ctx.set(self._flush, 0)
        self._restart()

    def write(self, index: int, words: list[int]) -> None:
        """Plan the writes of record ``index``."""
        first = index % self.configuration.slots * RECORD_WORDS
        used = range(Record(words).used)
        order = self.generator.sample(used, len(used)) if self.pause else used
        self._accesses.extend((first + word, words[word]) for word in order)

    def change(self, index: int, word: int, value: int) -> None:
        """Plan the write of one word of record ``index``."""
        first = index % self.configuration.slots * RECORD_WORDS
        self._accesses.append((first + word, value))

    def ring(self, count: int) -> None:
        """Plan to submit all records up to number ``count``."""
        self._accesses.append((None, count))

    async def wait(self, ctx: Any, cycles: int) -> None:
        for _ in range(cycles):
            await self.tick(ctx)

    async def finish(self, ctx: Any, count: int) -> None:
        """Advance until ``count`` records have been started, or one has been refused."""
        while len(self.outcomes) < count and not self._stopped:
            await self.tick(ctx)

    async def execute(self, ctx: Any, records: list[list[int]]) -> list[Outcome]:
        """Submit ``records``; return their outcomes, up to the first one that is refused.

        The host writes each record as soon as its slot is free, perhaps before the doorbell of the
        record before it.
        """
        written = 0
        while len(self.outcomes) < len(records) and not self._stopped:
            retired = len(self.outcomes) - self._running
            room = written < min(len(records), retired + self.configuration.slots)
            if room and len(self._accesses) < RECORD_WORDS:
                self._submit(written, records[written])
                written += 1
            await self.tick(ctx)
        return self.outcomes

    def _submit(self, index: int, words: list[int]) -> None:
        """Plan a record and its doorbell; delay the doorbell before it to a random position."""
        planned = len(self._accesses)
        self.write(index, words)
        if self.pause and planned:
            doorbell = self._accesses[planned - 1]
            del self._accesses[planned - 1]
            place = self.generator.randrange(planned - 1, len(self._accesses) + 1)
            self._accesses.insert(place, doorbell)
        self.ring(index + 1)

    @property
    def _stopped(self) -> bool:
        return bool(self.outcomes) and self.outcomes[-1].code is not None

    async def tick(self, ctx: Any) -> None:
        """Advance host, ring and data path by one cycle."""
        dut, generator = self.dut, self.generator
        waits = not self._accesses or generator.random() < self.pause
        address, value = (None, 0) if waits else self._accesses.popleft()
        rings = not waits and address is None
        ctx.set(dut.ring_write, self._late is not None)
        ctx.set(dut.doorbell, self._doorbell)
        ctx.set(dut.doorbell_write, rings)
        ctx.set(dut.doorbell_data, value if rings else generator.getrandbits(16))
        ctx.set(dut.idle, not self._running)
        ctx.set(dut.walking, self._walk > 0)
        ctx.set(dut.o.ready, generator.random() >= self.pause)
        self._note(ctx)
        if ctx.get(dut.ring.enable):
            self._read = self._group(ctx.get(dut.ring.address))
        await ctx.tick()
        ctx.set(dut.ring.words, self._read)
        if self._late is not None:
            self._ring[self._late[0]] = self._late[1]
        self._late = None if address is None else (address, value)
        if rings:
            self._doorbell = value
            self.rings.append(self.cycle)
        self.cycle += 1

    def _group(self, address: int) -> int:
        """Return the ring's words at ``address`` in this cycle, random while they are written."""
        first = address * self._columns
        if self._late is not None and first <= self._late[0] < first + self._columns:
            return self.generator.getrandbits(32 * self._columns)
        words = self._ring[first : first + self._columns]
        return sum(word << 32 * column for column, word in enumerate(words))

    def _note(self, ctx: Any) -> None:
        """Record a start or a refusal, and let commands end."""
        dut = self.dut
        valid, refused = ctx.get(dut.o.valid), ctx.get(dut.refused)
        assert not (valid and refused), f"cycle {self.cycle}: both started and refused"
        early = (valid or refused) and self._doorbell == len(self.outcomes)
        assert not early, f"cycle {self.cycle}: before its doorbell"
        payload = ctx.get(Value.cast(dut.o.payload))
        assert self._offered in (None, payload), f"cycle {self.cycle}: another command is offered"
        assert valid or self._offered is None, f"cycle {self.cycle}: the command is withdrawn"
        loops = ctx.get(Value.cast(dut.loops))
        assert not self._walk or loops == self._loops, f"cycle {self.cycle}: loops change"

        self._walk = max(0, self._walk - 1)
        if self._running and not self._walk and self.generator.random() < 0.1:
            self._running -= 1
        self._offered = None
        if refused:
            assert ctx.get(dut.idle), f"cycle {self.cycle}: refused before all others have retired"
            self.outcomes.append(Outcome(self.cycle, code=ctx.get(dut.code)))
        elif valid and not ctx.get(dut.o.ready):
            self._offered = payload
        elif valid:
            self.outcomes.append(Outcome(self.cycle, command=self._command(ctx)))
            self._running += 1
            self._walk = self.generator.choice([1, 5, 30])
            self._loops = loops

    def _command(self, ctx: Any) -> dict[str, Any]:
        """Return the fields of the offered command, by the names of `expected_command`."""
        command, loops = ctx.get(self.dut.o.payload), ctx.get(self.dut.loops)
        told = {
            "operation": [command.operation[name] for name in (*OPERATION, "sums")],
            "interrupt": ctx.get(self.dut.interrupt),
            "reads_b": command.reads_b,
            "run": loops.run,
            "plain": command.plain,
            "form": {key: command.form[key] for key in command.form.shape().members},
            "alone": ctx.get(self.dut.idle),
        }
        in_use = command.loops
        told["counts"] = list(loops.counts)[:in_use]
        for name in "ABY":
            start, track = command[name.lower()], loops[name.lower()]
            told[name] = {key: start[key] for key in start.shape().members}
            told[f"{name} jumps"] = list(track.jumps)[:in_use]
            told[f"{name} stride"] = track.stride
        return told


def check(outcome: Outcome, words: list[int], configuration: Configuration, told: str) -> None:
    """Compare the outcome of a record with the command or the code that the contract requires."""
    words = words + [0] * (RECORD_WORDS - len(words))
    status = Record(words).refusal(configuration)
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
    """Execute jobs of random records and check the outcome of each record."""
    generator = random.Random(seed)
    bench = Bench(configuration, generator, pause)
    ended = {"started": 0, "refused": 0}

    async def host(ctx: Any) -> None:
        for job in range(40 // stride(2)):
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
    assert min(ended.values()) > 30 // stride(2), str(ended)


@pytest.mark.parametrize(("width", "columns"), [(32, 1), (64, 2), (128, 4)])
def test_the_ring_is_read_a_beat_at_a_time_and_at_most_128_bits(width: int, columns: int) -> None:
    assert ring_columns(replace(MEMORY, data_width=width)) == columns


def test_a_word_written_around_the_start_before_it_is_seen(width: int) -> None:
    """One word of a prefetched record changes, in every cycle of the start of the record before."""
    bench = Bench(replace(MEMORY, data_width=width), random.Random(0))

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


@pytest.mark.parametrize("words", [NOT, XOR, ROWS], ids=["NOT", "XOR", "ROWS"])
def test_a_record_fetched_ahead_starts_in_the_cycle_after_its_doorbell(
    words: list[int], width: int
) -> None:
    bench = Bench(replace(MEMORY, data_width=width), random.Random(0))

    async def host(ctx: Any) -> None:
        bench.write(0, words)
        await bench.wait(ctx, 70)
        bench.ring(1)
        await bench.finish(ctx, 1)

    bench.simulate(host)
    assert bench.outcomes[0].cycle == bench.rings[0] + 1


@pytest.mark.parametrize("words", [NOT, XOR, ROWS, REFUSED])
def test_a_fetch_takes_four_cycles_and_one_for_each_group(words: list[int], width: int) -> None:
    """Count from the last write to the ring, in the doorbell's cycle, to the start or refusal."""
    bench = Bench(replace(MEMORY, data_width=width), random.Random(0))

    async def host(ctx: Any) -> None:
        await bench.execute(ctx, [words])

    bench.simulate(host)
    groups = -(-len(words) // (width // 32))
    assert bench.outcomes[0].cycle == bench.rings[0] + 4 + groups


@pytest.mark.parametrize("words", [NOT, XOR])
@pytest.mark.parametrize("slots", [8, slow(16)])
def test_a_command_every_two_cycles_and_one_for_each_group(
    words: list[int], width: int, slots: int
) -> None:
    bench = Bench(replace(MEMORY, data_width=width, slots=slots), random.Random(0))
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
