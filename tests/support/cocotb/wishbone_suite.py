"""Tests of an exported core on Wishbone: cocotb finds them here, pytest does not."""

import random
from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Event, RisingEdge

from bitlane_rtl.abi import IDENTITY, WORD_BYTES, Op, Status, register
from support.cocotb.bench import Bench, Memory, configuration
from support.commands import logic, random_commands

_NS = 10
_OUTPUTS = ("we", "adr", "sel", "dat")


class WishboneRam:
    """Answers requests of ``wbm`` in order, an answer a cycle; ``chance``: to stall, or to wait.

    Violations of the bus rules by the core go to ``broken``.
    """

    def __init__(self, dut: Any, memory: Memory, generator: random.Random) -> None:
        self._dut = dut
        self._memory = memory
        self._generator = generator
        self.chance = 0.0
        self.broken: list[str] = []
        cocotb.start_soon(self._run())

    def _of(self, name: str) -> Any:
        return getattr(self._dut, f"wbm_{name}_o")

    def _input(self, name: str, value: int) -> None:
        getattr(self._dut, f"wbm_{name}_i").value = value

    def _waits(self) -> bool:
        return self._generator.random() < self.chance

    async def _run(self) -> None:
        edge = RisingEdge(self._dut.clk)
        due: deque[tuple[bool, int]] = deque()
        direction, held, stall = 0, None, True
        while True:
            self._input("stall", stall)
            good, word = due.popleft() if due and not self._waits() else (None, 0xBAD)
            self._input("ack", good is True)
            self._input("err", good is False)
            self._input("dat", word)
            await edge
            if self._dut.rst.value == 1:
                due.clear()
                held, stall = None, True
                continue
            cyc, stb = self._of("cyc").value == 1, self._of("stb").value == 1
            request = [int(self._of(name).value) for name in _OUTPUTS] if stb else None
            open_ = bool(due) or good is not None
            self._expect(cyc or not (stb or open_), "CYC is low while an answer is due")
            self._expect(held in (None, request), "a request changed while STALL was high")
            if request and not stall:
                self._expect(not open_ or request[0] == direction, "WE changed before the answers")
                direction = request[0]
                due.append(self._access(*request))
            held = request if stall else None
            stall = self._waits()

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.broken.append(what)

    def _access(self, we: int, address: int, strobe: int, word: int) -> tuple[bool, int]:
        size = len(self._of("sel"))
        try:
            found = self._memory[address : address + size]
            for byte in range(size) if we else ():
                if strobe >> byte & 1:
                    here = slice(address + byte, address + byte + 1)
                    self._memory[here] = (word >> 8 * byte & 0xFF).to_bytes(1, "little")
        except (IndexError, OSError):
            return False, 0xBAD
        return True, int.from_bytes(found, "little")


