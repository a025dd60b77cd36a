"""Memories serve the readers, writer and host of a board: the right bytes, in known cycles."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from bitlane_boards.pins import VENDOR_CELLS, SdramChip
from bitlane_rtl.bus import BankedMemory, BlockRam, SharedSram, SinglePortRam, SramPort
from cppsim import Model
from cppsim.circuits import AnyModel, Circuit
from support.rtl.bursts import (
    BASE,
    BYTES,
    WORDS,
    Host,
    beats_to_write,
    blocks,
    bursts_of,
    check_at_random,
    filled,
    transfer_bursts,
)
from support.rtl.sdram import CLOCK_HZ, PARTS, ChipAtPins
from support.rtl.sdram import memory as sdram
from support.rtl.streams import Sink, Source, Stalls, compiled, later, simulate
from support.seeds import slow

WIDTH = 8 * BYTES


def banked(banks: int = 2, read_ports: int = 2) -> Any:
    return compiled(BankedMemory, 32, 8 * BYTES, WORDS, banks=banks, read_ports=read_ports)


def test_each_word_of_four_banks_keeps_its_content() -> None:
    dut = banked(banks=4)
    asked = blocks(WORDS // 16, 0)
    beats = [{**beat, "strobe": 15} for beat in beats_to_write(asked, random.Random(0))]
    ports, data = bursts_of(dut, write=asked, beats=beats), Sink(dut.a.data, WORDS)
    read_back = later(
        Source(dut.a.request, asked), lambda: len(ports["response"].bits) == len(asked)
    )
    simulate(dut, *ports.values(), read_back, data)
    assert [beat.data for beat in data.payloads] == [beat["data"] for beat in beats]


def test_a_beat_comes_two_cycles_after_it_is_asked_for() -> None:
    dut = banked()
    ran = transfer_bursts(dut, b=[{"address": BASE + 40, "length": 1}])
    assert ran.ask_b.cycles == [1], "the request is taken with its last beat"
    assert ran.b.cycles == [2, 3]


def test_a_read_and_a_write_have_every_cycle() -> None:
    dut = banked(banks=1, read_ports=1)
    ran = transfer_bursts(dut, a=blocks(4, 0), write=blocks(4, 8))
    assert ran.a.cycles == list(range(2, 66))
    assert ran.beats.cycles == list(range(64))
    assert ran.response.cycles == [16, 32, 48, 64]


@pytest.mark.parametrize("banks", [2, 4])
@pytest.mark.parametrize("distance", [0, 4, 7, 8])
def test_two_readers_stagger_themselves_and_then_have_every_cycle(
    banks: int, distance: int
) -> None:
    dut = banked(banks)
    ran = transfer_bursts(dut, a=blocks(4, 0), b=blocks(4, distance))
    late = 0 if distance % banks else 16
    assert ran.a.cycles == list(range(2, 66))
    assert ran.b.cycles == list(range(2 + late, 66 + late))


def test_one_bank_is_shared_burst_by_burst() -> None:
    dut = banked(banks=1)
    ran = transfer_bursts(dut, a=blocks(4, 0), b=blocks(4, 4))
    assert ran.a.cycles == [block + beat for block in range(2, 130, 32) for beat in range(16)]
    assert ran.b.cycles == [block + beat for block in range(18, 130, 32) for beat in range(16)]


def watcher(port: Any, cycles: int, seen: list[tuple[int, int]]) -> Callable[[Any], Any]:
    """Return a testbench that appends valid and data of a read port in each cycle to ``seen``."""

    async def watch(ctx: Any) -> None:
        for _ in range(cycles):
            await ctx.tick()
            seen.append((ctx.get(port.data.valid), ctx.get(port.data.payload.data)))

    return watch


def test_a_beat_that_is_not_taken_stays_and_holds_up_its_bank_only() -> None:
    dut = banked()
    ask, late = Source(dut.a.request, [{"address": BASE, "length": 3}]), Sink(dut.a.data, 4)
    seen: list[tuple[int, int]] = []
    # Banks 1, 1, 0: the last request waits for the beat that bank 0 holds.
    requests = [*blocks(1, 1), *blocks(1, 3), *blocks(1, 2)]
    ran = transfer_bursts(dut, ask, later(late, 100), watcher(dut.a, 100, seen), b=requests)
    assert seen[1:] == [(1, 0)] * 99
    assert (late.cycles[0], late.payloads[0].data) == (0, 0)
    assert ran.b.cycles[:32] == list(range(2, 34))
    assert ran.b.cycles[32] > 100


# --- a memory behind one port ---------------------------------------------------------------------


class Filled(wiring.Component):
    """The port before a memory, of which the lower half is filled."""

    def __init__(self, read_ports: int = 2, data_width: int = 32) -> None:
        self.dut = SramPort(32, data_width, WORDS, read_ports=read_ports)
        self.accesses = Signal(32)
        self._data_width = data_width
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        init = [filled(index) for index in range(WORDS // 2)]
        storage = Memory(shape=self._data_width, depth=WORDS, init=init)
        m.submodules.storage = storage
        read, write, bus = storage.read_port(), storage.write_port(granularity=8), self.dut.memory
        was_read = Signal()
        reads = bus.enable & ~bus.strobe.any()
        m.d.sync += [was_read.eq(reads), self.accesses.eq(self.accesses + bus.enable)]
        m.d.comb += [
            read.addr.eq(bus.address),
            read.en.eq(reads),
            write.addr.eq(bus.address),
            write.data.eq(bus.write_data),
            write.en.eq(bus.strobe & bus.enable.replicate(len(bus.strobe))),
            bus.read_data.eq(0xDEADBEEF),
        ]
        with m.If(was_read):
            m.d.comb += bus.read_data.eq(read.data)
        return m


class Holder:
    """Holds the memory at random, and fails if it is accessed meanwhile."""

    def __init__(self, dut: SramPort, probability: float) -> None:
        self._dut = dut
        self._probability = probability
        self._rng = random.Random(0)

    async def run(self, ctx: Any) -> None:
        while True:
            hold = self._rng.random() < self._probability
            ctx.set(self._dut.hold, hold)
            _, _, enable = await ctx.tick().sample(self._dut.memory.enable)
            assert not (hold and enable), "an access while another has the memory"


def test_a_word_is_accessed_at_once_and_comes_a_cycle_later() -> None:
    ran = transfer_bursts(compiled(Filled), a=[{"address": BASE + 40, "length": 1}])
    assert ran.ask_a.cycles == [1], "the request is taken with its last word"
    assert ran.a.cycles == [1, 2]


def test_a_write_is_answered_a_cycle_after_its_last_beat() -> None:
    ran = transfer_bursts(compiled(Filled), write=blocks(1, 0))
    assert ran.beats.cycles == list(range(16))
    assert ran.write.cycles == [15]
    assert ran.response.cycles == [16]


@pytest.mark.parametrize("length", [1, 16])
def test_a_stream_alone_has_every_cycle(length: int) -> None:
    count = 48 // length
    requests = [{"address": BASE + 64 * (i % 16), "length": length - 1} for i in range(count)]
    circuit = compiled(Filled)
    assert transfer_bursts(circuit, b=requests).b.cycles == list(range(1, 49))
    assert transfer_bursts(circuit, write=requests).beats.cycles == list(range(48))


def test_three_busy_streams_have_a_third_each() -> None:
    """As in an XOR: the writer writes a word once both of its operands are there."""
    circuit = compiled(Filled)
    dut = circuit.dut
    total = 16 * 8
    ports = bursts_of(dut, a=blocks(8, 0), b=blocks(8, 0), write=blocks(8, 8))
    del ports["beats"]
    a, b = ports["a"], ports["b"]
    writes: list[int] = []

    async def write(ctx: Any) -> None:
        for cycle in range(10_000):
            there = min(len(a.bits), len(b.bits)) > len(writes)
            ctx.set(dut.write.data.valid, there)
            ctx.set(dut.write.data.payload.last, len(writes) % 16 == 15)
            _, _, taken = await ctx.tick().sample(dut.write.data.ready & dut.write.data.valid)
            if taken:
                writes.append(cycle)
            if len(writes) == total:
                ctx.set(dut.write.data.valid, 0)
                return

    simulate(circuit, *ports.values(), write)
    # The first word of B is there after A's first burst.
    assert writes[-1] + 1 <= 3 * total + 20, f"{3 * total} words took {writes[-1] + 1} cycles"


def test_reads_and_writes_take_turns() -> None:
    ran = transfer_bursts(compiled(Filled, read_ports=1), a=blocks(4, 0), write=blocks(4, 8))
    assert ran.a.cycles == ran.beats.cycles == list(range(1, 129, 2))


def test_a_beat_that_is_not_taken_does_not_hold_up_writes() -> None:
    circuit = compiled(Filled)
    dut = circuit.dut
    ask, late = Source(dut.a.request, [{"address": BASE + 4 * 7, "length": 3}]), Sink(dut.a.data, 4)
    seen: list[tuple[int, int]] = []
    watch = watcher(dut.a, 40, seen)
    ran = transfer_bursts(circuit, ask, later(late, 40), watch, write=blocks(2, 4))
    assert seen[1:] == [(1, filled(7))] * 39
    assert ran.beats.cycles == [*range(1, 33)]
    assert late.cycles[0] == 0
    assert [beat.data for beat in late.payloads] == [filled(7 + word) for word in range(4)]


def test_a_cycle_that_is_held_is_lost_and_no_more() -> None:
    circuit = compiled(Filled)
    dut = circuit.dut

    async def hold(ctx: Any) -> None:
        await ctx.tick().repeat(10)
        ctx.set(dut.hold, 1)
        await ctx.tick()
        ctx.set(dut.hold, 0)

    ran = transfer_bursts(circuit, hold, a=blocks(2, 0))
    assert ran.a.cycles == [*range(1, 11), *range(12, 34)]


# --- a memory with a host -------------------------------------------------------------------------


class Hosted(wiring.Component):
    def __init__(self, read_ports: int = 2, width: int = 8 * BYTES) -> None:
        self._width = width
        self.dut = SharedSram(32, width, WORDS, read_ports=read_ports)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        m.submodules.storage = storage = BlockRam(WORDS, self._width)
        wiring.connect(m, self.dut.memory, storage.memory)
        return m


def test_the_host_never_waits_and_each_access_takes_one_cycle_from_the_engine() -> None:
    circuit = compiled(Hosted, read_ports=1)
    dut = circuit.dut
    host = Host(dut.host, [(0, None), (WORDS * BYTES - 1, 7), (1, None)], wait=10)
    ran = transfer_bursts(circuit, host, a=blocks(3, 0))
    assert host.cycles == [10, 11, 12]
    assert ran.a.cycles == [*range(1, 11), *range(14, 52)]


@pytest.mark.parametrize("width", [32, 64, 128])
def test_the_host_reaches_every_byte_of_a_beat(width: int) -> None:
    circuit = compiled(Hosted, read_ports=1, width=width)
    order = random.Random(width).sample(range(64), 64)
    writes = [(byte, byte + 1) for byte in order]
    host = Host(circuit.dut.host, [*writes, *((byte, None) for byte in range(64))])
    simulate(circuit, host)
    assert host.read == [*range(1, 65)]


def test_a_host_that_has_every_second_cycle_leaves_the_others() -> None:
    circuit = compiled(Hosted, read_ports=1)
    dut = circuit.dut

    async def host(ctx: Any) -> None:
        for cycle in range(64):
            ctx.set(dut.host.enable, cycle % 2 == 0)
            await ctx.tick()

    ran = transfer_bursts(circuit, host, write=blocks(2, 0))
    assert ran.beats.cycles == list(range(1, 64, 2))


# --- all of them ----------------------------------------------------------------------------------


def held(probability: float, read_ports: int) -> tuple[Any, Any]:
    circuit = compiled(Filled, read_ports)
    return circuit, Holder(circuit.dut, probability)


def chip(part: str, read_ports: int) -> tuple[Any, Any]:
    dut = sdram(WIDTH, read_ports, part=part)
    return dut, ChipAtPins(dut.pins, SdramChip(PARTS[part], CLOCK_HZ))


MEMORIES: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "1 bank": lambda ports: (banked(1, ports),),
    "2 banks": lambda ports: (banked(2, ports),),
    "4 banks": lambda ports: (banked(4, ports),),
    "a port": partial(held, 0),
    "a port, held": partial(held, 0.3),
    "a port, shared": lambda ports: (compiled(Hosted, ports),),
    "SDRAM": partial(chip, "fast"),
    "SDRAM without masks": partial(chip, "without masks"),
}
"""By the number of read ports, a circuit and the testbench beside it."""
LATE = {("1 bank", 1), ("4 banks", 1), ("4 banks", 2)}
"""Memories of the full tier."""


@pytest.mark.parametrize(
    ("name", "read_ports"),
    [slow(*each) if each in LATE else each for each in product(MEMORIES, (1, 2))],
)
def test_engine_and_host_reach_the_right_bytes(stalls: Stalls, read_ports: int, name: str) -> None:
    circuit, *others = MEMORIES[name](read_ports)
    check_at_random(circuit, read_ports, stalls, others)


# --- storage --------------------------------------------------------------------------------------


SIZES = {"block": 64, "spram": 1 << 14, "two spram": 1 << 15}
"""Words of each kind of memory."""


@pytest.fixture(params=SIZES, scope="module")
def stored(request: Any) -> Iterator[tuple[AnyModel, int]]:
    words = SIZES[request.param]
    circuit: Any = BlockRam(words, 32) if request.param == "block" else SinglePortRam(words)
    run = Model(Circuit(circuit, VENDOR_CELLS))
    yield run, words
    run.close()


def access(run: AnyModel, word: int, strobe: int = 0, data: int = 0, *, enable: bool = True) -> int:
    run.set("memory__address", word)
    run.set("memory__enable", enable)
    run.set("memory__strobe", strobe)
    run.set("memory__write_data", data)
    run.step()
    return run.get("memory__read_data")


def test_random_accesses_read_what_was_written(stored: tuple[AnyModel, int]) -> None:
    run, words = stored
    rng = random.Random(0)
    # At the edges of every RAM, where wrong bits of an address would show.
    places = sorted({(1 << bit) + step for bit in range(15) for step in (-1, 0)} | {words - 1})
    places = [place for place in places if 0 <= place < words]
    model = {place: rng.getrandbits(32) for place in places}
    for place, data in model.items():
        access(run, place, 0xF, data)
    for step in range(1000):
        place, strobe = rng.choice(places), rng.randrange(16)
        if rng.random() < 0.5:
            data = rng.getrandbits(32)
            enable = rng.random() < 0.8
            access(run, place, strobe, data, enable=enable)
            if enable:
                mask = sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
                model[place] = model[place] & ~mask | data & mask
        else:
            assert access(run, place) == model[place], f"step {step}, word {place:#x}"


def test_a_word_that_was_read_changes_only_with_the_next_access(
    stored: tuple[AnyModel, int],
) -> None:
    run, words = stored
    access(run, 1, 0xF, 0x11111111)
    access(run, words - 1, 0xF, 0x22222222)
    assert access(run, words - 1) == 0x22222222
    assert access(run, 1, enable=False) == 0x22222222
    assert access(run, 1) == 0x11111111


def test_the_rams_are_never_asleep() -> None:
    """Their models know no other state."""
    text = rtlil.convert(SinglePortRam(1 << 14))
    for port, value in (("STANDBY", 0), ("SLEEP", 0), ("POWEROFF", 1)):
        assert text.count(f"connect \\{port} 1'{value}\n") == 2, port
