"""The engine: registers and command ring, sequencer, data path. Speaks native ports, no bus.

Owns what happens at a fault: it latches the first one, stops, and starts afresh when told to.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .abi import Port, Status
from .configuration import Configuration
from .control.registers import Registers
from .control.ring import Completions, Ring
from .control.sequencer import Sequencer, ring_columns
from .datapath.datapath import DataPath
from .ports.control_port import ControlPort
from .ports.memory_port import ReadPort, WritePort
from .ports.read_arbiter import ReadArbiter

__all__ = ["Engine"]


class Engine(wiring.Component):
    """Executes the commands of its ring.

    Members
    -------
    control : ``Out(ControlPort())``
        The control window, see `abi`.
    read_a : ``Out(ReadPort(address_width, data_width))``
        Reads A, and B too if ``read_ports`` is 1.
    read_b : ``Out(ReadPort(address_width, data_width))``
        Only with two read ports and an operation of two operands.
    write : ``Out(WritePort(address_width, data_width))``
    irq : ``Out(1)``
    busy, fault : ``Out(1)``
        The bits of STATUS, for lamps.

    Latency, from ``control.write`` to DOORBELL to the last response of a command that writes N
    beats, on a memory that answers in the next cycle: N + 12 cycles at 32 bits with all operations,
    N + 9 with NOT alone; N + 14 from 64 bits on, N + 11 with NOT alone; 1 more with ``block_ram``.
    The record must have been in the ring for as long as `Sequencer` takes to fetch it.
    A fault stops the engine 1 cycle after it is seen, and is latched 2 cycles after; a refusal 1.
    The completion is written in the cycle in which RETIRED or FAULT changes.
    Throughput: see `DataPath`.
    """

    control: Any
    read_a: Any
    read_b: Any
    write: Any
    irq: Signal
    busy: Signal
    fault: Signal

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        read = ReadPort(configuration.address_width, configuration.data_width)
        two = configuration.has_b and configuration.read_ports == 2
        super().__init__(
            {
                "control": Out(ControlPort()),
                "read_a": Out(read),
                **({"read_b": Out(read)} if two else {}),
                "write": Out(WritePort(configuration.address_width, configuration.data_width)),
                "irq": Out(1),
                "busy": Out(1),
                "fault": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.configuration
        # CLEAR resets whatever can be in the middle of a command.
        flush = Signal()
        data_path = DataPath(config)
        sequencer = Sequencer(config)
        m.submodules.data_path = ResetInserter(flush)(data_path)
        m.submodules.sequencer = ResetInserter(flush)(sequencer)
        m.submodules.registers = registers = Registers(config)
        m.submodules.ring = ring = Ring(config.slots, 32 * ring_columns(config))
        m.submodules.completions = completions = Completions(config.slots)
        wiring.connect(m, wiring.flipped(self.control), registers.control)
        m.d.comb += [
            self.irq.eq(registers.irq),
            self.busy.eq(registers.busy),
            self.fault.eq(registers.fault),
            ring.write.eq(registers.ring_write),
            ring.write_address.eq(registers.ring_write_address),
            ring.write_data.eq(registers.ring_write_data),
            ring.read.eq(sequencer.ring_read),
            ring.read_address.eq(sequencer.ring_address),
            sequencer.ring_words.eq(ring.read_data),
            sequencer.ring_write.eq(registers.ring_write),
            sequencer.doorbell.eq(registers.doorbell),
            sequencer.doorbell_write.eq(registers.doorbell_write),
            sequencer.doorbell_data.eq(registers.doorbell_data),
            sequencer.walking.eq(data_path.walking),
            data_path.loops.eq(sequencer.loops),
            data_path.timeout.eq(registers.timeout),
            completions.read_slot.eq(registers.completion_address),
            registers.completion_data.eq(completions.read_data),
        ]
        wiring.connect(m, sequencer.o, data_path.i)
        self._ports(m, data_path)
        self._retire(m, sequencer, data_path, registers, completions, flush)
        self._count(m, registers)
        return m

    def _ports(self, m: Module, data_path: DataPath) -> None:
        """Wire the memory ports, sharing one for both operands if there is only one."""
        config = self.configuration
        wiring.connect(m, data_path.write, wiring.flipped(self.write))
        if not config.has_b:
            wiring.connect(m, data_path.read_a, wiring.flipped(self.read_a))
        elif config.read_ports == 2:
            wiring.connect(m, data_path.read_a, wiring.flipped(self.read_a))
            wiring.connect(m, data_path.read_b, wiring.flipped(self.read_b))
        else:
            m.submodules.arbiter = arbiter = ReadArbiter(
                config.address_width,
                config.data_width,
                2 * config.bursts,
                block_ram=config.block_ram,
            )
            wiring.connect(m, data_path.read_a, arbiter.a)
            wiring.connect(m, data_path.read_b, arbiter.b)
            wiring.connect(m, arbiter.port, wiring.flipped(self.read_a))
        self._data_path = data_path

    def _retire(
        self,
        m: Module,
        sequencer: Sequencer,
        data_path: DataPath,
        registers: Registers,
        completions: Completions,
        flush: Signal,
    ) -> None:
        """Count commands in and out, latch the first fault, and recover from it."""
        config = self.configuration
        retired = Signal(16)
        started = Signal(16)
        running = Signal(16)
        idle = Signal(init=1)
        stop = Signal()
        stopped = Signal()
        starts = Signal()
        fault = Signal()
        code = Signal(8)
        port = Signal(2)
        address = Signal(config.address_width)
        wanted = Array(Signal(name=f"interrupt_{slot}") for slot in range(config.slots))
        slot_bits = (config.slots - 1).bit_length()

        faults = Signal()
        retires = Signal()
        # The data path's fault of the cycle before; that of this cycle is known late.
        reported = Signal()
        m.d.comb += [
            starts.eq(sequencer.o.valid & sequencer.o.ready),
            sequencer.idle.eq(idle),
            faults.eq(~fault & (reported | sequencer.refused)),
            retires.eq(data_path.retire & ~(fault | reported)),
            data_path.stop.eq(stop),
            registers.flush.eq(flush),
            registers.busy.eq(registers.doorbell != retired),
            registers.fault.eq(fault),
            registers.drained.eq(data_path.drained),
            registers.fault_code.eq(code),
            registers.fault_port.eq(port),
            registers.fault_index.eq(retired),
            registers.fault_address.eq(address),
            registers.retired.eq(retired),
        ]
        # A cycle late, as starts and ends of commands are known late in theirs. No command ends in
        # the cycle after its start.
        noted = Signal()
        noted_slot = Signal(slot_bits)
        interrupts = Signal()
        with m.If(noted):
            m.d.sync += wanted[noted_slot].eq(interrupts)
        m.d.sync += [
            noted.eq(starts),
            noted_slot.eq(started),
            interrupts.eq(sequencer.interrupt),
            completions.write.eq(faults | retires),
            completions.write_slot.eq(retired),
            completions.index.eq(retired),
            completions.status.eq(
                Mux(reported, code, Mux(sequencer.refused, sequencer.code, Status.OK))
            ),
        ]
        ended = completions.write_slot[:slot_bits]
        m.d.comb += registers.interrupt_set.eq(completions.write & (fault | wanted[ended]))
        m.d.sync += [
            reported.eq(data_path.fault),
            stop.eq(fault | data_path.fault | faults | registers.clear),
            # What readers ask for in the first cycle of `stop` is seen by `drained` in the next.
            stopped.eq(stop),
            # A cycle late, for it reaches every flip-flop; a stopped data path starts nothing then.
            flush.eq(stop & (stopped | idle) & registers.clear & data_path.drained & ~flush),
        ]
        with m.If(starts ^ retires):
            m.d.sync += [
                running.eq(running + Cat(1, retires.replicate(len(running) - 1))),
                idle.eq(retires & (running == 1)),
            ]
        with m.If(starts):
            m.d.sync += started.eq(started + 1)
        with m.If(retires):
            m.d.sync += retired.eq(retired + 1)
        with m.If(faults):
            m.d.sync += fault.eq(1)
        with m.If(~(fault | reported)):
            m.d.sync += [
                code.eq(data_path.code),
                port.eq(data_path.fault_port),
                address.eq(data_path.fault_address),
            ]
        with m.If(~fault & sequencer.refused):
            m.d.sync += [code.eq(sequencer.code), port.eq(Port.NONE), address.eq(0)]
        with m.If(flush):
            m.d.sync += [
                fault.eq(0),
                reported.eq(0),
                retired.eq(0),
                started.eq(0),
                running.eq(0),
                idle.eq(1),
            ]

    def _count(self, m: Module, registers: Registers) -> None:
        """Tell the counters what the ports do."""
        reads = [("a", self._data_path.read_a)]
        if self.configuration.has_b:
            reads.append(("b", self._data_path.read_b))
        for name, port in reads:
            request, beats = port.request, port.data
            # A cycle late: handshakes are known late in theirs.
            beat, asked = Signal(name=f"{name}_beat"), Signal(5, name=f"{name}_asked")
            due = Signal(range(1 << 12), name=f"{name}_due")
            m.d.comb += [
                getattr(registers, f"{name}_beat").eq(beat),
                getattr(registers, f"{name}_stall").eq((due != 0) & ~beat),
            ]
            m.d.sync += [
                beat.eq(beats.valid & beats.ready),
                asked.eq(Mux(request.valid & request.ready, request.p.length + 1, 0)),
                due.eq(due + asked - beat),
            ]
        beats = self.write.data
        m.d.comb += [
            registers.y_beat.eq(beats.valid & beats.ready),
            registers.y_stall.eq(beats.valid & ~beats.ready),
        ]
