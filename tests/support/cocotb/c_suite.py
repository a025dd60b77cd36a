"""Tests in which the driver in C drives an exported core: cocotb finds them here, pytest does not.

C runs in a thread of its own, and each of its accesses is a transaction of the bus model.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cocotb
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiResp

from bitlane.driver import encode
from bitlane_rtl.abi import RECORD_BYTES, RING_OFFSET, Op, Status, register
from support.c_driver import CDriver, command_of, compiled
from support.cocotb.bench import Bench
from support.cocotb.suite import COMMANDS
from support.commands import logic, random_commands
from support.rtl.records import Task

_LOOKS = 2000


class CBench(Bench):
    """A bench that submits with the driver in C, and looks at every word that it writes.

    Attributes
    ----------
    ring : dict
        The last word that was written at each offset of the ring.
    """

    def __init__(self, dut: Any, name: str, library: Path) -> None:
        super().__init__(dut, name)
        self.ring: dict[int, int] = {}
        self.driver = CDriver(library, resume(self._read), resume(self._write))

    async def _read(self, offset: int) -> int:
        return int(await self.control.read_dword(offset))

    async def _write(self, offset: int, value: int) -> None:
        if offset >= RING_OFFSET:
            self.ring[offset] = value
        await self.control.write_dword(offset, value)

    async def open(self) -> None:
        await self.reset()
        assert await bridge(self.driver.open)() == "DONE"

    async def submit(self, tasks: Sequence[Task]) -> None:
        # The bench switches it off at the end of each check.
        await bridge(self.driver.interrupt)(True)
        for number, task in enumerate(tasks):
            task.interrupt = number == len(tasks) - 1
            command = command_of(task)
            slot = RING_OFFSET + self.driver.core.submitted % self.driver.core.slots * RECORD_BYTES
            self.ring.clear()
            submit = bridge(self.driver.submit)
            assert await submit(command, interrupt=task.interrupt) == "DONE"
            words = encode(command, interrupt=task.interrupt).tolist()
            assert self.ring == {slot + 4 * k: word for k, word in enumerate(words)}, str(task)

    async def finish(self) -> None:
        await super().finish()
        assert await bridge(self.driver.acknowledge)()
        await ClockCycles(self.dut.clk, 2)
        assert self.dut.irq.value == 0
        assert await bridge(self.driver.wait)(_LOOKS) in ("DONE", "STOPPED")


async def started(dut: Any, name: str, folder: str) -> CBench:
    bench = CBench(dut, name, compiled(Path(folder)))
    await bench.open()
    return bench


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.5])
async def test_random_commands(dut: Any, chance: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = await started(dut, f"C, random {chance}", folder)
        bench.watch()
        bench.pause(chance)
        for _ in range(COMMANDS):
            await bench.check(random_commands(bench.generator, bench.configuration, 4))
            assert bench.driver.core.retired == bench.driver.core.submitted


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def test_a_fault_is_told_and_a_cleared_core_goes_on(dut: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = await started(dut, "C, fault", folder)
        tasks = [logic(Op.XOR, 64 + k, 1024, 3072 + 256 * k, 200) for k in range(3)]
        bad = frozenset(range(64 + 160, 64 + 160 + bench.configuration.data_bytes))
        with bench.memory.failing(bad, AxiResp.SLVERR):
            await bench.check(tasks, bad_reads=bad)
            assert await bridge(bench.driver.look)() == "STOPPED"
        code = register("FAULT")["CODE"].extract(bench.driver.core.fault)
        assert code == Status.READ_ERROR
        assert await bridge(bench.driver.clear)(_LOOKS) == "DONE"
        await bench.check(tasks)
        assert await bridge(bench.driver.wait)(_LOOKS) == "DONE"
