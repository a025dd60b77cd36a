"""The simulated devices that the tests of the whole path run on.

Three circuits in all, because each is compiled once: the default one (64 bits, two read ports), a
narrow one with little memory, and a wide one. How their memory behaves costs no compilation. Guard
bytes are on both sides of every allocation.

A Wishbone core takes the place of the narrow AXI4 core behind two bridges, so that the system's
memory, with its stalls and faults, and its host serve Wishbone. The bridges are simple: a request
of Wishbone is a burst of one beat, and the host makes one access at a time.
"""

import ctypes
import gc
import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from numpy.typing import NDArray

import bitlane
from bitlane import Device
from bitlane.driver import ALIGNMENT, Allocation, Allocator, Driver
from bitlane_rtl.bus import BURST_INCR, SLVERR, Axi4, Axi4Lite
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import one_port
from bitlane_rtl.engine import Engine
from bitlane_rtl.wishbone_core import WishboneCore
from bitlane_sim.device import Simulator, SimulatorLink, load_evaluator
from support.seeds import slow

DEFAULT = "sim:compiled"
NARROW = "sim:compiled?width=32&ports=1&memory=256KiB"
WIDE = "sim:compiled?width=128&latency=7&stall=0.5&seed=5"
SIMULATED = [DEFAULT, NARROW, slow(WIDE)]
"""Parameters of a test: the quick tier leaves the wide circuit out."""

WISHBONE = "wishbone"
"""The narrow circuit behind Wishbone, for `opened` alone: its memory answers later than AXI4's."""

NUMPY = "numpy"
DEVICES = [*SIMULATED, NUMPY]
"""Those of a test that needs no circuit."""


@contextmanager
def opened(url: str, *, guarded: bool = True) -> Iterator[bitlane.Device]:
    """Yield the device ``url``; assert that all of its memory is free at the end.

    ``guarded``: assert, too, that nothing was written beside an allocation; the first one is not
    at address 0 then.
    """
    with _wishbone() if url == WISHBONE else bitlane.open(url) as device:
        damaged = guard(device).damaged if guarded else []
        yield device
        gc.collect()  # of errors whose tracebacks hold arrays
        assert device.driver.allocator.pieces == 0, f"{url}: memory was not given back"
        assert not damaged, f"{url}: {damaged[0]}"


def _wishbone() -> bitlane.Device:
    """Return the device of a Wishbone core on a memory that stalls."""
    simulator = wishbone_simulator(replace(one_port(32), memory_bytes=1 << 18))
    simulator.set_latency(3)
    simulator.set_stalls(0.3, seed=7)
    return bitlane.Device(Driver(SimulatorLink(simulator)))


def link_of(device: bitlane.Device | Driver) -> SimulatorLink:
    driver = device if isinstance(device, Driver) else device.driver
    assert isinstance(driver.link, SimulatorLink)
    return driver.link


def simulator_of(device: bitlane.Device | Driver) -> Simulator:
    return link_of(device).simulator


def memory_of(device: bitlane.Device) -> NDArray[np.uint8]:
    """Return the device's memory itself."""
    memory = device.driver.link.memory_view
    assert memory is not None
    return memory


def heal(device: bitlane.Device | Driver) -> None:
    """End every fault of the memory. It stays as slow as it is."""
    simulator = simulator_of(device)
    simulator.inject_error()
    simulator.inject_hang()


def noise(size: int, seed: int) -> NDArray[np.uint8]:
    """``size`` random bytes that ``seed`` gives."""
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


_GUARD = (np.arange(ALIGNMENT, dtype=np.uint8) * 37 + 0x5B).astype(np.uint8)


class GuardedAllocator(Allocator):
    """Allocates with guard bytes before and behind, and notes which have been written over.

    The bytes behind begin at the first one that the caller did not ask for.
    """

    def __init__(self, base: int, memory: NDArray[np.uint8]) -> None:
        super().__init__(base, memory.size)
        self._base = base
        self._memory = memory
        self._whole: dict[Allocation, Allocation] = {}
        self.damaged: list[str] = []

    def largest(self) -> int:
        return max(0, super().largest() - 2 * ALIGNMENT)

    @property
    def taken(self) -> Mapping[Allocation, int]:
        return {piece: piece.address + piece.size for piece in self._whole}

    @property
    def free_bytes(self) -> int:
        return max(0, super().free_bytes - 2 * ALIGNMENT)

    def allocate(self, size: int) -> Allocation:
        whole = super().allocate(max(size, 1) + 2 * ALIGNMENT)
        piece = Allocation(whole.address + ALIGNMENT, size)
        self._whole[piece] = whole
        for guard in self._guards(piece):
            guard[:] = _GUARD
        return piece

    def free(self, piece: Allocation) -> None:
        if piece not in self._whole:
            super().free(piece)
        for side, guard in zip(("before", "behind"), self._guards(piece), strict=True):
            wrong = np.nonzero(guard != _GUARD)[0]
            if wrong.size:
                self.damaged.append(f"{piece}: bytes {wrong.tolist()} of the guard {side} it")
        super().free(self._whole.pop(piece))

    def _guards(self, piece: Allocation) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        start = piece.address - self._base
        end = start + max(piece.size, 1)
        return self._memory[start - ALIGNMENT : start], self._memory[end : end + ALIGNMENT]


