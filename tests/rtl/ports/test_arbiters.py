"""Two readers or writers share a port fairly; each gets the beats or responses of its bursts.

Two users of a memory's ports do not mix their data, and neither blocks the other.
"""

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards.pins import SdramChip
from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.bus import BankedMemory, BlockRam, SdramPins, SramPort
from bitlane_rtl.ports import ReadArbiter, ReadPort, WriteArbiter, WritePort
from bitlane_rtl.ports.signatures import request
from support.rtl.bursts import (
    BYTES,
    WORDS,
    beats_to_write,
    blocks,
    bursts,
    bursts_of,
    merged,
    transfer_bursts,
    words_of,
)
from support.rtl.memory import Memory, ReadServer, WriteServer
from support.rtl.sdram import CLOCK_HZ, PARTS, ChipAtPins, controller
from support.rtl.streams import NO_STALLS, Stalls, clocked, compiled, later, simulate

USER_B = 0x800
"""Requests of the reader or writer B have this bit, those of A do not."""


def requests(count: int, base: int, length: int | None = None) -> list[dict[str, int]]:
    """Return bursts that begin a block of 16 words each."""
    rng = random.Random(base)
    return [
        {"address": base + 64 * index, "length": rng.randrange(16) if length is None else length}
        for index in range(count)
    ]


class OwnAddresses:
    """Words that hold their own address; number 13 of each block cannot be read."""

    beat_bytes = 4

    def read(self, address: int) -> tuple[int, bool]:
        return address, address // 4 % 16 == 13


def beats(of: list[dict[str, int]]) -> list[tuple[int, int, int]]:
    """Return data, last and error of all beats of some requests."""
    return [
        (entry["address"] + 4 * beat, beat == entry["length"], beat == 13)
        for entry in of
        for beat in range(entry["length"] + 1)
    ]


@pytest.mark.parametrize("block_ram", [False, True])
@pytest.mark.parametrize("latency", [1, 12])
def test_each_reader_gets_its_own_beats(stalls: Stalls, latency: int, block_ram: bool) -> None:
    dut = compiled(ReadArbiter, 32, 32, 4, block_ram=block_ram)
    of_a, of_b = requests(25, 0), requests(20, USER_B)
    memory = ReadServer(dut.port, OwnAddresses(), latency - 1, stalls)
    ran = transfer_bursts(dut, a=of_a, b=of_b, stalls=stalls, background=[memory])
    for sink, expected in ((ran.a, beats(of_a)), (ran.b, beats(of_b))):
        got = [(beat.data, beat.last, beat.error) for beat in sink.payloads]
        assert got == expected, stalls


