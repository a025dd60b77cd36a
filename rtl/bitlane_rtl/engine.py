"""The engine: wires registers, command ring, sequencer, data path and retirement.

It only wires: no register and no decision is here. Its ports are native, not a bus.
"""

from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .configuration import Configuration
from .control import Completions, ReadActivity, Registers, Retirement, Ring, Sequencer, ring_columns
from .datapath import DataPath
from .ports import ControlPort, ReadArbiter, ReadPort, WritePort

__all__ = ["Engine"]


class Engine(wiring.Component):
    """Executes the commands of its ring::

        control -> registers -> ring -> sequencer -> data path -> read_a, read_b, write
                     ^   ^                  | start       | retire, fault
                     |   |                  v             v
                     |   +------------- retirement <------+
                     |                      | completion
                     +-- completions <------+

    Latency, from ``control.write`` to DOORBELL to the last response of a command that writes N
    beats, on a memory that answers in the next cycle: N + 12 cycles at 32 bits with all operations,
    N + 9 with NOT alone; N + 14 from 64 bits on, N + 11 with NOT alone. It takes 1 cycle more with
    ``operand_registers``, and at 32 bits with ``block_ram``.
    The record must have been in the ring for as long as `Sequencer` takes to fetch it.
    A FENCE lets its command start 2 cycles after the last one before it retired, at the earliest.
    ``fault`` rises 3 cycles after a bad DOORBELL is written. A refusal is seen 2 cycles after its
    DOORBELL at the earliest; from there on see `Retirement`.
    Throughput: see `DataPath`.
    """

    control: Any
    """The control window, see `abi`."""
    read_a: Any
    """Reads A, and B too if ``read_ports`` is 1."""
    read_b: Any
    """Only with two read ports and an operation of two operands."""
    write: Any
    """Writes Y."""
    irq: Signal
    """High while an enabled interrupt is pending."""
    busy: Signal
    """A copy of STATUS.BUSY, for example to drive an LED."""
    fault: Signal
    """A copy of STATUS.FAULT."""

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
        # CLEAR resets the units that can hold a part of a command.
        flush = Signal()
        data_path = DataPath(config)
        sequencer = Sequencer(config)
        m.submodules.data_path = ResetInserter(flush)(data_path)
        m.submodules.sequencer = ResetInserter(flush)(sequencer)
        m.submodules.registers = registers = Registers(config)
        m.submodules.ring = ring = Ring(config.slots, ring_columns(config))
        m.submodules.completions = completions = Completions(config.slots)
        m.submodules.retirement = retirement = Retirement(config)
        wiring.connect(m, wiring.flipped(self.control), registers.control)
        wiring.connect(m, sequencer.o, data_path.i)
        m.d.comb += [
            flush.eq(retirement.flush),
            self.irq.eq(registers.irq),
            self.busy.eq(retirement.busy),
            self.fault.eq(retirement.fault),
            sequencer.walking.eq(data_path.walking),
            data_path.loops.eq(sequencer.loops),
            data_path.timeout.eq(registers.timeout),
            data_path.stop.eq(retirement.stop),
        ]
        self._fetch(m, registers, ring, sequencer)
        self._retire(m, sequencer, data_path, registers, retirement)
        self._complete(m, retirement, completions, registers)
        self._ports(m, data_path)
        self._count(m, data_path, registers)
        return m

    def _fetch(self, m: Module, registers: Registers, ring: Ring, sequencer: Sequencer) -> None:
        """Wire the way of a record: from the control window through the ring to the sequencer."""
        wiring.connect(m, registers.ring, ring.write)
        wiring.connect(m, sequencer.ring, ring.read)
        m.d.comb += [
            sequencer.ring_write.eq(registers.ring.enable),
            sequencer.doorbell.eq(registers.doorbell),
            sequencer.doorbell_write.eq(registers.doorbell_write),
            sequencer.doorbell_data.eq(registers.doorbell_data),
        ]

    def _retire(
        self,
        m: Module,
        sequencer: Sequencer,
        data_path: DataPath,
        registers: Registers,
        retirement: Retirement,
    ) -> None:
        """Wire what starts, ends and stops commands."""
        m.d.comb += [
            retirement.start.eq(sequencer.o.valid & sequencer.o.ready),
            retirement.interrupt.eq(sequencer.interrupt),
            retirement.refused.eq(sequencer.refused),
            retirement.refusal.eq(sequencer.code),
            sequencer.idle.eq(retirement.idle),
            retirement.retire.eq(data_path.retire),
            retirement.failed.eq(data_path.fault),
            retirement.failure.eq(data_path.report),
            retirement.drained.eq(data_path.drained),
            retirement.doorbell.eq(registers.doorbell),
            retirement.rung.eq(registers.rung),
            retirement.bad_doorbell.eq(registers.bad_doorbell),
            retirement.clear.eq(registers.clear),
        ]

    def _complete(
        self, m: Module, retirement: Retirement, completions: Completions, registers: Registers
    ) -> None:
        """Wire what the host reads of commands that ended."""
        m.d.comb += [
            completions.write.eq(retirement.completion),
            completions.index.eq(retirement.completion_index),
            completions.status.eq(retirement.completion_status),
            completions.read_slot.eq(registers.completion_address),
            registers.completion_data.eq(completions.read_data),
            registers.interrupt_set.eq(retirement.completion_interrupt),
            registers.flush.eq(retirement.flush),
            registers.busy.eq(retirement.busy),
            registers.fault.eq(retirement.fault),
            registers.drained.eq(retirement.drained),
            registers.report.eq(retirement.report),
            registers.retired.eq(retirement.retired),
        ]

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

    def _count(self, m: Module, data_path: DataPath, registers: Registers) -> None:
        """Wire what the counters count."""
        reads = {"a": data_path.read_a}
        if self.configuration.has_b:
            reads["b"] = data_path.read_b
        for name, port in reads.items():
            m.submodules[f"activity_{name}"] = activity = ReadActivity()
            m.d.comb += [
                activity.request.eq(port.request.valid & port.request.ready),
                activity.length.eq(port.request.p.length),
                activity.data.eq(port.data.valid & port.data.ready),
                getattr(registers, f"{name}_beat").eq(activity.beat),
                getattr(registers, f"{name}_stall").eq(activity.stall),
            ]
        beats = self.write.data
        m.d.comb += [
            registers.y_beat.eq(beats.valid & beats.ready),
            registers.y_stall.eq(beats.valid & ~beats.ready),
        ]
