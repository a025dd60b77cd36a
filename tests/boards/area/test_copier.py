"""The copier that `bitlane area` compares with DMA cores copies, reports faults and recovers."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from bitlane_boards.area.copier import Copier, Descriptor
from bitlane_rtl.abi import Port, Status
from bitlane_rtl.configurations import copy
from bitlane_sim.system import (
    AddressRange,
    Axi4Memory,
    MemoryControl,
    ReadStorage,
    Response,
    WriteStorage,
)
from cppsim import Model
from support.sim.manager import memory_storage

_BYTES = 1 << 14
_CONFIGURATION = copy()
_PLACE = AddressRange(_CONFIGURATION.address_width, 32, 0, _BYTES)


class _System(wiring.Component):
    """A `Copier` connected to a memory."""

    i: In(stream.Signature(Descriptor(_CONFIGURATION)))
    clear: In(1)
    retired: Out(16)
    fault: Out(1)
    code: Out(8)
    fault_port: Out(2)
    fault_address: Out(32)
    memory: In(MemoryControl(32))
    read: Out(ReadStorage(_PLACE))
    write: Out(WriteStorage(_PLACE))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.copier = copier = Copier(_CONFIGURATION)
        m.submodules.ram = ram = Axi4Memory(_PLACE, two=False)
        wiring.connect(m, copier.m_axi, ram.axi)
        wiring.connect(m, wiring.flipped(self.i), copier.i)
        wiring.connect(m, wiring.flipped(self.memory), ram.control)
        wiring.connect(m, ram.read, wiring.flipped(self.read))
        wiring.connect(m, ram.write, wiring.flipped(self.write))
        m.d.comb += [
            copier.clear.eq(self.clear),
            self.fault.eq(copier.fault),
            self.code.eq(copier.report.code),
            self.fault_port.eq(copier.report.port),
            self.fault_address.eq(copier.report.address),
        ]
        m.d.sync += self.retired.eq(self.retired + copier.retire)
        return m


_SYSTEM = _System()
"""One component for all tests, which is elaborated once."""


class _Bench:
    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.memory: NDArray[np.uint8] = rng.integers(0, 256, _BYTES, np.uint8)
        self.expected = self.memory.copy()
        self._run = Model(_SYSTEM, storage=memory_storage(two=False), buffers={"ram": self.memory})

    def close(self) -> None:
        self._run.close()

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self._run.set(name, value)

    def order(self, source: int, target: int, size: int) -> None:
        """Send a descriptor as soon as the copier accepts it."""
        payload = source | target << 32 | (size - 1) << 64
        self.set(i__payload=payload, i__valid=1)
        assert self._run.until("i__ready", 2000)
        self.set(i__valid=0)
        self.expected[target : target + size] = ~self.memory[source : source + size]

    def get(self, name: str) -> int:
        return self._run.get(name)

    def step(self, cycles: int) -> None:
        self._run.step(cycles)

    def until_retired(self, number: int) -> int:
        """Step until ``number`` descriptors have retired; return the cycles that it took."""
        began = self._run.cycles
        while self.get("retired") < number:
            assert self._run.cycles - began < 10_000, "it hangs"
            self.step(1)
        return self._run.cycles - began


@pytest.fixture
def bench() -> Iterator[_Bench]:
    with closing(_Bench()) as bench:
        yield bench


@pytest.mark.parametrize(("latency", "stall"), [(0, 0), (30, 0), (3, 128)])
def test_bytes_are_copied_and_no_others_change(bench: _Bench, latency: int, stall: int) -> None:
    channels = ("ar", "r", "aw", "w", "b")
    bench.set(memory__latency=latency, **{f"memory__stall_{name}": stall for name in channels})
    bench.set(memory__seed=7, memory__seed_load=1)
    bench.step(1)
    bench.set(memory__seed_load=0)
    rng = np.random.default_rng(2)
    sizes = [1, 2, 3, 4, 5, 63, 64, 65, 300, *rng.integers(1, 200, 10).tolist()]
    target = _BYTES // 2
    for size in sizes:
        source = int(rng.integers(0, _BYTES // 2 - size))
        target += int(rng.integers(1, 9))
        bench.order(source, target, size)
        target += size
    bench.until_retired(len(sizes))
    np.testing.assert_array_equal(bench.memory, bench.expected)
    assert not bench.get("fault")


def test_error_is_latched_and_cleared(bench: _Bench) -> None:
    before = bench.memory.copy()
    bench.set(
        memory__error_read=1,
        memory__error_first=0x104,
        memory__error_last=0x104,
        memory__error_response=Response.SLVERR,
    )
    bench.order(0x100, 0x1000, 64)
    bench.order(0x400, 0x2000, 64)
    bench.step(100)
    assert bench.get("fault")
    assert bench.get("code") == Status.READ_ERROR
    assert bench.get("fault_port") == Port.READ_A
    assert bench.get("fault_address") == 0x100, "the burst's"
    assert bench.get("retired") == 0
    np.testing.assert_array_equal(bench.memory[0x1004:], before[0x1004:])
    assert not bench.get("i__ready"), "a descriptor would be taken after the fault"

    bench.set(memory__error_read=0, clear=1)
    bench.step(20)
    bench.set(clear=0)
    assert not bench.get("fault")
    np.copyto(bench.expected, bench.memory)
    bench.order(0x400, 0x2000, 64)
    bench.until_retired(1)
    np.testing.assert_array_equal(bench.memory, bench.expected)


def test_cycles_of_a_short_copy(bench: _Bench) -> None:
    """A copy of N = 16 beats takes N + 7 cycles from the descriptor's handshake to its retirement.
    axi_cdma's last response arrives after N + 6."""
    bench.order(0x100, 0x1000, 64)
    beats = 16
    assert bench.until_retired(1) == beats + 7
