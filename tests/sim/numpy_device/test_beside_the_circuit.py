"""The device `numpy` and the compiled circuit get the same accesses, and answer the same.

Compared are all registers but the counters, all completions, the interrupt line, and the memory
that commands may touch. What the contract leaves open is not compared: the bytes of a command that
stopped on its way, and which of two streams that leave the memory in one run stopped it.

Cycles are predicted on the memories of boards, in whichever rows of a chip the streams are.
"""

import random
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from bitlane.driver import encode
from bitlane_boards import boards
from bitlane_boards.board import MemoryKind
from bitlane_boards.pins.sdram_rows import CLOCK_HZ, logic
from bitlane_boards.predicted import predicted_boards
from bitlane_rtl.abi import COMPLETION_OFFSET, REGISTERS, Lane, Op, Status, register
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.configurations import full
from bitlane_rtl.sdram_part import AS4C16M16SA_7, EM638325_6H, SdramPart, SdramTiming
from bitlane_sim.bench.sram import three_streams
from bitlane_sim.commands import move
from bitlane_sim.fields import Fields, Limits, refusals
from bitlane_sim.numpy_device import (
    CommandShape,
    CounterValues,
    Memory,
    OneRam,
    PredictedCounters,
    RamBanks,
    RowSets,
    SdramRows,
    shape_of,
)
from support.commands import RandomCommands
from support.record import random_record
from support.rtl.records import pack
from support.seeds import seeds, slow
from support.sim.beside import EARLIER, PairedLinks, raw_record, read_words, submit
from support.system.devices import noise

pytestmark = pytest.mark.any_face

NARROW, WIDE = "width=32&ports=1&memory=256KiB", "width=128"

SHARED = 2048
A, B, Y = 0, SHARED, 2 * SHARED

_COMPARED = [each for each in REGISTERS if each.offset < register("COUNTERS_CLEAR").offset]


class Pair(PairedLinks):
    """A circuit and the model of it, with the same bytes in the memory that is used."""

    def __init__(self, options: str, seed: int) -> None:
        super().__init__(options)
        self.chance = random.Random(seed)
        self.log.append(f"seed {seed}, {options}")
        self.used = (2 + self.configuration.slots) * SHARED
        content = noise(self.used, self.chance.getrandbits(32))
        for link in self.links:
            link.write(0, content)

    def register(self, name: str) -> int:
        return read_words(self.circuit, register(name).offset)[0]

    def settle(self) -> None:
        """Let the circuit end what it does: until it is idle, or has stopped and is drained."""
        status = register("STATUS")
        for _ in range(1000):
            self.circuit.simulator.step(50)
            now = self.register("STATUS")
            ended = not status["BUSY"].extract(now) or status["FAULT"].extract(now)
            if ended and status["DRAINED"].extract(now):
                return
        raise AssertionError(f"the circuit does not end:\n{self.replay}")

    @property
    def replay(self) -> str:
        return "\n".join(self.log[-40:])

    def compare(self) -> None:
        """Compare what is to be compared after `settle`."""
        slots = self.configuration.slots
        for entry in _COMPARED:
            found = [read_words(link, entry.offset)[0] for link in self.links]
            assert found[0] == found[1], (
                f"{entry.name}: {found[0]:#x} of the circuit, {found[1]:#x}\n{self.replay}"
            )
        completions = [read_words(link, COMPLETION_OFFSET, slots) for link in self.links]
        assert completions[0] == completions[1], self.replay
        lines = [link.wait(0) for link in self.links]
        assert lines[0] == lines[1], f"interrupt line: {lines}\n{self.replay}"
        memories = [link.read(0, self.used) for link in self.links]
        different = np.flatnonzero(memories[0] != memories[1])
        assert not different.size, f"bytes {different[:8]} differ\n{self.replay}"

    def clear(self) -> None:
        self.write(register("CLEAR").offset, 1)
        self.settle()
        self.index = 0


def refused(pair: Pair) -> list[int]:
    """Return a record that the circuit refuses."""
    while True:
        words = random_record(pair.chance, pair.configuration)
        if refusals(Fields(words), Limits.of(pair.configuration)) != Status.OK:
            return words


def chain(pair: Pair) -> None:
    """Submit some commands, by one doorbell or several; at times the last one is refused."""
    chance, slots = pair.chance, pair.configuration.slots
    count = chance.randint(1, slots)
    draws = RandomCommands(
        configuration=pair.configuration, size=SHARED, a=A, b=B, fences=0.3, interrupts=0.3
    )
    records = [pack(draws.draw(chance, Y + number * SHARED)) for number in range(count)]
    if chance.random() < 0.4:
        records[chance.randrange(count)] = refused(pair)
    for number, words in enumerate(records):
        pair.fill(words, ring=chance.random() < 0.2 or number == count - 1)
    pair.settle()


