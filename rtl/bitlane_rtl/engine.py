"""The engine: registers and command ring, sequencer, data path. Speaks native ports, no bus.

Owns what happens at a fault: it latches the first one, stops, and starts afresh when told to.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Units:
    """What commands go through, and what tells the host of them."""

    sequencer: Sequencer
    data_path: DataPath
    registers: Registers
    completions: Completions


class _State:
    """What is known of commands: numbers modulo 2^16, and the first fault since the last flush."""

    def __init__(self, configuration: Configuration) -> None:
        self.retired = Signal(16)
        self.started = Signal(16)
        self.running = Signal(range(configuration.slots + 1))
        self.idle = Signal(init=1)
        self.stop = Signal()
        self.stopped = Signal()
        self.starts = Signal()
        self.fault = Signal()
        self.code = Signal(8)
        self.port = Signal(2)
        self.address = Signal(configuration.address_width)
        self.faults = Signal()
        self.retires = Signal()
        self.reported = Signal()
        """The data path's fault of the cycle before; that of this cycle is known late."""
        self.bad_doorbell = Signal()
        """DOORBELL was bad in the cycle before."""
        self.refuses = Signal()
        """DOORBELL was bad in the cycle before, or a record cannot be executed."""


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
    A FENCE lets its command start 2 cycles after the last one before it retired, at the earliest.
    A fault stops the engine 1 cycle after it is seen, and is latched 2 cycles after; a refusal 1.
    A bad DOORBELL is a fault that is seen in the cycle after it is written; a refusal is seen 2
    cycles after its DOORBELL at the earliest.
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
        two = configuration.two_ports
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
        self._retire(m, _Units(sequencer, data_path, registers, completions), flush)
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

    def _retire(self, m: Module, units: "_Units", flush: Signal) -> None:
        """Count commands in and out, latch the first fault, and recover from it."""
        state = _State(self.configuration)
        m.d.comb += [
            state.starts.eq(units.sequencer.o.valid & units.sequencer.o.ready),
            units.sequencer.idle.eq(state.idle),
            # A record is refused a cycle after its doorbell, when that is known to be good.
            state.refuses.eq(
                state.bad_doorbell | (units.sequencer.refused & ~units.registers.rung)
            ),
            state.faults.eq(~state.fault & (state.reported | state.refuses)),
            state.retires.eq(
                units.data_path.retire & ~(state.fault | state.reported | state.bad_doorbell)
            ),
            units.data_path.stop.eq(state.stop),
            units.registers.flush.eq(flush),
            units.registers.busy.eq(units.registers.doorbell != state.retired),
            units.registers.fault.eq(state.fault),
            units.registers.drained.eq(units.data_path.drained),
            units.registers.fault_code.eq(state.code),
            units.registers.fault_port.eq(state.port),
            units.registers.fault_index.eq(state.retired),
            units.registers.fault_address.eq(state.address),
            units.registers.retired.eq(state.retired),
        ]
        self._note(m, units, state, flush)
        m.d.sync += [
            state.reported.eq(units.data_path.fault),
            state.bad_doorbell.eq(units.registers.bad_doorbell & ~flush),
            # A command that a bad doorbell submits is started in the cycle before `stop`, and a
            # request takes 3 cycles: nothing of it reaches the bus.
            state.stop.eq(
                state.fault
                | units.data_path.fault
                | units.registers.bad_doorbell
                | state.faults
                | units.registers.clear
            ),
            # What readers ask for in the first cycle of `stop` is seen by `drained` in the next.
            state.stopped.eq(state.stop),
            # A cycle late, for it reaches every flip-flop; a stopped data path starts nothing then.
            flush.eq(
                state.stop
                & (state.stopped | state.idle)
                & units.registers.clear
                & units.data_path.drained
                & ~flush
            ),
        ]
        self._advance(m, units, state, flush)

    def _note(self, m: Module, units: "_Units", state: "_State", flush: Signal) -> None:
        """Write down how each command ended, and whether somebody wants to hear of it."""
        config = self.configuration
        wanted = Array(Signal(name=f"interrupt_{slot}") for slot in range(config.slots))
        slot_bits = (config.slots - 1).bit_length()
        # A cycle late, as starts and ends of commands are known late in theirs. No command ends in
        # the cycle after its start.
        noted = Signal()
        noted_slot = Signal(slot_bits)
        interrupts = Signal()
        with m.If(noted):
            m.d.sync += wanted[noted_slot].eq(interrupts)
        m.d.sync += [
            noted.eq(state.starts),
            noted_slot.eq(state.started),
            interrupts.eq(units.sequencer.interrupt),
            # A refusal in the very cycle of a flush is dropped with its command.
            units.completions.write.eq((state.faults | state.retires) & ~flush),
            units.completions.write_slot.eq(state.retired),
            units.completions.index.eq(state.retired),
        ]
        ended = units.completions.write_slot[:slot_bits]
        # Nothing retires in the cycle of a fault, nor after it.
        m.d.comb += units.completions.status.eq(Mux(state.fault, state.code, Status.OK))
        m.d.comb += units.registers.interrupt_set.eq(
            units.completions.write & (state.fault | wanted[ended])
        )

    def _advance(self, m: Module, units: "_Units", state: "_State", flush: Signal) -> None:
        """Count what starts and ends; hold the first fault until all is flushed."""
        # A cycle late, as the last response is known late in its; who waits for `idle` can.
        ended = Signal()
        m.d.sync += ended.eq(state.retires)
        with m.If(state.starts ^ ended):
            m.d.sync += [
                state.running.eq(state.running + Cat(1, ended.replicate(len(state.running) - 1))),
                state.idle.eq(ended & (state.running == 1)),
            ]
        with m.If(state.starts):
            m.d.sync += state.started.eq(state.started + 1)
        with m.If(state.retires):
            m.d.sync += state.retired.eq(state.retired + 1)
        with m.If(state.faults):
            m.d.sync += state.fault.eq(1)
        refusal = Mux(state.bad_doorbell, Status.BAD_DOORBELL, units.sequencer.code)
        with m.If(~(state.fault | state.reported)):
            m.d.sync += [
                state.code.eq(Mux(state.refuses, refusal, units.data_path.code)),
                state.port.eq(Mux(state.refuses, Port.NONE, units.data_path.fault_port)),
                state.address.eq(units.data_path.fault_address),
            ]
        with m.If(flush):
            m.d.sync += [
                state.fault.eq(0),
                state.reported.eq(0),
                state.retired.eq(0),
                state.started.eq(0),
                state.running.eq(0),
                state.idle.eq(1),
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
