"""Brings a beat of A and the beat of B that belongs to it together. Computes nothing."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode, Port
from ..configuration import Configuration
from ..streams.beats import Operands, Operation
from .joiner import Aligned

__all__ = ["Pairing", "Work"]


class Work(data.StructLayout):
    """What is to be done with the operands of a command.

    ``beats``: of a run that starts at byte 0, less two, and so negative for a single one; 0 bits
    wide unless runs can REPEAT.
    """

    def __init__(self, configuration: Configuration) -> None:
        repeat = Mode.REPEAT in configuration.modes
        beats = configuration.length_bits - configuration.data_bytes_log2 + 1
        super().__init__({"operation": Operation, "reads_b": 1, "beats": beats if repeat else 0})


class Pairing(wiring.Component):
    """Sends the operands of each command, beat by beat, with what is to be done with them.

    Members
    -------
    work : ``In(stream.Signature(Work(configuration)))``
        Commands in turn; only where the configuration leaves a choice (`Pairing.asks`).
    a, b : ``In(stream.Signature(Aligned(configuration)))``
        Beats of the operands; ``b`` only where an operation has two. A beat with ``repeat`` is
        sent as often as its run has beats.
    room : ``In(1)``
        A beat may be sent, in this cycle.
    o : ``Out(stream.Signature(Operands(data_width)))``
        Where a beat stands is told by A.
    bad_port : ``Out(Port)``
        The operand of the first beat in error.

    Latency: 0 cycles. Throughput: a beat a cycle.
    Bound of the clock: whether both are there -> what each of them, and the command, does next.
    """

    work: stream.Interface
    a: stream.Interface
    b: stream.Interface
    room: Signal
    o: stream.Interface
    bad_port: Signal

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.asks = configuration.single_op is None or Mode.REPEAT in configuration.modes
        """Whether there is anything to be told of a command."""
        operand = In(stream.Signature(Aligned(configuration)))
        super().__init__(
            {
                **({"work": In(stream.Signature(Work(configuration)))} if self.asks else {}),
                "a": operand,
                **({"b": operand} if configuration.has_b else {}),
                "room": In(1),
                "o": Out(stream.Signature(Operands(configuration.data_width))),
                "bad_port": Out(Port),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        o, a = self.o.p, self.a.p
        sent = Signal()
        run_ends, command_ends = Signal(), Signal()
        present: Value = self.a.valid & self.room
        error_b: Value = Const(0)
        m.d.comb += [
            run_ends.eq(a.edge.last),
            command_ends.eq(run_ends & a.edge.end),
            sent.eq(self.o.valid & self.o.ready),
            o.a.eq(a.data),
            o.edge.eq(a.edge),
            o.edge.last.eq(run_ends),
            o.edge.end.eq(command_ends),
            o.edge.error.eq(a.edge.error),
        ]
        if self.asks:
            present &= self.work.valid
            m.d.comb += [
                o.operation.eq(self.work.p.operation),
                self.work.ready.eq(sent & command_ends),
            ]
        if self._configuration.single_op is not None:
            m.d.comb += o.operation.op.eq(self._configuration.single_op)
        if Mode.REPEAT in self._configuration.modes:
            self._repeat(m, sent, run_ends)
        m.d.comb += self.a.ready.eq(sent & self._is_over(self.a, run_ends))
        if self._configuration.has_b:
            needed = self.work.p.reads_b if self.asks else Const(1)
            present &= self.b.valid | ~needed
            error_b = self.b.p.edge.error & needed
            m.d.comb += [
                o.b.eq(self.b.p.data),
                o.edge.error.eq(a.edge.error | error_b),
                self.b.ready.eq(sent & needed & self._is_over(self.b, run_ends)),
            ]
        m.d.comb += self.o.valid.eq(present)
        seen = Signal()
        with m.If(sent & o.edge.error & ~seen):
            m.d.sync += [
                seen.eq(1),
                self.bad_port.eq(Mux(a.edge.error, Port.READ_A, Port.READ_B)),
            ]
        return m

    def _is_over(self, operand: Any, run_ends: Value) -> Value:
        """Whether a beat of the operand has been sent as often as it is to be."""
        if Mode.REPEAT not in self._configuration.modes:
            return Const(1)
        return ~operand.p.repeat | run_ends

    def _repeat(self, m: Module, sent: Value, run_ends: Signal) -> None:
        """Count the beats of a run of A that repeats; the first of them tells if it is the last."""
        a = self.a.p
        # Beats that follow the next one, less one: negative at the last one.
        left, following = Signal.like(self.work.p.beats), Signal.like(self.work.p.beats)
        begins = Signal(init=1)
        m.d.comb += following.eq(Mux(begins, self.work.p.beats, left))
        with m.If(a.repeat & ~begins):
            m.d.comb += run_ends.eq(left[-1])
        with m.If(sent):
            m.d.sync += [
                begins.eq(run_ends),
                left.eq(Mux(begins & a.extra, following, following - 1)),
            ]