def bad_doorbell(pair: Pair) -> None:
    """Ring with a number that is too far ahead, or behind."""
    slots = pair.configuration.slots
    ahead = pair.chance.choice([slots + 1, -1, 1 << 15, pair.chance.randint(slots + 1, 65535)])
    pair.write(register("DOORBELL").offset, (pair.index + ahead) % (1 << 16))
    pair.settle()


def any_register(pair: Pair) -> None:
    """Write some word to a register, or where there is none; those that start something apart."""
    started = {register(name).offset for name in ("DOORBELL", "CLEAR", "TIMEOUT")}
    offset = pair.chance.choice([each.offset for each in REGISTERS] + [0x5C, 0xFFC, 0x1000, 0x3FFC])
    if offset not in started:
        pair.write(offset, pair.chance.getrandbits(32))


def timeout(pair: Pair) -> None:
    pair.write(register("TIMEOUT").offset, pair.chance.choice([0, 1 << 16, (1 << 32) - 1]))


def drive(pair: Pair, steps: int) -> None:
    acts = [chain, chain, chain, bad_doorbell, any_register, any_register, timeout]
    for _ in range(steps):
        pair.chance.choice(acts)(pair)
        pair.compare()
        stopped = register("STATUS")["FAULT"].extract(pair.register("STATUS"))
        if stopped and pair.chance.random() < 0.7:
            pair.clear()
            pair.compare()


def leaving(pair: Pair, stream: str) -> list[int]:
    """Return the record of a command of which ``stream`` alone leaves the memory, on its way."""
    chance, end = pair.chance, pair.configuration.memory_last + 1
    draws = RandomCommands(configuration=pair.configuration, size=SHARED, a=A, b=B, fences=0)
    while True:
        task = draws.draw(chance, Y)
        walk = {"A": task.a, "B": task.b, "Y": task.y}[stream]
        if walk is None:
            continue
        touched = list(walk.bytes())
        shift = chance.choice([end - chance.choice(touched), -chance.choice(touched)])
        # Alignment stays as it was.
        walk.base += shift // 8 * 8
        low, high = min(walk.bytes()), max(walk.bytes())
        if 0 <= walk.base < end and (low < 0 or high >= end):
            task.overrides[f"{stream}_LAST"] = end - 1
            return pack(task)


@pytest.mark.parametrize("seed", seeds(1, 6))
@pytest.mark.parametrize("options", [NARROW, *map(slow, ["", WIDE])])
@pytest.mark.parametrize("stream", "ABY")
def test_a_stream_that_leaves_the_memory_stops_both_alike(
    options: str, stream: str, seed: int
) -> None:
    with closing(Pair(options, seed)) as pair:
        for _ in range(12):
            before = pair.circuit.read(0, pair.used)
            pair.fill(leaving(pair, stream), ring=True)
            pair.settle()
            code = register("FAULT")["CODE"].extract(pair.register("FAULT"))
            assert code == Status.PAST_MEMORY
            # Which bytes the circuit has written before, nobody promises.
            pair.circuit.write(0, before)
            pair.compare()
            pair.clear()


@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize("options", ["", NARROW, *[slow(WIDE)]])
def test_any_accesses_have_the_same_results(options: str, seed: int) -> None:
    with closing(Pair(options, seed)) as pair:
        drive(pair, 40)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1000, 1006))
@pytest.mark.parametrize("options", ["", NARROW, WIDE])
def test_a_hundred_thousand_records(options: str, seed: int) -> None:
    """A step submits 3.6 records on average, so that all cases together submit over 100,000."""
    with closing(Pair(options, seed)) as pair:
        drive(pair, 1600)


each_part = pytest.mark.parametrize(
    "part", [AS4C16M16SA_7, EM638325_6H], ids=lambda part: part.name
)


def circuit_of(width: int) -> Configuration:
    return replace(full(width), memory_bytes=1 << 20)


def predicted(width: int, op: Op, size: int, memory: Memory) -> CounterValues:
    """Return the counters of ``op`` on ``size`` bytes, operands and output behind each other."""
    command = move(op, size, 0, size if op.reads_b else None, 2 * size)
    counters = PredictedCounters(circuit_of(width), memory)
    return submit(counters, [encode(command).tolist()], EARLIER)


@pytest.mark.slow
@each_part
@pytest.mark.parametrize("op", [Op.XOR, Op.NOT], ids=["XOR", "NOT"])
@pytest.mark.parametrize("size", [1 << 14, 1 << 16, 1 << 18])
def test_streams_on_sdram_take_what_the_circuit_does(part: SdramPart, op: Op, size: int) -> None:
    took = logic(64, op, size, part).cycles
    found = predicted(64, op, size, SdramRows(part=part, clock_hz=CLOCK_HZ)).busy
    assert abs(found / took - 1) <= 0.02, f"{found} predicted, {took} on the circuit"


