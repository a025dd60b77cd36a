"""The data path: readers, bit unit, repack, writer. Takes commands, gives back how they ended.

A command that was started either retires or faults, in order. Nothing is written after a fault.
"""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Port, Status
from ..bit_unit.bit_unit import BitUnit
from ..configuration import Configuration
from ..ports.memory_port import ReadPort, WritePort
from ..streams.beats import Operation, ToWrite
from ..streams.queue import Queue, Skid, Slack
from ..walk.loops import Loops
from ..walk.walker import Start
from .reader import Reader
from .repack import Repack
from .watchdog import Watchdog
from .writer import Writer

__all__ = ["Command", "DataPath"]


class Command(data.StructLayout):
    """A checked command: what each stream and the bit unit need to know of it."""

    def __init__(self, configuration: Configuration) -> None:
        start = Start(configuration)
        super().__init__({"a": start, "b": start, "y": start, "operation": Operation, "reads_b": 1})


class _Work(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"operation": Operation, "reads_b": 1})


class DataPath(wiring.Component):
    """Moves the operands of each command through the bit unit, and the result to memory.

    Members
    -------
    i : ``In(stream.Signature(Command(configuration)))``
        Commands, taken while earlier ones still run; every second cycle at most.
    loops : ``In(Loops(configuration))``
        Steady from the start of a command until ``walking`` is 0.
    read_a, read_b : ``Out(ReadPort(address_width, data_width))``
        ``read_b`` only where an operation has two operands.
    write : ``Out(WritePort(address_width, data_width))``
    timeout : ``In(32)``
        Cycles without a handshake before a wait for the memory is a fault; 0: no limit.
    stop : ``In(1)``
        Open no transaction from the next cycle on; those that are open end legally.
    walking : ``Out(1)``
    retire : ``Out(1)``
        A command ended well, in this cycle.
    fault : ``Out(1)``; code : ``Out(Status)``; fault_port : ``Out(Port)``; fault_address : ``Out``
        In this cycle the oldest command that has not retired is known to fail. To be latched by
        the owner, who then holds ``stop`` until ``drained``, which counts from the second cycle of
        ``stop`` on, and resets the data path.
    drained : ``Out(1)``
        No bus transaction is open.

    Latency: the sum of `Reader`, `BitUnit`, `Repack` and `Writer`; see `Engine`. Throughput: a
    beat a cycle on the port that carries most.
    """

    i: stream.Interface
    loops: Any
    read_a: Any
    read_b: Any
    write: Any
    timeout: Signal
    stop: Signal
    walking: Signal
    retire: Signal
    fault: Signal
    code: Signal
    fault_port: Signal
    fault_address: Signal
    drained: Signal

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        read = ReadPort(configuration.address_width, configuration.data_width)
        super().__init__(
            {
                "i": In(stream.Signature(Command(configuration))),
                "loops": In(Loops(configuration)),
                "read_a": Out(read),
                **({"read_b": Out(read)} if configuration.has_b else {}),
                "write": Out(WritePort(configuration.address_width, configuration.data_width)),
                "timeout": In(32),
                "stop": In(1),
                "walking": Out(1),
                "retire": Out(1),
                "fault": Out(1),
                "code": Out(8),
                "fault_port": Out(2),
                "fault_address": Out(configuration.address_width),
                "drained": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        lanes = config.lanes
        m.submodules.reader_a = reader_a = Reader(config)
        m.submodules.bit_unit = bit_unit = BitUnit(config.data_width, config.ops, lanes)
        m.submodules.repack = repack = Repack(
            config.data_width, lanes, config.ops, pipelined=config.pipelined
        )
        m.submodules.writer = writer = Writer(config)
        work = current = None
        if config.single_op is None:
            m.submodules.work = work = Queue(_Work(), 2 * config.ahead)
            # The operation steers every bit of the first stage, and it is known late in a cycle
            # that a command's last beat moves on: no time for a RAM before, or a count after.
            m.submodules.current = current = Skid(_Work())
            wiring.connect(m, work.o, current.i)
        readers = [(reader_a, self.i.p.a, self.read_a, self.loops.a)]
        if config.has_b:
            m.submodules.reader_b = reader_b = Reader(config)
            readers.append((reader_b, self.i.p.b, self.read_b, self.loops.b))
        wiring.connect(m, bit_unit.o, repack.i)
        if config.single_runs and config.single_op is not None:
            wiring.connect(m, repack.o, writer.i)
        else:
            # Else the writer's ready would reach the readers' FIFOs in one cycle.
            register = Skid if config.pipelined else Slack
            m.submodules.results = results = register(ToWrite(config.data_width))
            wiring.connect(m, repack.o, results.i)
            wiring.connect(m, results.o, writer.i)
        wiring.connect(m, writer.port, wiring.flipped(self.write))

        # Every unit takes the command in one cycle: each can hold the next while it finishes one.
        # They are asked a cycle ahead: who can take a command still can in the next cycle.
        go = Signal()
        ready = Signal()
        free: Value = writer.start.ready
        if work:
            free &= work.i.ready
            m.d.comb += [
                work.i.p.operation.eq(self.i.p.operation),
                work.i.p.reads_b.eq(self.i.p.reads_b),
                work.i.valid.eq(go),
            ]
        walking: Value = writer.walking
        drained: Value = writer.drained
        for number, (reader, start, port, track) in enumerate(readers):
            wiring.connect(m, reader.port, wiring.flipped(port))
            needed = self.i.p.reads_b if number else 1
            free &= reader.i.ready
            walking |= reader.walking
            drained &= ~reader.waiting
            m.d.comb += [
                reader.i.payload.eq(start),
                reader.i.valid.eq(go & needed),
                reader.loops.eq(self.loops),
                reader.track.eq(track),
                reader.offsets.eq(self.loops.y),
                reader.stop.eq(self.stop),
            ]
        m.d.sync += ready.eq(free & ~go)
        m.d.comb += [
            self.i.ready.eq(ready & ~self.stop),
            go.eq(self.i.valid & self.i.ready),
            writer.start.payload.eq(self.i.p.y),
            writer.start.valid.eq(go),
            writer.loops.eq(self.loops),
            writer.track.eq(self.loops.y),
            writer.stop.eq(self.stop),
            self.walking.eq(walking),
            self.drained.eq(drained),
        ]

        bad_port = self._pair(m, [reader for reader, *_ in readers], current, bit_unit)
        self._faults(m, [reader for reader, *_ in readers], writer, bad_port)
        return m

    def _pair(
        self, m: Module, readers: list[Reader], work: Skid | None, bit_unit: BitUnit
    ) -> Signal:
        """Bring the operands together. Returns the port of the first beat in error."""
        operands = bit_unit.i
        first, *rest = readers
        error = first.o.p.edge.error
        present: Value = first.o.valid
        needed: Value = Const(1)
        if work:
            present &= work.o.valid
            needed = work.o.p.reads_b
            m.d.comb += [
                operands.p.operation.eq(work.o.p.operation),
                work.o.ready.eq(operands.ready & operands.valid & first.o.p.edge.end),
            ]
        else:
            m.d.comb += operands.p.operation.op.eq(self._configuration.single_op)
        if rest:
            second = rest[0]
            error |= second.o.p.edge.error & needed
            present &= second.o.valid | ~needed
            m.d.comb += [
                operands.p.b.eq(second.o.p.data),
                second.o.ready.eq(operands.ready & operands.valid & needed),
            ]
        m.d.comb += [
            operands.valid.eq(present),
            operands.p.a.eq(first.o.p.data),
            operands.p.edge.eq(first.o.p.edge),
            operands.p.edge.error.eq(error),
            first.o.ready.eq(operands.ready & operands.valid),
        ]
        seen = Signal()
        bad_port = Signal(Port)
        with m.If(operands.valid & operands.p.edge.error & ~seen):
            m.d.sync += [
                seen.eq(1),
                bad_port.eq(Mux(first.o.p.edge.error, Port.READ_A, Port.READ_B)),
            ]
        return bad_port

    def _faults(self, m: Module, readers: list[Reader], writer: Writer, bad_port: Signal) -> None:
        m.submodules.watchdog = watchdog = Watchdog()
        streams = [port for reader in readers for port in (reader.port.request, reader.port.data)]
        streams += [writer.port.request, writer.port.data, writer.port.response]
        progress: ValueLike = 0
        for each in streams:
            progress = (each.valid & each.ready) | progress
        waiting: Value = writer.waiting
        for reader in readers:
            waiting |= reader.waiting
        m.d.comb += [
            watchdog.bound.eq(self.timeout),
            watchdog.progress.eq(progress),
            watchdog.waiting.eq(waiting),
            self.retire.eq(writer.retire),
        ]
        # An unreadable beat is a fault only when all before it has been written and answered.
        unreadable = Signal()
        m.d.comb += [
            unreadable.eq(writer.spoiled & writer.drained),
            self.fault.eq(writer.failed | unreadable | watchdog.expired),
            self.fault_port.eq(Port.WRITE),
            self.fault_address.eq(writer.address),
        ]
        with m.If(writer.failed):
            m.d.comb += self.code.eq(Status.WRITE_ERROR)
        with m.Elif(unreadable):
            m.d.comb += [self.code.eq(Status.READ_ERROR), self.fault_port.eq(bad_port)]
        with m.Else():
            m.d.comb += self.code.eq(Status.TIMEOUT)
            ports = (Port.READ_A, Port.READ_B)[: len(readers)]
            for reader, port in reversed(list(zip(readers, ports, strict=True))):
                with m.If(reader.waiting):
                    m.d.comb += self.fault_port.eq(port)
        for reader, port in zip(readers, (Port.READ_A, Port.READ_B), strict=False):
            with m.If(self.fault_port == port):
                m.d.comb += self.fault_address.eq(reader.address)