def guard(device: Device) -> GuardedAllocator:
    """Guard all later allocations of ``device``, a simulated one."""
    driver = device.driver
    memory = driver.link.memory_view
    assert memory is not None
    guarded = GuardedAllocator(driver.geometry.memory_base, memory)
    assert not driver.allocator.pieces
    driver._allocator = guarded
    return guarded


def resident_bytes(array: NDArray[np.uint8]) -> int:
    """Return the bytes of resident pages of ``array``; a page never written is not resident."""
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    length = array.ctypes.data + array.size - start
    pages = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(length), pages)
    assert not failed, ctypes.get_errno()
    return mmap.PAGESIZE * sum(page & 1 for page in pages)


class BridgedCore(wiring.Component):
    """A `WishboneCore` with the ports of a `Core` with one read port."""

    m_axi: Any
    s_axil: Any
    irq: Signal

    def __init__(self, configuration: Configuration, engine: Engine | None = None) -> None:
        assert engine is None, "a Wishbone core is not recorded"
        self._configuration = configuration
        super().__init__(
            {
                "m_axi": Out(Axi4(configuration.address_width, configuration.data_width)),
                "s_axil": In(Axi4Lite()),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = WishboneCore(self._configuration)
        m.d.comb += self.irq.eq(core.irq)
        self._memory(m, core.wbm)
        self._control(m, core.wbs)
        return m

    def _memory(self, m: Module, bus: Any) -> None:
        """Make each request a burst of one beat, and each answer of either kind ACK or ERR."""
        axi = self.m_axi
        size = exact_log2(self._configuration.data_bytes)
        writes, reads = Signal(), Signal()
        m.d.comb += [writes.eq(bus.stb & bus.we), reads.eq(bus.stb & ~bus.we)]
        for name in ("aw", "ar"):
            m.d.comb += [
                getattr(axi, f"{name}addr").eq(bus.adr),
                getattr(axi, f"{name}size").eq(size),
                getattr(axi, f"{name}burst").eq(BURST_INCR),
            ]
        accepted = {}
        for name in ("aw", "w"):
            valid, ready = getattr(axi, f"{name}valid"), getattr(axi, f"{name}ready")
            done = Signal(name=f"{name}_done")
            accepted[name] = done | ready
            m.d.comb += valid.eq(writes & ~done)
            m.d.sync += done.eq(bus.stall & (done | (valid & ready)))
        write_accepted = accepted["aw"] & accepted["w"]
        failed = (axi.bvalid & axi.bresp[1]) | (axi.rvalid & axi.rresp[1])
        m.d.comb += [
            axi.arvalid.eq(reads),
            axi.wdata.eq(bus.dat_w),
            axi.wstrb.eq(bus.sel),
            axi.wlast.eq(1),
            axi.bready.eq(1),
            axi.rready.eq(1),
            bus.stall.eq((writes & ~write_accepted) | (reads & ~axi.arready)),
            bus.ack.eq((axi.bvalid | axi.rvalid) & ~failed),
            bus.err.eq(failed),
            bus.dat_r.eq(axi.rdata),
        ]

    def _control(self, m: Module, bus: Any) -> None:
        """Make an access to the control window of each of the host's."""
        axil = self.s_axil
        waiting, ends = Signal(), Signal()
        accepted = bus.stb & ~bus.stall
        m.d.comb += [
            bus.stb.eq(~waiting & ((axil.awvalid & axil.wvalid) | axil.arvalid)),
            bus.cyc.eq(waiting | bus.stb),
            bus.we.eq(axil.awvalid),
            bus.sel.eq(axil.wstrb),
            bus.dat_w.eq(axil.wdata),
            axil.awready.eq(accepted & bus.we),
            axil.wready.eq(accepted & bus.we),
            axil.arready.eq(accepted & ~bus.we),
            ends.eq(waiting & (bus.ack | bus.err)),
            axil.rdata.eq(bus.dat_r),
        ]
        with m.If(bus.we):
            m.d.comb += bus.adr.eq(axil.awaddr)
        with m.Else():
            m.d.comb += bus.adr.eq(axil.araddr)
        wrote = Signal()
        with m.If(accepted):
            m.d.sync += [waiting.eq(1), wrote.eq(bus.we)]
        with m.Elif(ends):
            m.d.sync += waiting.eq(0)
        response = bus.err.replicate(2) & SLVERR
        m.d.comb += [
            axil.bvalid.eq(ends & wrote),
            axil.rvalid.eq(ends & ~wrote),
            axil.bresp.eq(response),
            axil.rresp.eq(response),
        ]


def wishbone_simulator(configuration: Configuration) -> Simulator:
    """Return a compiled simulator of the system with a Wishbone core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitlane_sim.system.system.Core", BridgedCore)
        return Simulator(configuration, load_evaluator("compiled"))