@pytest.mark.slow
@pytest.mark.parametrize("width", [32, 64])
def test_streams_on_one_port_take_what_the_circuit_does(width: int) -> None:
    took = (1 << 14) // (width // 8) / three_streams(width, "compiled")
    found = predicted(width, Op.XOR, 1 << 14, OneRam()).busy
    assert abs(found / took - 1) <= 0.01, f"{found} predicted, {took:.0f} on the circuit"


@pytest.mark.parametrize("name", boards())
def test_the_memory_of_a_prediction_is_that_of_the_board(name: str) -> None:
    board, memory = boards()[name], predicted_boards()[name].memory
    if board.memory is MemoryKind.SDRAM:
        assert isinstance(memory, SdramRows)
        assert (memory.part, memory.clock_hz) == (board.sdram, board.clock_hz)
        assert memory.shared
    elif board.memory is MemoryKind.BANKS:
        assert memory == RamBanks(banks=board.banks)
    else:
        assert memory == OneRam()


@each_part
def test_the_first_beat_of_a_closed_row_has_the_latency_of_the_controller(part: SdramPart) -> None:
    """`SdramMemory`: ``cas + words + 8``, and tRCD because the row is closed."""
    timing = SdramTiming.of(part, CLOCK_HZ)
    words = 64 // part.width
    found = predicted(64, Op.NOT, 8, SdramRows(part=part, clock_hz=CLOCK_HZ))
    latency = timing.cas + words + 8 + timing.activate_to_access
    assert found.a_stalls == latency - 1


def test_a_refresh_delays_what_begins_behind_it() -> None:
    timing = SdramTiming.of(AS4C16M16SA_7, CLOCK_HZ)
    early, late = (
        predicted(64, Op.NOT, 64, SdramRows(part=AS4C16M16SA_7, clock_hz=CLOCK_HZ, due=due)).busy
        for due in (1, 700)
    )
    assert 0 < early - late <= timing.precharge + timing.refresh_cycle + 2


@pytest.mark.parametrize("op", [Op.XOR, Op.NOT], ids=["XOR", "NOT"])
def test_streams_of_one_ram_take_turns(op: Op) -> None:
    ideal, one = predicted(64, op, 1 << 12, Memory()), predicted(64, op, 1 << 12, OneRam())
    assert one.beats <= one.busy <= one.beats + ideal.busy - 512
    assert one.y_stalls > ideal.y_stalls == 0


def test_readers_in_one_bank_take_turns() -> None:
    """The second of two streams that begin in one bank is a block behind in two banks."""
    ideal, one, two = (
        predicted(64, Op.XOR, 1 << 12, memory).busy
        for memory in (Memory(), RamBanks(banks=1), RamBanks(banks=2))
    )
    assert one >= 2 * 512
    assert ideal < two <= ideal + 16 + 2


# --- row sets -------------------------------------------------------------------------------------

SET = 4096
"""Bytes of a row set of both chips."""

REGION = 2048
"""Half a row set, so that streams often share rows."""


class WhereTheyAre(SdramRows):
    """A chip whose jobs are predicted in the rows in which they are."""

    @property
    def row_set(self) -> int:
        return 0


def circuit() -> Configuration:
    return replace(circuit_of(64), search=Search(units=4, row_bits=64, queries=16, nearest=4))


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
    fields = {"OP": Op.SEARCH, "LANE": Lane.BITS_8, "OUT_LANE": Lane.BITS_32, "LOOPS": 1}
    bounds = {"A_LAST": (1 << 20) - 1, "B_LAST": b + 7, "Y_LAST": y + 31}
    return raw_record(fields, RUN=256, A_BASE=a, B_BASE=b, Y_BASE=y, **bounds)


def xor(a: int, b: int, y: int, size: int = 1024) -> CommandShape:
    words = encode(move(Op.XOR, size, a, b, y)).tolist()
    return shape_of(words, AS4C16M16SA_7.size)


def renumbered(*shapes: CommandShape, used: int = 0) -> list[CommandShape]:
    sets = RowSets(shapes, SET, used)
    return [sets.renumbered(shape) for shape in shapes]


@pytest.mark.parametrize("seed", seeds(1, 2))
@each_part
def test_a_job_takes_what_it_does_where_it_is(part: SdramPart, seed: int) -> None:
    chance = random.Random(seed)
    shared, apart = (
        PredictedCounters(circuit(), kind(part=part, clock_hz=100_000_000))
        for kind in (SdramRows, WhereTheyAre)
    )
    for number in range(40):
        job = drawn(chance)
        assert submit(shared, job) == submit(apart, job), f"seed {seed}, job {number}"


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


@each_part
def test_a_row_set_is_that_of_the_chip(part: SdramPart) -> None:
    assert SdramRows(part=part, clock_hz=100_000_000).row_set == SET
