"""Tests of an exported core on Wishbone: cocotb finds them here, pytest does not."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from bitlane_rtl.abi import IDENTITY, Op, Status, register
from support.cocotb.commands import random_commands
from support.cocotb.wishbone_bench import WishboneBench
from support.commands import logic

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