class WishboneWords:
    """Accesses words through ``wbs``, pipelined or, if ``classic``, with STB until the answer."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self.classic = False
        for name in ("cyc", "stb", *_OUTPUTS):
            self._drive(name, 0)

    def _drive(self, name: str, value: int) -> None:
        getattr(self._dut, f"wbs_{name}_i").value = value

    async def access(self, we: int, address: int, word: int = 0, sel: int = 15) -> tuple[bool, int]:
        """Return whether the answer is ACK, and the word."""
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        for name, value in zip(
            ("cyc", "stb", *_OUTPUTS), (1, 1, we, address, sel, word), strict=True
        ):
            self._drive(name, value)
        while True:
            await edge
            ack, err = dut.wbs_ack_o.value == 1, dut.wbs_err_o.value == 1
            if dut.wbs_stall_o.value == 0 and not self.classic:
                self._drive("stb", 0)
            if ack or err:
                assert not (ack and err)
                self._drive("cyc", 0)
                self._drive("stb", 0)
                return ack, int(dut.wbs_dat_o.value)

    async def read_dword(self, address: int) -> int:
        good, word = await self.access(0, address)
        assert good, f"read of {address:#x}"
        return word

    async def write_dword(self, address: int, word: int) -> None:
        good, _ = await self.access(1, address, word)
        assert good, f"write of {address:#x}"

    async def write(self, address: int, data: bytes) -> None:
        for offset, word in enumerate(np.frombuffer(data, "<u4").tolist()):
            await self.write_dword(address + WORD_BYTES * offset, word)


class WishboneBench(Bench):
    """A core on Wishbone, its memory of random bytes, and its control window."""

    def __init__(self, dut: Any, name: str, chance: float = 0.0) -> None:
        self.dut = dut
        self.configuration = configuration()
        self.generator = random.Random(f"{name} 0")
        size = self.configuration.memory_bytes
        data = np.frombuffer(self.generator.randbytes(size), np.uint8).copy()
        self.memory = Memory(data, self.configuration.memory_base)
        cocotb.start_soon(Clock(dut.clk, _NS, "ns").start())
        dut.rst.value = 1
        self.ram = WishboneRam(dut, self.memory, self.generator)
        self.ram.chance = chance
        self.broken = self.ram.broken
        self.control: Any = WishboneWords(dut)
        self.submitted = 0
        self.trouble = Event()

    async def start(self) -> None:
        """Reset the core."""
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 3)
        self.dut.rst.value = 0
        self.submitted = 0
        await ClockCycles(self.dut.clk, 2)
        assert self.dut.wbm_cyc_o.value == 0


_A, _B, _Y = 64, 1024, 3072


async def started(dut: Any, name: str, chance: float = 0.0) -> WishboneBench:
    bench = WishboneBench(dut, name, chance)
    await bench.start()
    return bench


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(classic=[False, True])
async def test_registers(dut: Any, classic: bool) -> None:
    bench = await started(dut, "registers")
    bench.control.classic = classic
    assert await bench.read("IDENTITY") == IDENTITY
    assert await bench.read("GEOMETRY", "LOOPS") == bench.configuration.loops
    offset = register("TIMEOUT").offset
    await bench.control.write_dword(offset, 0x12345678)
    for sel, address, good in ((3, offset, False), (0, offset, True), (15, offset + 1, False)):
        assert (await bench.control.access(1, address, 0, sel))[0] == good
    assert await bench.read("TIMEOUT") == 0x12345678


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.5, 0.9])
async def test_random_commands(dut: Any, chance: float) -> None:
    bench = await started(dut, f"random {chance}", chance)
    bench.control.classic = chance == 0.5
    await bench.check(random_commands(bench.generator, bench.configuration, 4))


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.5])
async def test_long_bursts(dut: Any, chance: float) -> None:
    bench = await started(dut, f"bursts {chance}", chance)
    await bench.check([logic(Op.XOR, _A + 3, _B + 5, _Y + 1, 600)])


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(address=[_A + 150, _B + 170, _Y + 356], chance=[0.0, 0.5])
async def test_an_error_stops_the_core_and_clear_starts_it(
    dut: Any, address: int, chance: float
) -> None:
    bench = await started(dut, f"error {address} {chance}", chance)
    size = bench.configuration.data_bytes
    bad = frozenset(range(address - address % size, address - address % size + size))
    tasks = [logic(Op.XOR, _A + k, _B, _Y + 256 * k, 200) for k in range(3)]
    writes = address >= _Y
    bench.memory.bad = bad
    model = await bench.check(tasks, **{"bad_writes" if writes else "bad_reads": bad})
    assert model.fault is not None
    assert model.fault.status is (Status.WRITE_ERROR if writes else Status.READ_ERROR)
    bench.memory.bad = frozenset()
    await bench.write("CLEAR", 1)
    bench.submitted = 0
    await bench.check(tasks)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def test_reset_in_the_middle_of_a_burst(dut: Any) -> None:
    bench = await started(dut, "reset", 0.3)
    task = logic(Op.XOR, _A + 3, _B + 5, _Y + 1, 600)
    for requests in (1, 5, 40):
        await bench.submit([task])
        for _ in range(requests):
            await RisingEdge(dut.clk)
            while dut.wbm_stb_o.value != 1:
                await RisingEdge(dut.clk)
        await bench.start()
        await bench.check([task])
