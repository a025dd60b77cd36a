"""The harness of a campaign: a system with its RAM inside, and a window of cycles for faults.

One instance of it can run alone, in the single simulator, which writes waveforms.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from amaranth.hdl import ClockDomain, Module, ResetInserter, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

import cppsim
from bitlane_rtl.configuration import Configuration
from cppsim import Program, StorageAccess
from cppsim.circuits import Testbench, execute, value_at

from ..system.axi4_memory.interface import MemoryControl
from ..system.ports import MEMORY_CHANNELS
from ..system.system import System
from .arrays import Bytes
from .scoreboard import Observed

_COUNT_BITS = 32

_ALWAYS = 256
"""The chance of a stall of a channel that does nothing."""

_FAULTS = ("error_read", "error_write", "hang_read", "hang_write")
"""Settings of the memory that hold only within the window."""


class Harness(wiring.Component):
    """A `System` that needs nothing around it, so that many can be simulated at once.

    Parameters
    ----------
    configuration : Configuration
    rows : int
        Words of the RAM, a power of two. Fewer than the memory has serve where only time matters:
        addresses are taken modulo ``rows``.
    init : list of int
        Words of the RAM at power-on; by default 0.

    Members
    -------
    control, irq, clear, cycle, violation, violation_where, violation_cycle, aw, w and so on
        Those of `System`.
    memory : ``In(MemoryControl(address_width))``
        That of `System`; errors and hangs only happen within the window.
    go : ``In(1)``
        While it is high, ``count`` counts cycles; while it is low, ``count`` is 0.
    count : ``Out(32)``
    first, last : ``In(32)``
        The window: cycles in which ``go`` is high and ``first <= count <= last``.
    mute : ``In(5)``
        Within the window AR, R, AW, W and B do nothing, each whose bit is 1; the lowest is AR's.
    reset : ``In(1)``
        Within the window the system is reset, as at power-on. The RAM keeps its bytes.
    """

    go: Signal
    count: Signal
    first: Signal
    last: Signal
    mute: Signal
    reset: Signal
    memory: Any

    def __init__(
        self, configuration: Configuration, rows: int, init: list[int] | None = None
    ) -> None:
        self._system = System(configuration)
        self._configuration = configuration
        self.ram: Memory = Memory(
            shape=unsigned(configuration.data_width), depth=rows, init=init or []
        )
        inside = {port.enable.removesuffix("__enable") for port in self._system.storage}
        members = {
            name: member
            for name, member in self._system.signature.members.items()
            if name not in inside
        }
        members |= {
            "go": In(1),
            "count": Out(_COUNT_BITS),
            "first": In(_COUNT_BITS),
            "last": In(_COUNT_BITS),
            "mute": In(5),
            "reset": In(1),
        }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Only the system is reset, and only from here.
        m.domains.sync = ClockDomain("sync", reset_less=True)
        system = self._system
        within = Signal()
        reset = Signal()
        m.submodules.system = ResetInserter(reset)(system)
        m.d.comb += [
            within.eq(self.go & (self.count >= self.first) & (self.count <= self.last)),
            reset.eq(within & self.reset),
        ]
        with m.If(self.go):
            m.d.sync += self.count.eq(self.count + 1)
        with m.Else():
            m.d.sync += self.count.eq(0)
        for name, member in self.signature.members.items():
            inner: Any = getattr(system, name, None)
            if inner is None:
                continue
            outer = getattr(self, name)
            if name == "memory":
                self._control(m, inner, within)
            elif member.is_signature:
                wiring.connect(m, inner, wiring.flipped(outer))
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        self._ram(m, system)
        return m

    def _control(self, m: Module, inner: wiring.PureInterface, within: Signal) -> None:
        """The memory's settings; faults only within the window."""
        for name in MemoryControl(self._configuration.address_width).members:
            value = getattr(self.memory, name)
            if name in _FAULTS:
                with m.If(within):
                    m.d.comb += getattr(inner, name).eq(value)
            else:
                m.d.comb += getattr(inner, name).eq(value)
        for bit, name in enumerate(MEMORY_CHANNELS):
            with m.If(within & self.mute[bit]):
                m.d.comb += getattr(inner, f"stall_{name}").eq(_ALWAYS)

    def _ram(self, m: Module, system: System) -> None:
        width = self._configuration.data_width
        m.submodules.ram = ram = self.ram
        for storage in system.storage:
            side: Any = getattr(system, storage.enable.removesuffix("__enable"))
            if storage.access is StorageAccess.READ:
                read = ram.read_port()
                m.d.comb += [
                    read.en.eq(side.enable),
                    read.addr.eq(side.address),
                    side.data.eq(read.data),
                ]
            else:
                write = ram.write_port(granularity=8)
                m.d.comb += [
                    write.addr.eq(side.address),
                    write.data.eq(side.data),
                    write.en.eq(side.mask & side.enable.replicate(width // 8)),
                ]


_PERIOD = 1e-8

_Context: TypeAlias = Any
"""The context of a testbench."""


def run_alone(
    configuration: Configuration,
    ram: Bytes,
    programs: Sequence[Program],
    instance: int,
    vcd: Path | None = None,
) -> list[Observed]:
    """Run ``programs`` for ``instance`` one after the other, from power-on.

    Returns results and RAM after each, as those of a batch of one instance.
    """
    size = configuration.data_bytes
    words = [
        int.from_bytes(ram[at : at + size].tobytes(), "little") for at in range(0, ram.size, size)
    ]
    harness = Harness(configuration, len(words), words)
    ports = {"__".join(map(str, path)): x for path, _, x in harness.signature.flatten(harness)}
    memory: Any = harness.ram.data
    simulator = cppsim.Simulator(harness)
    simulator.add_clock(_PERIOD)
    observed: list[Observed] = []

    async def work(context: _Context) -> None:
        bench = Testbench(context, ports, context.tick)
        for program in programs:
            found = await _results(program, bench, instance)
            results = {name: np.asarray(value)[None] for name, value in found.items()}
            rows = [context.get(memory[number]) for number in range(len(words))]
            content = b"".join(int(row).to_bytes(size, "little") for row in rows)
            observed.append(Observed(results, np.frombuffer(content, np.uint8)[None]))

    simulator.add_testbench(work)
    with simulator.write_vcd(str(vcd)) if vcd is not None else nullcontext():
        simulator.run()
    return observed


async def _results(program: Program, bench: Testbench, instance: int) -> dict[str, Any]:
    """Execute ``program``; return its results by name: a number, or a list from a repeat."""
    outside = {id(item) for item in program.items}
    results: dict[str, Any] = {}
    async for item, value in execute(program.items, bench, partial(value_at, instance, 1)):
        if id(item) in outside:
            results[item.values] = value
        else:
            results.setdefault(item.values, []).append(value)
    return results