def users(server: Any) -> list[int]:
    """Return who requested each burst: 0 for A, 1 for B."""
    return [address // USER_B for _, address, _ in server.requests]


def both(kind: str, length: int, latency: int, stalls: Stalls) -> Any:
    """Return the port's server after 20 bursts of A and of B, which do not stall, by ``kind``."""
    reads = kind == "read"
    reader = compiled(ReadArbiter, 32, 32, 4, block_ram=False)
    dut: Any = reader if reads else compiled(WriteArbiter, 32, 32, 4)
    written = Memory(np.zeros(2 * USER_B, np.uint8), 4)
    memory = OwnAddresses() if reads else written
    server = (ReadServer if reads else WriteServer)(dut.port, memory, latency, stalls)
    benches = [
        bench
        for user, base in ((dut.a, 0), (dut.b, USER_B))
        for asked in [requests(20, base, length)]
        for bench in bursts_of(
            SimpleNamespace(a=user, write=user), **{"a" if reads else "write": asked}
        ).values()
    ]
    simulate(dut, *benches, background=[server])
    return server


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize(("kind", "first"), [("read", 1), ("write", 0)])
def test_two_that_ask_are_granted_in_turn_without_a_lost_cycle(
    kind: str, first: int, length: int
) -> None:
    server = both(kind, length, 0, NO_STALLS)
    assert users(server) == [0, 1] * 20
    assert server.beats == list(range(first, first + 40 * (length + 1)))


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_stalled_port_is_shared_evenly_too(kind: str, stalls: Stalls) -> None:
    assert users(both(kind, 3, 2, stalls)) == [0, 1] * 20, stalls


@pytest.mark.parametrize("reader", ["a", "b"])
def test_one_that_asks_alone_has_the_whole_port_without_delay(reader: str) -> None:
    dut = compiled(ReadArbiter, 32, 32, 16)
    memory = ReadServer(dut.port, OwnAddresses())
    ran = vars(transfer_bursts(dut, **{reader: requests(10, 0x1000, 3)}, background=[memory]))
    accepted = [cycle for cycle, _, _ in memory.requests]
    assert ran[f"ask_{reader}"].cycles == accepted == list(range(10))
    assert ran[reader].cycles == memory.beats == list(range(1, 41))


# --- writers --------------------------------------------------------------------------------------


BAD = 0x380
"""The beat at this address of each writer cannot be written."""


def is_bad(address: int) -> bool:
    return address % USER_B == BAD


class Run:
    """Bursts of both writers, a memory, and the beats that should be in it.

    ``late``: cycles after which a writer begins.
    """

    def __init__(
        self,
        dut: Any,
        asked: dict[str, list[dict[str, int]]],
        *,
        latency: int = 0,
        stalls: Stalls = NO_STALLS,
        late: dict[str, int] | None = None,
    ) -> None:
        memory = Memory(np.zeros(2 * USER_B, np.uint8), 4, is_bad)
        self.server = WriteServer(dut.port, memory, latency, stalls)
        self.expected = [0] * (2 * USER_B // 4)
        self.ports: dict[str, SimpleNamespace] = {}
        benches: list[Any] = []
        for name, own_bursts in asked.items():
            beats = beats_to_write(own_bursts, random.Random(name))
            port = SimpleNamespace(write=getattr(dut, name))
            own = bursts_of(
                port,
                write=own_bursts,
                beats=beats,
                stalls=Stalls(**vars(stalls) | {"seed": ord(name)}),
            )
            self.ports[name] = SimpleNamespace(**own)
            benches += [later(each, (late or {}).get(name, 0)) for each in own.values()]
            self._expect(own_bursts, iter(beats))
        simulate(dut, *benches, background=[self.server])
        self.written = memory.data.view("<u4").tolist()
        self.users = users(self.server)

    def _expect(self, asked: list[dict[str, int]], beats: Any) -> None:
        for burst in asked:
            for beat in range(burst["length"] + 1):
                address = burst["address"] + 4 * beat
                new = merged(self.expected[address // 4], next(beats))
                if not is_bad(address):
                    self.expected[address // 4] = new


@pytest.mark.parametrize("latency", [0, 12])
def test_each_writer_gets_its_own_responses(stalls: Stalls, latency: int) -> None:
    dut = compiled(WriteArbiter, 32, 32, 4)
    asked = {"a": requests(25, 0), "b": requests(20, USER_B)}
    ran = Run(dut, asked, latency=latency, stalls=stalls)
    assert ran.written == ran.expected, stalls
    for name, own_bursts in asked.items():
        errors = [
            any(is_bad(burst["address"] + 4 * beat) for beat in range(burst["length"] + 1))
            for burst in own_bursts
        ]
        assert ran.ports[name].response.bits == errors, stalls
        assert any(errors)


@pytest.mark.parametrize(("writer", "waits"), [("a", 0), ("b", 1)])
def test_one_that_asks_alone_has_the_whole_port(writer: str, waits: int) -> None:
    """Writer B waits for a cycle, once: the port is A's at the start."""
    dut = compiled(WriteArbiter, 32, 32, 16)
    ran = Run(dut, {writer: requests(10, 0x80, 3)})
    port = ran.ports[writer]
    assert port.write.cycles == [waits + 4 * burst for burst in range(10)]
    assert port.beats.cycles == ran.server.beats == [waits + beat for beat in range(40)]
    assert port.response.cycles == ran.server.responses


def test_a_burst_whose_beats_are_late_is_not_interrupted() -> None:
    dut = compiled(WriteArbiter, 32, 32, 16)
    asked = {"a": requests(2, 0, 15), "b": requests(1, USER_B, 0)}
    ran = Run(dut, asked, late={"b": 5})
    assert ran.users == [0, 1, 0]
    assert ran.ports["b"].beats.cycles == [16 - 5]


@pytest.mark.parametrize("names", [["request"], ["request", "data"]], ids=["reads", "writes"])
def test_no_more_bursts_are_in_flight_than_it_can_remember(names: list[str]) -> None:
    writes = "data" in names
    reader = compiled(ReadArbiter, 32, 32, 4, block_ram=False)
    dut: Any = compiled(WriteArbiter, 32, 32, 4) if writes else reader
    inputs = {f"a.{name}.valid": 1 for name in names}
    inputs |= {f"port.{name}.ready": 1 for name in names}
    inputs |= {"a.data.payload.last": 1} if writes else {}
    outputs = [port for name in names for port in (f"port.{name}.valid", f"a.{name}.ready")]
    for levels in clocked(dut, [inputs] * 8, *outputs):
        assert levels == (1, 1, 1, 1, 0, 0, 0, 0)


# --- requests -------------------------------------------------------------------------------------


def test_a_length_has_the_bits_that_a_whole_block_needs_and_no_more() -> None:
    assert 1 << request(16)["length"].width == BEATS_PER_BLOCK


# --- two users of a memory ------------------------------------------------------------------------


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

    simulate(
        dut,
        *(bench for _, writing, _ in benches for bench in writing.values()),
        *(
            later(bench, lambda responses=writing["response"]: len(responses.bits) == 25)
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
    """Ends of written bursts are compared: a memory may take a beat ahead of its burst."""
    asked = {"a": blocks(4, 0), "b": blocks(4, 5), "write": blocks(4, 10)}
    cycles = []
    for shared in (False, True):
        dut, chip, engine = prepared(kind, shared)
        benches = bursts_of(engine, **asked)
        simulate(dut, *benches.values(), background=chip)
        ends = benches["beats"].cycles[15::16]
        cycles.append([ends, *(benches[name].cycles for name in ("a", "b", "response"))])
    assert cycles[0] == cycles[1]
