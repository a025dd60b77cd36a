"""Tests of an exported core that a simulator runs: cocotb finds them here, pytest does not."""

import random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiResp

from bitlane_rtl.abi import ABI_VERSION, BEATS_PER_BLOCK, IDENTITY, Op, Status, register
from support.cocotb.bench import Bench
from support.commands import expected, logic, random_commands
from support.rtl.records import Task

_SIZE = 600
COMMANDS = 4
"""Random commands of a test."""
_A, _B, _Y = 64, 1024, 3072


async def started(dut: Any, name: str) -> Bench:
    bench = Bench(dut, name)
    await bench.reset()
    return bench


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def test_registers_say_what_was_exported(dut: Any) -> None:
    bench = await started(dut, "registers")
    configuration = bench.configuration
    assert await bench.read("IDENTITY") == IDENTITY
    assert await bench.read("VERSION") == ABI_VERSION
    assert await bench.read("CAPABILITIES", "OPS") == sum(1 << op for op in configuration.ops)
    assert await bench.read("CAPABILITIES", "LANES") == sum(1 << x for x in configuration.lanes)
    assert await bench.read("CAPABILITIES", "MODES") == sum(1 << x for x in configuration.modes)
    assert await bench.read("GEOMETRY", "LOOPS") == configuration.loops
    assert 1 << await bench.read("GEOMETRY", "DATA_BYTES_LOG2") == configuration.data_bytes
    assert await bench.read("MEMORY_BASE") == configuration.memory_base
    assert await bench.read("MEMORY_LAST") == configuration.memory_last
    # Half a word is refused, and changes nothing.
    before = await bench.read("TIMEOUT")
    answer = await bench.control.write_if.write(register("TIMEOUT").offset, b"\xff\xff")
    assert answer.resp == AxiResp.SLVERR
    assert await bench.read("TIMEOUT") == before


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.5, 0.9])
async def test_random_commands(dut: Any, chance: float) -> None:
    bench = await started(dut, f"random {chance}")
    bench.watch()
    bench.pause(chance)
    left = COMMANDS
    while left > 0:
        count = min(left, 4)
        await bench.check(random_commands(bench.generator, bench.configuration, count))
        left -= count


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(chance=[0.0, 0.5, 0.9])
async def test_long_bursts(dut: Any, chance: float) -> None:
    """The most that a core asks for: bursts of 16 beats, from odd bytes to odd bytes."""
    bench = await started(dut, f"bursts {chance}")
    bench.watch()
    bench.pause(chance)
    op = Op.XOR if Op.XOR in bench.configuration.ops else sorted(bench.configuration.ops)[0]
    tasks = [logic(op, _A + 3, _B + 5 if op.reads_b else None, _Y + 1, _SIZE)]
    await bench.check(tasks)


def _three(bench: Bench) -> list[Task]:
    op = sorted(bench.configuration.ops)[0]
    return [logic(op, _A + k, _B if op.reads_b else None, _Y + 256 * k, 200) for k in range(3)]


def _beat(bench: Bench, address: int) -> frozenset[int]:
    size = bench.configuration.data_bytes
    first = address - address % size
    return frozenset(range(first, first + size))


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(
    kind=["read", "write"], response=[AxiResp.SLVERR, AxiResp.DECERR], chance=[0.0, 0.5]
)
async def test_an_error_stops_the_core_and_clear_starts_it(
    dut: Any, kind: str, response: AxiResp, chance: float
) -> None:
    bench = await started(dut, f"{kind} error {response} {chance}")
    bench.pause(chance)
    tasks = _three(bench)
    reads = [_A + 1 + 150] + ([_B + 170] if tasks[0].b else [])
    for address in reads if kind == "read" else [_Y + 256 + 100]:
        bad = _beat(bench, address)
        with bench.memory.failing(bad, response):
            model = await bench.check(tasks, **{f"bad_{kind}s": bad})
            assert model.fault is not None
            assert model.fault.status is Status[f"{kind.upper()}_ERROR"]
            if kind == "read":
                block = BEATS_PER_BLOCK * bench.configuration.data_bytes
                start = _A if address < _B else _B
                burst = max(min(bad) - min(bad) % block, start)
                assert await bench.read("FAULT_ADDRESS") == burst
            await _stays_silent(bench)
        await bench.write("CLEAR", 1)
        assert await bench.read("FAULT") == 0
        bench.submitted = 0
        await bench.check(tasks)
        await bench.write("CLEAR", 1)
        bench.submitted = 0


async def _stays_silent(bench: Bench) -> None:
    """No access follows a fault."""
    before = bench.memory.reads, bench.memory.writes
    await ClockCycles(bench.dut.clk, 50)
    assert (bench.memory.reads, bench.memory.writes) == before


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(channel=["aw", "w", "ar", "r"])
async def test_reset_in_the_middle_of_a_burst(dut: Any, channel: str) -> None:
    bench = await started(dut, f"reset {channel}")
    bench.watch()
    op = sorted(bench.configuration.ops)[0]
    task = logic(op, _A + 3, _B if op.reads_b else None, _Y + 1, _SIZE)
    before = bench.memory.data.copy()
    after = expected([task], before).memory
    valid = getattr(dut, f"m_axi_{channel}valid")
    for beats in (1, 5, 17):
        bench.pause(0.3)
        await bench.submit([task])
        for _ in range(beats if channel in ("w", "r") else 1):
            await RisingEdge(dut.clk)
            while valid.value != 1:
                await RisingEdge(dut.clk)
        await bench.reset()
        bench.pause(0.0)
        assert not bench.broken, bench.broken
        assert not bench.memory.outside, bench.memory.outside
        assert await bench.read("STATUS") == register("STATUS")["DRAINED"].insert(1)
        assert await bench.read("DOORBELL") == 0
        changed = (bench.memory.data != before) & (bench.memory.data != after)
        assert not changed.any(), f"byte {np.flatnonzero(changed)[0]:#x} is neither old nor new"
        await bench.check([task])


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def test_refused_command_asks_for_nothing(dut: Any) -> None:
    bench = await started(dut, "refused")
    task = random_commands(random.Random(1), bench.configuration, 1)[0]
    task.overrides = {"Y_LAST": bench.configuration.memory_last + 1}
    before = bench.memory.reads, bench.memory.writes
    await bench.submit([task])
    await bench.finish()
    assert await bench.read("FAULT", "CODE") == Status.PAST_MEMORY
    assert (bench.memory.reads, bench.memory.writes) == before
