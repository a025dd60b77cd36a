"""The device `numpy` and the compiled circuit get the same accesses, and answer the same.

Compared are all registers but the counters, all completions, the interrupt line, and the memory
that commands may touch. What the contract leaves open is not compared: the bytes of a command that
stopped on its way, and which of two streams that leave the memory in one run stopped it.
"""

import random
from contextlib import closing

import numpy as np
import pytest

from bitlane_rtl.abi import COMPLETION_OFFSET, REGISTERS, Status, register
from bitlane_sim.fields import Fields, Limits, refusals
from support.commands import RandomCommands
from support.record import random_record
from support.rtl.records import pack
from support.seeds import seeds, slow
from support.sim.beside import PairedLinks, read_words
from support.system.devices import noise

pytestmark = pytest.mark.any_face

NARROW, WIDE = "width=32&ports=1&memory=256KiB", "width=128"

REGION = 2048
A, B, Y = 0, REGION, 2 * REGION

_COMPARED = [each for each in REGISTERS if each.offset < register("COUNTERS_CLEAR").offset]


class Pair(PairedLinks):
    """A circuit and the model of it, with the same bytes in the memory that is used."""

    def __init__(self, options: str, seed: int) -> None:
        super().__init__(options)
        self.chance = random.Random(seed)
        self.log.append(f"seed {seed}, {options}")
        self.used = (2 + self.configuration.slots) * REGION
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
        configuration=pair.configuration, size=REGION, a=A, b=B, fences=0.3, interrupts=0.3
    )
    records = [pack(draws.draw(chance, Y + number * REGION)) for number in range(count)]
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
    draws = RandomCommands(configuration=pair.configuration, size=REGION, a=A, b=B, fences=0)
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
