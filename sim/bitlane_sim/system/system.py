"""The simulated system, itself a circuit: engine, memory, monitor, and a manager for control."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.core import Core
from cppsim import StorageAccess

from .axi4_memory import Axi4Memory
from .axi4_memory.interface import AddressRange, MemoryControl, ReadStorage, WriteStorage
from .control_manager import ControlAccess, ControlManager
from .monitor import Monitor
from .monitor.measure import COUNTER_BITS, ChannelReport
from .monitor.recorder import Recorder, RecordStorage, WatchedEngine
from .ports import (
    AXI_CHANNELS,
    EVENTS_BIT,
    Violation,
    Where,
    measured_channels,
    record_port,
    storage_ports,
)


class System(wiring.Component):
    """An engine at its memory.

    Parameters
    ----------
    configuration
        Of the engine.
    addresses
        Addresses of the RAM; by default those of the engine's memory.
    recorded : bool
        Whether a `Recorder` takes down what happens on the buses.

    Members
    -------
    control : ``In(ControlAccess())``
        Accesses to the engine's control window.
    irq : ``Out(1)``
        The engine's interrupt line.
    memory : ``In(MemoryControl(address_width))``
        How the memory behaves.
    read, read_b, write : ``Out(ReadStorage(addresses))``, ``Out(WriteStorage(addresses))``
        Ports of the RAM that holds the memory; ``read_b`` only if the engine has a second port.
    record : ``Out(RecordStorage())``
        Port of the RAM that holds records; this and the next three only if ``recorded``.
    record_limit, record_count, record_cut
        Those of `Recorder`.
    clear, cycle, violation, violation_where, violation_cycle, aw, w, b, ar, r, ar_b, r_b, doorbell
        Those of ``Monitor``.

    Attributes
    ----------
    configuration : Configuration
    two : bool
        Whether the engine has a second read port.
    channels : list of str
        Channels that are measured.
    storage : list of StoragePort
        What an evaluator needs to serve the RAM.
    """

    control: Any
    irq: Signal
    memory: Any
    read: Any
    read_b: Any
    write: Any
    clear: Signal
    cycle: Signal
    violation: Signal
    violation_where: Signal
    violation_cycle: Signal
    record: Any
    record_limit: Signal
    record_count: Signal
    record_cut: Signal

    def __init__(
        self,
        configuration: Configuration,
        addresses: AddressRange | None = None,
        *,
        recorded: bool = False,
    ) -> None:
        self.configuration = configuration
        self._recorder = Recorder() if recorded else None
        self.two = configuration.two_ports
        self.channels = measured_channels(two=self.two)
        self._addresses = addresses or AddressRange(
            configuration.address_width,
            configuration.data_width,
            configuration.memory_base,
            configuration.memory_bytes,
        )
        self.storage = storage_ports(two=self.two)
        members = {
            "control": In(ControlAccess()),
            "irq": Out(1),
            "memory": In(MemoryControl(configuration.address_width)),
            "clear": In(1),
            "cycle": Out(COUNTER_BITS),
            "violation": Out(Violation),
            "violation_where": Out(Where),
            "violation_cycle": Out(COUNTER_BITS),
        }
        members |= {name: Out(ChannelReport()) for name in self.channels}
        members |= {
            port.enable.removesuffix("__enable"): Out(
                ReadStorage(self._addresses)
                if port.access is StorageAccess.READ
                else WriteStorage(self._addresses)
            )
            for port in self.storage
        }
        if recorded:
            self.storage.append(record_port())
            members |= {
                "record": Out(RecordStorage()),
                "record_limit": In(32),
                "record_count": Out(32),
                "record_cut": Out(1),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        widths = self.configuration.address_width, self.configuration.data_width
        engine = WatchedEngine(self.configuration) if self._recorder else None
        m.submodules.core = core = Core(self.configuration, engine)
        m.submodules.memory = memory = Axi4Memory(self._addresses, two=self.two)
        m.submodules.manager = manager = ControlManager()
        m.submodules.monitor = monitor = Monitor(*widths, two=self.two)
        wiring.connect(m, core.m_axi, memory.axi)
        wiring.connect(m, manager.axil, core.s_axil)
        wiring.connect(m, wiring.flipped(self.control), manager.access)
        wiring.connect(m, wiring.flipped(self.memory), memory.control)
        wiring.connect(m, memory.read, wiring.flipped(self.read))
        wiring.connect(m, memory.write, wiring.flipped(self.write))
        looks = [(monitor.axi, core.m_axi), (monitor.axil, core.s_axil)]
        if self.two:
            wiring.connect(m, core.m_axi_b, memory.axi_b)
            wiring.connect(m, memory.read_b, wiring.flipped(self.read_b))
            looks.append((monitor.axi_b, core.m_axi_b))
        for look, bus in looks:
            for name in look.signature.members:
                m.d.comb += getattr(look, name).eq(getattr(bus, name))
        m.d.comb += [self.irq.eq(core.irq), monitor.clear.eq(self.clear)]
        for name in ("cycle", "violation", "violation_where", "violation_cycle"):
            m.d.comb += getattr(self, name).eq(getattr(monitor, name))
        for name in self.channels:
            wiring.connect(m, getattr(monitor, name), wiring.flipped(getattr(self, name)))
        if self._recorder and engine:
            m.submodules.recorder = self._recorder
            self._record(m, self._recorder, core)
            m.d.comb += self._recorder.traffic.cycle.eq(monitor.cycle)
            for bit, event in enumerate((monitor.rung, *engine.events), EVENTS_BIT):
                m.d.comb += self._recorder.traffic.flags[bit].eq(event)
        return m

    def _record(self, m: Module, recorder: Recorder, core: Core) -> None:
        """Show the recorder all handshakes, and the addresses in them."""
        traffic = recorder.traffic
        for number, name in enumerate(AXI_CHANNELS):
            if name not in self.channels:
                continue
            bus = core.m_axi_b if name.endswith("_b") else core.m_axi
            channel = name.removesuffix("_b")
            for bit, part in enumerate(("valid", "ready"), 2 * number):
                m.d.comb += traffic.flags[bit].eq(getattr(bus, channel + part))
            if channel.startswith("a"):
                m.d.comb += [
                    traffic[f"{name}_address"].eq(getattr(bus, f"{channel}addr")),
                    traffic[f"{name}_beats"].eq(getattr(bus, f"{channel}len") + 1),
                ]
        m.d.comb += [
            recorder.limit.eq(self.record_limit),
            self.record_count.eq(recorder.count),
            self.record_cut.eq(recorder.cut),
        ]
        wiring.connect(m, recorder.storage, wiring.flipped(self.record))
