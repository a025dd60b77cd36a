"""The data path: readers, bit unit, repack and writer. It executes commands and reports their ends.

Every command that is started retires or fails, in order. Nothing is written after a fault. `stages`
alone selects the buffers between the units; no unit depends on its neighbours.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode, Port, Status
from ..addresses import LoopNest
from ..bit_unit import BitUnit
from ..command import STREAMS, CheckedCommand, FaultReport, LoopRegisters, StreamFormat
from ..configuration import Configuration
from ..ports import ReadPort, WritePort
from ..search import SearchArray
from ..streams import Credit, ToWrite
from .pairing import Pairing, Work
from .reader import Reader
from .repack import Repack
from .result_decoder import DecodedResult, ResultDecoder
from .stages import RESULTS, has_credit, stages
from .watchdog import Watchdog
from .writer import Writer

__all__ = ["DataPath"]


class DataPath(wiring.Component):
    """Moves the operands of each command through the bit unit, and the result to memory.

    Members
    -------
    i
        Commands, accepted while earlier ones still run; one every third cycle at most.
    loops
        Constant from the start of a command until ``walking`` is 0.
    read_a, read_b
        ``read_b`` only where an operation has two operands.
    write
        Writes Y.
    timeout
        Cycles without a handshake after which a wait for the memory is a fault; 0: no limit.
    stop
        Open no transaction from the next cycle on; open ones end by the rules of the bus.
    walking
        The loop registers are in use.
    retire
        A command ends without a fault, in this cycle.
    fault, report
        The oldest command that has not retired fails, in this cycle. `Retirement` latches these,
        and holds ``stop`` until CLEAR is written and ``drained`` is 1. Then it resets the data
        path.
    drained
        No bus transaction is open. Valid from the second cycle of ``stop`` on.

    Latency: see `stages`. Throughput: a beat a cycle on the port that carries most.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._stages = stages(configuration)
        read = ReadPort(configuration.address_width, configuration.data_width)
        super().__init__(
            {
                "i": In(stream.Signature(CheckedCommand(configuration))),
                "loops": In(LoopRegisters(configuration)),
                "read_a": Out(read),
                **({"read_b": Out(read)} if configuration.has_b else {}),
                "write": Out(WritePort(configuration.address_width, configuration.data_width)),
                "timeout": In(32),
                "stop": In(1),
                "walking": Out(1),
                "retire": Out(1),
                "fault": Out(1),
                "report": Out(FaultReport(configuration)),
                "drained": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        pairing = Pairing(config)
        operands = {Port.READ_A: "a", **({Port.READ_B: "b"} if config.has_b else {})}
        readers = {port: Reader(config, self._stages) for port in operands}
        for port, name in operands.items():
            m.submodules[f"reader_{name}"] = readers[port]
            wiring.connect(m, readers[port].port, wiring.flipped(getattr(self, f"read_{name}")))
            wiring.connect(m, readers[port].o, getattr(pairing, name))
        m.submodules.writer = writer = Writer(config, self._stages)
        wiring.connect(m, writer.port, wiring.flipped(self.write))
        m.submodules.pairing = pairing
        streams = {name: readers[port] for port, name in operands.items()}
        self._start(m, {**streams, "y": writer}, pairing)
        self._compute(m, pairing, writer)
        self._faults(m, readers, writer, pairing.bad_port)
        return m

    def _start(self, m: Module, streams: dict[str, Reader | Writer], pairing: Pairing) -> None:
        """Start a command in all units at once; each accepts the next while it ends one."""
        config, command = self._configuration, self.i.p
        m.submodules.nest = nest = LoopNest(config, self._stages.steps)
        form: Any = Signal(StreamFormat(), reset_less=True)
        fires = Signal()
        # One cycle late, because `walking` has logic behind it and `idle` loads many registers. It
        # is still early enough: `fires` waits for it.
        idle = Signal()
        m.d.sync += idle.eq(~nest.walking & ~fires)
        ready: Value = idle
        if pairing.has_work:
            m.submodules.work = work = self._stages.work(Work(config))
            wiring.connect(m, work.o, pairing.work)
            ready &= work.i.ready
            m.d.comb += [
                work.i.p.operation.eq(command.operation),
                work.i.p.reads_b.eq(command.reads_b),
                work.i.p.beats.eq(command.a.extent[config.data_bytes_log2 :] - 1),
                work.i.p.rest.eq(Mux(command.operation.sums, command.a.extent, -1)),
                work.i.valid.eq(fires),
            ]
        with m.If(idle):
            m.d.sync += form.eq(command.form)
        m.d.comb += [
            self.i.ready.eq(ready & ~self.stop),
            fires.eq(self.i.valid & self.i.ready),
            nest.start.eq(fires),
            nest.used.a.eq(1),
            nest.used.b.eq(command.reads_b if config.has_b else 0),
            nest.used.y.eq(1),
            nest.plain.eq(command.plain),
            *(nest.strided[x].eq(command[x].mode == Mode.STRIDED) for x in STREAMS),
            nest.in_use.eq(command.loops),
            nest.loops.eq(self.loops),
            self.walking.eq(nest.walking),
        ]
        for name, unit in streams.items():
            wiring.connect(m, getattr(nest, name), unit.steps)
            m.d.comb += [
                unit.setup.idle.eq(idle),
                unit.setup.begin.eq(getattr(command, name)),
                unit.setup.form.eq(form),
                unit.setup.strides.eq(getattr(self.loops, name)),
                unit.stop.eq(self.stop),
            ]
            if isinstance(unit, Reader):
                m.d.comb += unit.setup.output_strides.eq(self.loops.y)

    def _compute(self, m: Module, pairing: Pairing, writer: Writer) -> None:
        """Wire the units from the operands to the writer, and the credit of the results."""
        config = self._configuration
        width, lanes, ops = config.data_width, config.lanes, config.bit_ops
        sums = Mode.SUM in config.modes
        m.submodules.bit_unit = bit_unit = BitUnit(width, ops, lanes, sums=sums)
        m.submodules.decode = decode = ResultDecoder(width, lanes, ops)
        m.submodules.results = results = self._stages.results(DecodedResult(width))
        m.submodules.repack = repack = Repack(width, lanes, ops)
        m.submodules.outputs = outputs = self._stages.outputs(ToWrite(width))
        units: tuple[Any, ...] = (bit_unit, decode, results, repack, outputs)
        source = pairing.o
        for unit in units:
            wiring.connect(m, source, unit.i)
            source = unit.o
        if config.search:
            source = self._search(m, pairing, source, writer)
        wiring.connect(m, source, writer.i)
        m.d.comb += pairing.room.eq(1)
        if has_credit(config):
            m.submodules.credit = credit = Credit(RESULTS)
            m.d.comb += [
                credit.taken.eq(pairing.o.valid & pairing.o.ready),
                credit.returned.eq(results.o.valid & results.o.ready),
                pairing.room.eq(credit.room),
            ]

    def _search(
        self, m: Module, pairing: Pairing, outputs: stream.Interface, writer: Writer
    ) -> stream.Interface:
        """Put the search array beside the units from bit unit to ``outputs``.

        Return the stream to the writer. The writer selects the source, because it sees the commands
        in order.
        """
        m.submodules.search_array = array = SearchArray(self._configuration)
        wiring.connect(m, pairing.rows, array.rows)
        wiring.connect(m, pairing.queries, array.queries)
        shape = ToWrite(self._configuration.data_width)
        m.submodules.found = found = self._stages.found(shape)
        wiring.connect(m, array.o, found.i)
        written = stream.Signature(shape).create()
        m.d.comb += [
            written.valid.eq(Mux(writer.searches, found.o.valid, outputs.valid)),
            written.payload.eq(Mux(writer.searches, found.o.payload, outputs.payload)),
            found.o.ready.eq(written.ready & writer.searches),
            outputs.ready.eq(written.ready & ~writer.searches),
        ]
        return written

    def _watch(self, m: Module, readers: dict[Port, Reader], writer: Writer) -> Signal:
        """Report whether all transactions ended. Return whether a wait for the memory expired."""
        m.submodules.watchdog = watchdog = Watchdog()
        streams = [
            channel
            for reader in readers.values()
            for channel in (reader.port.request, reader.port.data)
        ]
        streams += [writer.port.request, writer.port.data, writer.port.response]
        progress: ValueLike = 0
        for each in streams:
            progress = (each.valid & each.ready) | progress
        waiting: Value = writer.waiting
        drained: Value = writer.drained
        for reader in readers.values():
            waiting |= reader.waiting
            drained &= ~reader.waiting
        # One cycle later, because handshakes complete late in their cycle.
        m.d.sync += [watchdog.progress.eq(progress), watchdog.waiting.eq(waiting)]
        m.d.comb += [
            watchdog.bound.eq(self.timeout),
            self.drained.eq(drained),
        ]
        return watchdog.expired

    def _faults(
        self, m: Module, readers: dict[Port, Reader], writer: Writer, bad_port: Signal
    ) -> None:
        """Report how the oldest command ends."""
        expired = self._watch(m, readers, writer)
        # A beat that could not be read, or must not be written, is a fault only when all beats
        # before it have been written and answered.
        unreadable = Signal()
        m.d.comb += [
            unreadable.eq(writer.poisoned & writer.drained),
            self.retire.eq(writer.retire),
            # Not a timeout if a response is accepted in this cycle: it may end a command. Whether
            # it does is valid late, behind a FIFO.
            self.fault.eq(writer.failed | unreadable | (expired & ~writer.answered)),
            self.report.port.eq(Port.WRITE),
            self.report.address.eq(writer.address),
        ]
        with m.If(writer.failed):
            m.d.comb += self.report.code.eq(Status.WRITE_ERROR)
        with m.Elif(unreadable):
            m.d.comb += self.report.code.eq(Status.PAST_MEMORY)
            with m.If(~writer.out_of_range):
                m.d.comb += self.report.port.eq(bad_port)
                for port, reader in readers.items():
                    with m.If((bad_port == port) & ~reader.out_of_range):
                        m.d.comb += self.report.code.eq(Status.READ_ERROR)
        with m.Else():
            m.d.comb += self.report.code.eq(Status.TIMEOUT)
            for port, reader in reversed(readers.items()):
                with m.If(reader.waiting):
                    m.d.comb += self.report.port.eq(port)
        for port, reader in readers.items():
            with m.If(self.report.port == port):
                m.d.comb += self.report.address.eq(reader.address)
