"""Cycles per beat of the engine on each board's memory, with and without accesses of the host."""

import random
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from bitlane.driver import encode
from bitlane_rtl.abi import BEATS_PER_BLOCK, RING_OFFSET, Op, register
from bitlane_rtl.bus import BankedMemory, BlockRam, SharedSram
from bitlane_rtl.configurations import full
from bitlane_rtl.engine import Engine
from bitlane_rtl.ports import (
    ControlPort,
    ReadArbiter,
    ReadPort,
    WordAccess,
    WriteArbiter,
    WritePort,
)
from bitlane_sim.commands import move
from cppsim import Model, Program

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

MEMORY = 1 << 14
SIZE = MEMORY // 4
STARTED_BY = 60
"""Maximum cycles of start-up, the readers' stagger and the last response together."""
READY_WITHIN = 100
"""Cycles in which a host's access is accepted."""


class Bursts(wiring.Component):
    """Makes a burst of one beat of each access of a word."""

    host: Any
    read: Any
    write: Any

    def __init__(self, data_width: int) -> None:
        super().__init__(
            {
                "host": In(WordAccess(16)),
                "read": Out(ReadPort(16, data_width)),
                "write": Out(WritePort(16, data_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        host, read, write = self.host, self.read, self.write
        words = len(write.data.p.data) // 32
        lane = host.address[2 : 2 + exact_log2(words)]
        word = Signal(32)
        asked, sent, answered = Signal(), Signal(), Signal()
        writes = host.strobe.any()
        m.d.comb += [
            read.request.valid.eq(host.enable & ~writes & ~asked),
            read.request.p.address.eq(host.address),
            read.data.ready.eq(1),
            write.request.valid.eq(host.enable & writes & ~asked),
            write.request.p.address.eq(host.address),
            write.data.valid.eq(host.enable & writes & ~sent),
            write.data.p.data.eq(host.write_data.replicate(words)),
            write.data.p.strobe.eq(host.strobe << 4 * lane),
            write.data.p.last.eq(1),
            write.response.ready.eq(1),
            host.ready.eq(answered),
            host.read_data.eq(word),
        ]
        requested = Mux(writes, write.request.ready, read.request.ready)
        m.d.sync += [
            asked.eq(host.enable & (asked | requested) & ~answered),
            sent.eq(host.enable & (sent | write.data.ready) & ~answered),
            answered.eq(read.data.valid | write.response.valid),
        ]
        with m.If(read.data.valid):
            m.d.sync += word.eq(read.data.p.data.word_select(lane, 32))
        return m


class System(wiring.Component):
    """An engine on a board's memory; ``banks`` 0 selects a memory with a single port."""

    control: Any
    host: Any
    irq: Signal

    def __init__(self, data_width: int, banks: int) -> None:
        self._configuration = replace(full(data_width), address_width=16, memory_bytes=MEMORY)
        self._banks = banks
        super().__init__({"control": Out(ControlPort()), "host": In(WordAccess(16)), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = self._configuration.data_width
        words = MEMORY * 8 // width
        m.submodules.engine = engine = Engine(self._configuration)
        read, write = engine.read_a, engine.write
        if self._banks:
            memory: Any = BankedMemory(16, width, words, banks=self._banks)
            m.submodules.reads = reads = ReadArbiter(16, width, 16)
            m.submodules.writes = writes = WriteArbiter(16, width, 16)
            m.submodules.bursts = bursts = Bursts(width)
            wiring.connect(m, wiring.flipped(self.host), bursts.host)
            wiring.connect(m, read, reads.a)
            wiring.connect(m, bursts.read, reads.b)
            wiring.connect(m, write, writes.a)
            wiring.connect(m, bursts.write, writes.b)
            read, write = reads.port, writes.port
        else:
            memory = SharedSram(16, width, words)
            m.submodules.storage = storage = BlockRam(words, width)
            wiring.connect(m, memory.memory, storage.memory)
            wiring.connect(m, wiring.flipped(self.host), memory.host)
        m.submodules.memory = memory
        wiring.connect(m, wiring.flipped(self.control), engine.control)
        wiring.connect(m, read, memory.a)
        wiring.connect(m, engine.read_b, memory.b)
        wiring.connect(m, write, memory.write)
        m.d.comb += self.irq.eq(engine.irq)
        return m


def write_register(run: Model, offset: int, word: int) -> None:
    run.set("control__address", offset)
    run.set("control__write_data", word)
    run.set("control__write", 1)
    run.step()
    run.set("control__write", 0)


def store(run: Model, address: int, data: bytes) -> None:
    addresses = [range(address, address + len(data))]
    strobes = [1 << place % 4 for place in addresses[0]]
    program = Program().set("host__enable", 1)
    with program.repeat(len(data)):
        program.set("host__address", addresses).set("host__strobe", [strobes])
        program.set("host__write_data", [[byte * 0x01010101 for byte in data]])
        program.until("host__ready", READY_WITHIN)
    assert run.run(program.set("host__enable", 0).set("host__strobe", 0))["host__ready"].all()


def load(run: Model, address: int, size: int) -> bytes:
    program = Program().set("host__enable", 1)
    with program.repeat(size):
        program.set("host__address", [range(address, address + size)])
        program.until("host__ready", READY_WITHIN).get("host__read_data")
    results = run.run(program.set("host__enable", 0))
    assert results["host__ready"].all()
    words = results["host__read_data"].tolist()
    return bytes(word >> 8 * ((address + n) % 4) & 0xFF for n, word in enumerate(words))


@cache
def compiled(data_width: int, banks: int) -> Model:
    return Model(System(data_width, banks))


@pytest.mark.parametrize(
    ("banks", "op", "cycles_a_beat"),
    [
        (2, Op.NOT, 1),
        (2, Op.XOR, 1),
        (1, Op.NOT, 1),
        (1, Op.XOR, 2),
        (0, Op.NOT, 2),
        (0, Op.XOR, 3),
    ],
)
@pytest.mark.parametrize("host_works", [False, True], ids=["alone", "host"])
def test_cycles_a_beat(banks: int, op: Op, cycles_a_beat: int, host_works: bool) -> None:
    width = 64 if banks == 2 else 32
    run = compiled(width, banks)
    run.reset()
    data = np.random.default_rng(0).integers(0, 256, 3 * SIZE, np.uint8)
    store(run, 0, data.tobytes())
    b = SIZE if op.reads_b else None
    words = encode(move(op, SIZE, 0, b, 2 * SIZE), interrupt=True).tolist()
    for number, word in enumerate(words):
        write_register(run, RING_OFFSET + 4 * number, word)
    entry = register("INTERRUPT")
    write_register(run, entry.offset, entry["ENABLE"].insert(1))
    run.step(50)
    rng = random.Random(0)
    start = run.cycles
    write_register(run, register("DOORBELL").offset, 1)
    accesses = 0
    while host_works and not run.get("irq") and run.cycles < start + 8 * SIZE:
        # The link's bridge accesses the memory this often at its fastest.
        place = 3 * SIZE + rng.randrange(SIZE)
        value = rng.randrange(256)
        store(run, place, bytes([value]))
        assert load(run, place, 1) == bytes([value])
        run.step(2)
        accesses += 2
    assert host_works or run.until("irq", 8 * SIZE)
    cycles = run.cycles - start
    expected = ~data[:SIZE] if op is Op.NOT else data[:SIZE] ^ data[SIZE : 2 * SIZE]
    assert load(run, 2 * SIZE, SIZE) == expected.tobytes()
    beats = SIZE * 8 // width
    # After a read of the host, two readers meet in a bank again, for a block at most.
    lost = BEATS_PER_BLOCK // 2 if banks == 2 and op.reads_b else 1
    longest = cycles_a_beat * beats + lost * accesses + STARTED_BY
    assert cycles_a_beat * beats <= cycles <= longest, f"{cycles} cycles for {beats} beats"
    print(f"{op.name}, {banks} banks: {beats} beats in {cycles} cycles")
