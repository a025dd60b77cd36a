"""A wrong record never makes the circuit read or write a byte outside its memory.

The test flips bits of good records and corrects the seal, so that only wrong fields are left: the
end of a stream, its steps, its loop counts. All other addresses are RAM. Without a right seal, any
one flipped bit is refused with a code, and nothing is touched.
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

import bitlane
from bitlane.driver import encode
from bitlane.lowering import Streams, View, lower
from bitlane_rtl.abi import (
    CONTROL_BASE,
    RECORD_WORDS,
    RING_OFFSET,
    WORD_BYTES,
    Lane,
    Mode,
    Op,
    Status,
    register,
)
from bitlane_rtl.configuration import Configuration
from bitlane_sim.device import Simulator
from bitlane_sim.system import STORAGE_BUFFER, AddressRange, System
from cppsim import Model
from cppsim.circuits import AnyModel
from support.record import Record
from support.rtl.records import Task, pack, reseal
from support.rtl.walks import OPERAND_MODES, Walk, random_walk
from support.system.devices import SIMULATED, link_of, noise, opened, simulator_of

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

BASE, SIZE, SPACE = 0x10000, 0x20000, 0x40000

RECORDS = 500
"""Number of random records; `bitlane campaign records` tries all pairs of bits of short ones."""

CYCLES = 1500
"""Cycles of each record before CLEAR, enough for many bursts of each stream."""

CONFIGURATIONS = {
    "64 bits, two read ports": {"data_width": 64, "read_ports": 2},
    "32 bits, one read port": {"data_width": 32, "read_ports": 1},
}


PORT = "escapes"


class Watched(wiring.Component):
    """A `System` whose RAM fills the address space.

    ``escapes`` counts words read or written outside MEMORY_BASE to MEMORY_LAST, up to its width.
    """

    def __init__(self, configuration: Configuration) -> None:
        width, data_width = configuration.address_width, configuration.data_width
        self._configuration = configuration
        self._system = System(configuration, AddressRange(width, data_width, 0, 1 << width))
        self.storage = self._system.storage
        super().__init__({**self._system.signature.members, PORT: Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.system = system = self._system
        for name, member in system.signature.members.items():
            inner, outer = getattr(system, name), getattr(self, name)
            if member.is_signature:
                wiring.connect(m, inner, wiring.flipped(outer))
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        config = self._configuration
        outside = []
        for port in self.storage:
            storage: Any = getattr(system, port.enable.removesuffix("__enable"))
            first, last = (
                address // config.data_bytes for address in (config.memory_base, config.memory_last)
            )
            beyond = (storage.address < first) | (storage.address > last)
            outside.append(storage.enable & beyond)
        count: Signal = getattr(self, PORT)
        m.d.sync += count.eq(count + sum(outside))
        return m


def escapes(evaluator: AnyModel) -> int:
    """Words read or written outside the engine's memory since power-on."""
    return evaluator.get(PORT)


class Bench:
    """A simulator with an engine that owns a part of the RAM, and with all of the RAM."""

    def __init__(self, **options: Any) -> None:
        self.configuration = Configuration(
            memory_base=BASE, memory_bytes=SIZE, address_width=18, **options
        )
        self.ram: NDArray[np.uint8] = np.zeros(SPACE, np.uint8)
        self.simulator = Simulator(self.configuration, self._evaluator)

    def _evaluator(self, system: object, **_: object) -> Model:
        watched = Watched(self.configuration)
        return Model(watched, storage=watched.storage, buffers={STORAGE_BUFFER: self.ram})

    def execute(self, words: list[int]) -> int:
        """Run a single record for `CYCLES`, then CLEAR; return FAULT.CODE from before CLEAR."""
        simulator = self.simulator
        writes = [(RING_OFFSET + WORD_BYTES * k, int(word)) for k, word in enumerate(words)]
        simulator.access([*writes, (register("DOORBELL").offset, 1)], ())
        simulator.step(CYCLES)
        fault = simulator.access((), [register("FAULT").offset])[0]
        simulator.access([(register("CLEAR").offset, 1)], ())
        simulator.step(400)
        state = simulator.access((), [register("STATUS").offset])[0]
        assert state == register("STATUS").reset, f"STATUS {state:#x} after CLEAR"
        return register("FAULT")["CODE"].extract(fault)


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = Bench(**CONFIGURATIONS[request.param])
    yield bench
    bench.simulator.close()


