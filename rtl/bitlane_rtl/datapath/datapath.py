"""The data path: readers, bit unit, repack, writer. Takes commands, gives back how they ended.

A command that was started either retires or faults, in order. Nothing is written after a fault.
`stages` alone decides what stands between the units; no unit knows what is beside it.
"""

from functools import partial
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode, Port, Status
from ..bit_unit.bit_unit import BitUnit
from ..command import STREAMS, CheckedCommand, LoopRegisters, StreamFormat
from ..configuration import Configuration
from ..ports.memory_port import ReadPort, WritePort
from ..search.search_array import SearchArray
from ..streams.beats import ToWrite
from ..streams.queue import Credit, ForwardRegister, Hold, Queue, Skid, Slack, Wire
from ..streams.stage import Stage
from ..streams.twin import Twin
from ..walk.loop_nest import LoopNest
from .pairing import Pairing, Work
from .reader import Reader
from .repack import Decode, Decoded, Repack
from .watchdog import Watchdog
from .writer import Writer

__all__ = ["DataPath", "stages"]

RESULTS = 16
"""Results under way through the bit unit, or waiting behind it, where credits say how many."""


def stages(config: Configuration) -> dict[str, Stage]:
    """What stands between the units, by name: the only place that decides it.

    The first beat of a command of 64 bits, by the cycles after its start::

        0  nest -> steps                                    Skid
        1  address generator -> splitter
        2  burst -> requests                                Skid
        3  request on the port
        4  beat -> byte network -> moved                    ForwardRegister
        5  realigner -> words                                  Twin, credit by bursts
        7  pairing, bit unit
       10  decode -> results                                Queue, credit by beats
       11  repack
       12  outputs -> writer                                Slack
       13  beat on the port

    Beside it ``work`` takes the operation to the pairing, and ``spans`` and ``bursts`` the output's
    runs to the writer, ahead of the data.
    """
    narrow = config.data_width < 64 or config.single_runs
    results: Stage = Wire if config.single_runs and config.single_op is not None else Skid
    if credited(config):
        results = partial(Queue, depth=RESULTS, credit=True)
    # Rows that fill few beats are worth a second way into the FIFO, but not twice the block RAMs.
    words: Stage = partial(Twin, depth=config.fifo_beats)
    if narrow or config.block_ram:
        words = partial(
            Queue,
            depth=config.fifo_beats,
            block_ram=config.block_ram,
            registered=not narrow,
            credit=True,
        )
    return {
        # A single run is a step, and commands are taken every third cycle at most.
        "steps": Hold if config.single_runs else Skid,
        # Bursts of a single run have many beats, and the memory is asked well ahead of them.
        "requests": Hold if config.single_runs else Skid,
        # At 32 bits the byte network has two steps, and 64 bytes are to be done within N + 12.
        "moved": Wire if narrow else ForwardRegister,
        "words": words,
        "work": partial(Queue, depth=config.ahead, registered=config.ahead > 2),
        "operands": Skid if config.operand_registers else Wire,
        "results": results,
        # Else what the writer takes of a beat of scattered elements would reach all of repack.
        "outputs": Wire if config.single_op is not None else Slack,
        # Else whether the writer is ready would reach the search array, which is all over the die.
        "found": partial(Queue, depth=4),
        "spans": partial(Queue, depth=config.ahead, registered=True),
        # Else whether an element was the last of its beat would reach the queue of spans.
        "bursts": Hold if config.single_runs else Skid,
        "write_requests": Hold if config.single_runs else Skid,
    }


def credited(config: Configuration) -> bool:
    """Whether operands set out only while there is room for their results, so that nothing asks
    for ``ready`` on the way. It takes LUT RAM for the results to wait in."""
    return not config.block_ram and config.single_op is None


