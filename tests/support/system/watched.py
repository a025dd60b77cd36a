"""A simulated system with RAM at every address, which sees accesses outside the engine's memory."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.configuration import Configuration
from bitlane_sim.evaluator import Evaluator
from bitlane_sim.memory.address_range import AddressRange
from bitlane_sim.system import System

_PORT = "escapes"


class Watched(wiring.Component):
    """A `System` whose RAM fills the address space.

    ``escapes`` counts words read or written outside MEMORY_BASE to MEMORY_LAST, up to its width.
    """

    def __init__(self, configuration: Configuration) -> None:
        width, data_width = configuration.address_width, configuration.data_width
        self._configuration = configuration
        self._system = System(configuration, AddressRange(width, data_width, 0, 1 << width))
        self.storage = self._system.storage
        super().__init__({**self._system.signature.members, _PORT: Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.system = system = self._system
        for name, member in system.signature.members.items():
            inner, outer = getattr(system, name), getattr(self, name)
            if member.is_signature:
                wiring.connect(m, inner, wiring.flipped(outer))
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        config = self._configuration
        outside = []
        for port in self.storage:
            storage: Any = getattr(system, port.enable.removesuffix("__enable"))
            first, last = (
                address // config.data_bytes for address in (config.memory_base, config.memory_last)
            )
            beyond = (storage.address < first) | (storage.address > last)
            outside.append(storage.enable & beyond)
        count: Signal = getattr(self, _PORT)
        m.d.sync += count.eq(count + sum(outside))
        return m


def escapes(evaluator: Evaluator) -> int:
    """Words read or written outside the engine's memory since power-on."""
    return evaluator.get(_PORT)