def lying_record(generator: random.Random, configuration: Configuration) -> list[int]:
    """Return a good record near an end of the memory, with one to three bits flipped, sealed."""
    op = generator.choice([Op.NOT, Op.XOR, Op.COUNT, Op.SHIFT_LEFT])
    lane = generator.choice([Lane.BITS_8, Lane.BITS_32])
    modes = [generator.choice(OPERAND_MODES), generator.choice(OPERAND_MODES), Mode.DENSE]
    if generator.random() < 0.4:
        modes = [Mode.DENSE] * 3
    elif generator.random() < 0.5:
        modes[2] = Mode.STRIDED
    if op is Op.COUNT and lane is Lane.BITS_32 and generator.random() < 0.5:
        modes[2] = Mode.SUM
    counts = [generator.choice([8, 33, 200])]
    counts += [generator.choice([2, 3, 9]) for _ in range(generator.randrange(3))]

    def walk(mode: Mode) -> Walk:
        room = 0x4000
        found = random_walk(generator, configuration, counts, mode, lane, size=room, aligned=True)
        found.base += generator.choice([BASE, BASE + SIZE - room])
        return found

    b = walk(modes[1]) if op.reads_b else None
    words = pack(Task(op, walk(modes[0]), b, walk(modes[2])))
    for _ in range(generator.choice([1, 1, 2, 3])):
        words[generator.randrange(len(words))] ^= 1 << generator.randrange(32)
    words += [generator.getrandbits(32) for _ in range(RECORD_WORDS - len(words))]
    return reseal(words, Record(words).used)


def test_nothing_outside_the_memory_is_touched(bench: Bench) -> None:
    guard = np.ones(SPACE, bool)
    guard[BASE : BASE + SIZE] = False
    bench.ram[:] = noise(SPACE, 7)
    before = bench.ram[guard]
    escaped = []
    executed = 0
    for number in range(RECORDS):
        words = lying_record(random.Random(number), bench.configuration)
        count = escapes(bench.simulator.evaluator)
        executed += bench.execute(words) == Status.OK
        wrote = not np.array_equal(bench.ram[guard], before)
        if wrote or escapes(bench.simulator.evaluator) != count:
            escaped.append((number, "wrote" if wrote else "read"))
            bench.ram[guard] = before
    told = f"{len(escaped)} of {RECORDS} records escaped: seed, what it did: {escaped[:10]}"
    assert not escaped, told
    assert executed > RECORDS // 10, "too few were executed, at least in part, to show anything"


# --- wrong seals ----------------------------------------------------------------------------------


BYTES = 4096

FAULT = register("FAULT")

JOBS: dict[str, tuple[Op, tuple[int, ...], View, View | None, View]] = {
    "dense": (Op.XOR, (50,), View(3, (1,), 1), View(1030, (1,), 1), View(2099, (1,), 1)),
    "without B": (Op.NOT, (100,), View(64, (1,), 1), None, View(2048, (1,), 1)),
    "rows, gathered and scattered": (
        Op.SHIFT_LEFT,
        (3, 5, 7),
        View(0, (280, 56, 8), 4),
        View(1024, (0, 4, 0), 4),
        View(2048, (4, 12, 60), 4),
    ),
}


@pytest.fixture(scope="module", params=SIMULATED)
def device(request: pytest.FixtureRequest) -> Iterator[bitlane.Device]:
    with opened(request.param) as device:
        yield device


def record(device: bitlane.Device, name: str) -> NDArray[np.uint32]:
    op, shape, a, b, y = JOBS[name]
    geometry = device.driver.geometry
    commands = list(lower(op, shape, Streams(a, b, y), geometry.abilities, geometry.memory))
    assert len(commands) == 1
    return encode(commands[0])


def submit(device: bitlane.Device, words: NDArray[np.uint32]) -> int:
    """Put a record into the first slot of the ring and ring; the code of the fault, 0 for none."""
    link_of(device).write(CONTROL_BASE + RING_OFFSET, words)
    device.driver.write_register("DOORBELL", 1)
    simulator_of(device).step(400)
    code = FAULT["CODE"].extract(device.driver.read_register("FAULT"))
    status = device.driver.read_register("STATUS")
    assert register("STATUS")["DRAINED"].extract(status) == 1
    device.driver.write_register("CLEAR", 1)
    assert device.driver.read_register("FAULT") == 0
    return code


@pytest.mark.parametrize("name", JOBS)
def test_every_flipped_bit_is_refused(device: bitlane.Device, name: str) -> None:
    words = record(device, name)
    memory = simulator_of(device).memory[:BYTES]
    memory[:] = before = noise(BYTES, 1)
    requests = simulator_of(device).monitor["ar"].count, simulator_of(device).monitor["aw"].count
    for bit in range(32 * words.size):
        replay = f"{device.description}, {name}: bit {bit % 32} of word {bit // 32}"
        flipped = words.copy()
        flipped[bit // 32] ^= np.uint32(1 << bit % 32)
        code = submit(device, flipped)
        # All that is refused is refused before any bus traffic.
        assert Status.OK < code < Status.READ_ERROR, f"{replay}: code {code}"
        assert np.array_equal(memory, before), replay
    monitor = simulator_of(device).monitor
    assert (monitor["ar"].count, monitor["aw"].count) == requests


@pytest.mark.parametrize("name", JOBS)
def test_the_record_as_it_was_is_executed(device: bitlane.Device, name: str) -> None:
    memory = simulator_of(device).memory[:BYTES]
    memory[:] = before = noise(BYTES, 1)
    assert submit(device, record(device, name)) == Status.OK
    assert np.count_nonzero(memory != before) >= 45
