"""The data path: readers, bit unit, repack, writer. Takes commands, gives back how they ended.

A command that was started either retires or faults, in order. Nothing is written after a fault.
"""

from typing import Any

from amaranth.hdl import Module, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Port, Status
from ..bit_unit.bit_unit import BitUnit
from ..configuration import Configuration
from ..ports.memory_port import ReadPort, WritePort
from ..streams.beats import Operands, Operation, ToWrite
from ..streams.queue import Credit, Hold, Queue, Register, Skid, Stage, Wire
from ..walk.loops import Loops
from ..walk.walker import Start
from .pairing import Pairing, Work
from .reader import Reader
from .repack import Decode, Decoded, Repack
from .watchdog import Watchdog
from .writer import Writer

__all__ = ["Command", "DataPath", "stages"]


class Command(data.StructLayout):
    """A checked command: what each stream and the bit unit need to know of it."""

    def __init__(self, configuration: Configuration) -> None:
        start = Start(configuration)
        super().__init__({"a": start, "b": start, "y": start, "operation": Operation, "reads_b": 1})


def stages(config: Configuration) -> dict[str, Stage]:
    """What stands between the stages of the data path, by name: the only place that decides it."""
    deep = {"block_ram": config.block_ram}
    # A beat takes the bit unit's cycles whether it is held up or not, if there is LUT RAM to wait
    # in behind it: then nothing from there on has to ask.
    return {
        "requests": Hold if config.single_runs else Skid,
        "moved": Register if config.pipelined else Wire,
        "words": lambda shape: Queue(
            shape, config.fifo_beats, credit=True, registered=config.pipelined, **deep
        ),
        "work": lambda shape: Queue(shape, config.ahead, registered=config.ahead > 2),
        "operands": Skid if config.operand_registers else Wire,
        "results": (lambda shape: Queue(shape, RESULTS, credit=True)) if credited(config) else Skid,
        "outputs": Wire,
        "spans": lambda shape: Queue(shape, config.ahead, registered=True),
        "bursts": Wire if config.single_runs else Skid,
    }


RESULTS = 16
"""Results that can wait for the writer, or be on their way through the bit unit."""


def credited(config: Configuration) -> bool:
    return not config.block_ram and config.single_op is None


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
        self._stages = stages(config)
        m.submodules.reader_a = reader_a = Reader(config, self._stages)
        m.submodules.writer = writer = Writer(config, self._stages)
        readers = [(reader_a, self.i.p.a, self.read_a, self.loops.a)]
        if config.has_b:
            m.submodules.reader_b = reader_b = Reader(config, self._stages)
            readers.append((reader_b, self.i.p.b, self.read_b, self.loops.b))
        wiring.connect(m, writer.port, wiring.flipped(self.write))
        m.submodules.pairing = pairing = Pairing(config)
        self._compute(m, [reader for reader, *_ in readers], pairing, writer)

        # Every unit takes the command in one cycle: each can hold the next while it finishes one.
        # They are asked a cycle ahead: who can take a command still can in the next cycle.
        go = Signal()
        ready = Signal()
        free: Value = writer.start.ready
        if pairing.asks:
            m.submodules.work = work = self._stages["work"](Work(config))
            wiring.connect(m, work.o, pairing.work)
            free &= work.i.ready
            m.d.comb += [
                work.i.p.operation.eq(self.i.p.operation),
                work.i.p.reads_b.eq(self.i.p.reads_b),
                work.i.p.beats.eq(self.i.p.a.extent[config.data_bytes_log2 :]),
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

        self._faults(m, [reader for reader, *_ in readers], writer, pairing.bad_port)
        return m

    def _compute(self, m: Module, readers: list[Reader], pairing: Pairing, writer: Writer) -> None:
        """From operands to what is written."""
        config = self._configuration
        width, lanes = config.data_width, config.lanes
        m.submodules.operands = operands = self._stages["operands"](Operands(width))
        m.submodules.bit_unit = bit_unit = BitUnit(width, config.ops, lanes)
        m.submodules.decode = decode = Decode(width, lanes)
        m.submodules.results = results = self._stages["results"](Decoded(width))
        m.submodules.repack = repack = Repack(width, lanes, config.ops)
        m.submodules.outputs = outputs = self._stages["outputs"](ToWrite(width))
        for reader, operand in zip(readers, ("a", "b"), strict=False):
            wiring.connect(m, reader.o, getattr(pairing, operand))
        wiring.connect(m, pairing.o, operands.i)
        wiring.connect(m, operands.o, bit_unit.i)
        wiring.connect(m, bit_unit.o, decode.i)
        wiring.connect(m, decode.o, results.i)
        wiring.connect(m, results.o, repack.i)
        wiring.connect(m, repack.o, outputs.i)
        wiring.connect(m, outputs.o, writer.i)
        m.d.comb += pairing.room.eq(1)
        if credited(config):
            m.submodules.credit = credit = Credit(RESULTS)
            m.d.comb += [
                credit.taken.eq(pairing.o.valid & pairing.o.ready),
                credit.returned.eq(results.o.valid & results.o.ready),
                pairing.room.eq(credit.room),
            ]

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
