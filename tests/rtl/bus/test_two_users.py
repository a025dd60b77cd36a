"""Two users share the ports of each memory: their data do not mix, and neither blocks the other."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins.sdram import SdramChip
from bitlane_rtl.bus.banks import BankedMemory
from bitlane_rtl.bus.sdram.pins import SdramPins
from bitlane_rtl.bus.sram import SramPort
from bitlane_rtl.bus.storage import BlockRam
from bitlane_rtl.ports.read_arbiter import ReadArbiter
from bitlane_rtl.ports.signatures import ReadPort, WritePort
from bitlane_rtl.ports.write_arbiter import WriteArbiter
from support.rtl.bursts import (
    BYTES,
    WORDS,
    beats_to_write,
    blocks,
    bursts,
    bursts_of,
    merged,
    words_of,
)
from support.rtl.sdram import CLOCK_HZ, PARTS, ChipAtPins, controller
from support.rtl.streams import ALL_STALLS, Stalls, compiled, simulate

WIDTH = 8 * BYTES


class Shared(wiring.Component):
    """A memory with two readers; its port ``a`` and its write port serve a second user too.

    ``kind``: banks, sram, or one of `PARTS` of SDRAM. Not ``shared``, they have one user alone.
    """

    def __init__(self, kind: str, shared: bool = True) -> None:
        self._kind = kind
        self._shared = shared
        read, write = In(ReadPort(32, WIDTH)), In(WritePort(32, WIDTH))
        pins = {"pins": Out(SdramPins(PARTS[kind]))} if kind in PARTS else {}
        super().__init__(
            {"a": read, "b": read, "write": write, "host_read": read, "host_write": write, **pins}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = self._memory(m)
        wiring.connect(m, wiring.flipped(self.b), memory.b)
        if not self._shared:
            wiring.connect(m, wiring.flipped(self.a), memory.a)
            wiring.connect(m, wiring.flipped(self.write), memory.write)
            return m
        m.submodules.reads = reads = ReadArbiter(32, WIDTH, 16)
        m.submodules.writes = writes = WriteArbiter(32, WIDTH, 16)
        wiring.connect(m, wiring.flipped(self.a), reads.a)
        wiring.connect(m, wiring.flipped(self.host_read), reads.b)
        wiring.connect(m, reads.port, memory.a)
        wiring.connect(m, wiring.flipped(self.write), writes.a)
        wiring.connect(m, wiring.flipped(self.host_write), writes.b)
        wiring.connect(m, writes.port, memory.write)
        return m

    def _memory(self, m: Module) -> Any:
        if self._kind == "banks":
            return BankedMemory(32, WIDTH, WORDS)
        if self._kind == "sram":
            port = SramPort(32, WIDTH, WORDS)
            m.submodules.storage = storage = BlockRam(WORDS, WIDTH)
            wiring.connect(m, port.memory, storage.memory)
            return port
        chip = controller(WIDTH, 2, self._kind)
        wiring.connect(m, chip.pins, wiring.flipped(self.pins))
        return chip


KINDS = ["banks", "sram", "fast", "without masks"]


def prepared(kind: str, shared: bool = True) -> tuple[Any, list[Any], Any]:
    """Return the circuit, the testbenches of its chip, and the ports of the engine."""
    dut = compiled(Shared, kind, shared)
    chip = [ChipAtPins(dut.pins, SdramChip(PARTS[kind], CLOCK_HZ))] if kind in PARTS else []
    return dut, chip, SimpleNamespace(a=dut.a, b=dut.b, write=dut.write)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stalls", ALL_STALLS, ids=str)
def test_each_user_reads_what_it_wrote(stalls: Stalls, kind: str) -> None:
    """The engine uses the lower half of the memory, the host the upper one."""
    dut, chip, engine = prepared(kind)
    host = SimpleNamespace(a=dut.host_read, write=dut.host_write)
    rng, half = random.Random(stalls.seed), WORDS // 2
    content = [0] * WORDS
    benches = []
    for user, low in ((engine, 0), (host, half)):
        written = bursts(rng, 25, low, low + half)
        beats = beats_to_write(written, rng)
        for word, beat in zip(words_of(written), beats, strict=True):
            content[word] = merged(content[word], beat)
        asked = blocks(half // 16, low // 16)
        writing = bursts_of(user, write=written, beats=beats, stalls=stalls)
        reading = [
            bursts_of(SimpleNamespace(a=getattr(user, name)), a=asked, stalls=stalls)
            for name in ("a", "b")
            if hasattr(user, name)
        ]
        benches.append((low, writing, reading))

    def after(responses: Any, bench: Any) -> Any:
        async def run(ctx: Any) -> None:
            while len(responses.bits) < 25:
                await ctx.tick()
            await bench.run(ctx)

        return run

    simulate(
        dut,
        *(bench for _, writing, _ in benches for bench in writing.values()),
        *(
            after(writing["response"], bench)
            for _, writing, reading in benches
            for each in reading
            for bench in each.values()
        ),
        background=chip,
    )
    for low, writing, reading in benches:
        assert writing["response"].bits == [0] * 25
        for each in reading:
            data = [beat.data for beat in each["a"].payloads]
            assert data == content[low : low + half], (stalls, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_user_takes_no_cycle(kind: str) -> None:
    """Of the beats to write, the ends of bursts: a memory may take a beat ahead of its burst."""
    asked = {"a": blocks(4, 0), "b": blocks(4, 5), "write": blocks(4, 10)}
    cycles = []
    for shared in (False, True):
        dut, chip, engine = prepared(kind, shared)
        benches = bursts_of(engine, **asked)
        simulate(dut, *benches.values(), background=chip)
        ends = benches["beats"].cycles[15::16]
        cycles.append([ends, *(benches[name].cycles for name in ("a", "b", "response"))])
    assert cycles[0] == cycles[1]