class DataPath(wiring.Component):
    """Moves the operands of each command through the bit unit, and the result to memory.

    Members
    -------
    i : ``In(stream.Signature(CheckedCommand(configuration)))``
        Commands, taken while earlier ones still run; every third cycle at most.
    loops : ``In(LoopRegisters(configuration))``
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

    Latency: see `stages`. Throughput: a beat a cycle on the port that carries most.
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
                "code": Out(8),
                "fault_port": Out(2),
                "fault_address": Out(configuration.address_width),
                "drained": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        names = ("a", "b") if config.has_b else ("a",)
        readers = {name: Reader(config, self._stages) for name in names}
        for name, reader in readers.items():
            m.submodules[f"reader_{name}"] = reader
            wiring.connect(m, reader.port, wiring.flipped(getattr(self, f"read_{name}")))
        m.submodules.writer = writer = Writer(config, self._stages)
        wiring.connect(m, writer.port, wiring.flipped(self.write))
        m.submodules.pairing = pairing = Pairing(config)
        self._start(m, {**readers, "y": writer}, pairing)
        for name, reader in readers.items():
            wiring.connect(m, reader.o, getattr(pairing, name))
        self._compute(m, pairing, writer)
        self._faults(m, list(readers.values()), writer, pairing.bad_port)
        return m

    def _start(self, m: Module, streams: dict[str, Reader | Writer], pairing: Pairing) -> None:
        """Let all units take a command in one cycle; each can hold the next while it ends one."""
        config, command = self._configuration, self.i.p
        m.submodules.nest = nest = LoopNest(config, self._stages["steps"])
        form: Any = Signal(StreamFormat(), reset_less=True)
        go = Signal()
        ready = Signal()
        free: Value = ~nest.walking
        if pairing.asks:
            m.submodules.work = work = self._stages["work"](Work(config))
            wiring.connect(m, work.o, pairing.work)
            free &= work.i.ready
            m.d.comb += [
                work.i.p.operation.eq(command.operation),
                work.i.p.reads_b.eq(command.reads_b),
                work.i.p.beats.eq(command.a.extent[config.data_bytes_log2 :] - 1),
                work.i.p.rest.eq(Mux(command.operation.sums, command.a.extent, -1)),
                work.i.valid.eq(go),
            ]
        # They are asked a cycle ahead: who can take a command still can in the next cycle.
        m.d.sync += ready.eq(free & ~go)
        with m.If(~nest.walking):
            m.d.sync += form.eq(command.form)
        m.d.comb += [
            self.i.ready.eq(ready & ~self.stop),
            go.eq(self.i.valid & self.i.ready),
            nest.start.eq(go),
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
                unit.idle.eq(~(nest.running | getattr(nest, name).valid)),
                unit.begin.eq(getattr(command, name)),
                unit.form.eq(form),
                unit.track.eq(getattr(self.loops, name)),
                unit.stop.eq(self.stop),
            ]
            if isinstance(unit, Reader):
                m.d.comb += unit.offsets.eq(self.loops.y)

    def _compute(self, m: Module, pairing: Pairing, writer: Writer) -> None:
        """From operands to what is written."""
        config = self._configuration
        width, lanes, ops = config.data_width, config.lanes, config.bit_ops
        sums = Mode.SUM in config.modes
        m.submodules.bit_unit = bit_unit = BitUnit(width, ops, lanes, sums=sums)
        m.submodules.decode = decode = Decode(width, lanes, ops)
        m.submodules.results = results = self._stages["results"](Decoded(width))
        m.submodules.repack = repack = Repack(width, lanes, ops)
        m.submodules.outputs = outputs = self._stages["outputs"](ToWrite(width))
        units: tuple[Any, ...] = (bit_unit, decode, results, repack, outputs)
        source = pairing.o
        for unit in units:
            wiring.connect(m, source, unit.i)
            source = unit.o
        if config.search:
            source = self._search(m, pairing, source, writer)
        wiring.connect(m, source, writer.i)
        m.d.comb += pairing.room.eq(1)
        if credited(config):
            m.submodules.credit = credit = Credit(RESULTS)
            m.d.comb += [
                credit.taken.eq(pairing.o.valid & pairing.o.ready),
                credit.returned.eq(results.o.valid & results.o.ready),
                pairing.room.eq(credit.room),
            ]

    def _search(
        self, m: Module, pairing: Pairing, outputs: stream.Interface, writer: Writer
    ) -> stream.Interface:
        """Put the search array beside all from bit unit to ``outputs``. Returns what is written.

        Whose turn it is the writer knows, which has the commands in order.
        """
        m.submodules.search_array = array = SearchArray(self._configuration)
        wiring.connect(m, pairing.rows, array.rows)
        wiring.connect(m, pairing.queries, array.queries)
        shape = ToWrite(self._configuration.data_width)
        m.submodules.found = found = stages(self._configuration)["found"](shape)
        wiring.connect(m, array.o, found.i)
        written = stream.Signature(shape).create()
        m.d.comb += [
            written.valid.eq(Mux(writer.searches, found.o.valid, outputs.valid)),
            written.payload.eq(Mux(writer.searches, found.o.payload, outputs.payload)),
            found.o.ready.eq(written.ready & writer.searches),
            outputs.ready.eq(written.ready & ~writer.searches),
        ]
        return written

    def _faults(self, m: Module, readers: list[Reader], writer: Writer, bad_port: Signal) -> None:
        """Say how the oldest command fails, and when."""
        m.submodules.watchdog = watchdog = Watchdog()
        streams = [port for reader in readers for port in (reader.port.request, reader.port.data)]
        streams += [writer.port.request, writer.port.data, writer.port.response]
        progress: ValueLike = 0
        for each in streams:
            progress = (each.valid & each.ready) | progress
        waiting: Value = writer.waiting
        drained: Value = writer.drained
        for reader in readers:
            waiting |= reader.waiting
            drained &= ~reader.waiting
        # A cycle late, as handshakes are known late in theirs.
        m.d.sync += [watchdog.progress.eq(progress), watchdog.waiting.eq(waiting)]
        m.d.comb += [
            watchdog.bound.eq(self.timeout),
            self.drained.eq(drained),
            self.retire.eq(writer.retire),
        ]
        # A beat that could not be read, or has no place to go to, is a fault only when all before
        # it has been written and answered.
        unreadable = Signal()
        m.d.comb += [
            unreadable.eq(writer.spoiled & writer.drained),
            # What expired without the answer of this very cycle has not, if that ends a command.
            self.fault.eq(writer.failed | unreadable | (watchdog.expired & ~writer.retire)),
            self.fault_port.eq(Port.WRITE),
            self.fault_address.eq(writer.address),
        ]
        with m.If(writer.failed):
            m.d.comb += self.code.eq(Status.WRITE_ERROR)
        with m.Elif(unreadable):
            m.d.comb += self.code.eq(Status.PAST_MEMORY)
            with m.If(~writer.strayed):
                m.d.comb += self.fault_port.eq(bad_port)
                for reader, port in zip(readers, Port, strict=False):
                    with m.If((bad_port == port) & ~reader.strayed):
                        m.d.comb += self.code.eq(Status.READ_ERROR)
        with m.Else():
            m.d.comb += self.code.eq(Status.TIMEOUT)
            for reader, port in reversed(list(zip(readers, Port, strict=False))):
                with m.If(reader.waiting):
                    m.d.comb += self.fault_port.eq(port)
        for reader, port in zip(readers, Port, strict=False):
            with m.If(self.fault_port == port):
                m.d.comb += self.fault_address.eq(reader.address)
