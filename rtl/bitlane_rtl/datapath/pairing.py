"""Joins each beat of A with its beat of B and the operation. It computes nothing.

The operands of a search are not joined: each is sent to the search array on a stream of its own.
"""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode, Op, Port
from ..configuration import Configuration
from ..search import Beat
from ..streams import Operands, Operation
from .realigner import Aligned

__all__ = ["Pairing", "Work"]


class Work(data.StructLayout):
    """The operation of a command, and the lengths of its runs that the pairing counts.

    ``beats``: beats of a run that starts at byte 0, less two; negative for one beat. It is 0 bits
    wide unless runs can REPEAT. ``rest``: bytes in the last beat of a run, less one, if the run is
    summed; else bytes in a beat, less one. It is 0 bits wide unless runs can be summed.
    """

    def __init__(self, configuration: Configuration) -> None:
        repeat, sums = Mode.REPEAT in configuration.modes, Mode.SUM in configuration.modes
        beats = configuration.length_bits - configuration.data_bytes_log2 + 1
        super().__init__(
            {
                "operation": Operation,
                "reads_b": 1,
                "beats": beats if repeat else 0,
                "rest": configuration.data_bytes_log2 if sums else 0,
            }
        )


class Pairing(wiring.Component):
    """Sends the operands of each command, beat by beat, with its operation.

    Members
    -------
    work
        Commands in order. Only if commands can differ (`Pairing.has_work`).
    a, b
        Beats of the operands; ``b`` only if an operation has two. A beat with ``repeat`` is sent
        once for each beat of its run.
    room
        A beat may be sent, in this cycle.
    o
        ``edge`` is that of A's beat, with ``error`` if either operand's beat is in error. If
        A's beat has ``repeat``, ``last`` and ``end`` are 1 only the last time that it is sent.
    rows, queries
        Beats of A and of B in a SEARCH; only with a search array.
    bad_port
        The operand of the first beat in error.

    Latency: 0 cycles. Throughput: a beat a cycle.
    Bound of the clock: ``valid`` of both -> ``ready`` of both and of ``work``.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.has_work = configuration.single_op is None or Mode.REPEAT in configuration.modes
        """Whether commands can differ, so that there is a stream ``work``."""
        operand = In(stream.Signature(Aligned(configuration)))
        searched = Out(stream.Signature(Beat(configuration.data_width)))
        super().__init__(
            {
                **({"work": In(stream.Signature(Work(configuration)))} if self.has_work else {}),
                "a": operand,
                **({"b": operand} if configuration.has_b else {}),
                "room": In(1),
                "o": Out(stream.Signature(Operands(configuration.data_width))),
                **({"rows": searched, "queries": searched} if configuration.search else {}),
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
            o.inside.eq(-1),
            o.edge.eq(a.edge),
            o.edge.last.eq(run_ends),
            o.edge.end.eq(command_ends),
        ]
        if self.has_work:
            present &= self.work.valid
            m.d.comb += [
                o.operation.eq(self.work.p.operation),
                self.work.ready.eq(sent & command_ends),
            ]
        if self._configuration.single_op is not None:
            m.d.comb += o.operation.op.eq(self._configuration.single_op)
        if Mode.SUM in self._configuration.modes:
            # A summed run begins at byte 0, so only its last beat has bytes outside the run.
            for byte, inside in enumerate(o.inside):
                m.d.comb += inside.eq(~run_ends | (self.work.p.rest >= byte))
        if Mode.REPEAT in self._configuration.modes:
            self._repeat(m, sent, run_ends)
        m.d.comb += self.a.ready.eq(sent & self._is_over(self.a, run_ends))
        if self._configuration.has_b:
            needed = self.work.p.reads_b if self.has_work else Const(1)
            present &= self.b.valid | ~needed
            error_b = self.b.p.edge.error & needed
            m.d.comb += [
                o.b.eq(self.b.p.data),
                o.edge.error.eq(a.edge.error | error_b),
                self.b.ready.eq(sent & needed & self._is_over(self.b, run_ends)),
            ]
        m.d.comb += self.o.valid.eq(present)
        bad_a, bad_b = sent & a.edge.error, sent & error_b
        if self._configuration.search:
            searched_a, searched_b = self._search(m)
            bad_a, bad_b = bad_a | searched_a, bad_b | searched_b
        seen = Signal()
        with m.If((bad_a | bad_b) & ~seen):
            m.d.sync += [
                seen.eq(1),
                self.bad_port.eq(Mux(bad_a, Port.READ_A, Port.READ_B)),
            ]
        return m

    def _search(self, m: Module) -> tuple[Value, Value]:
        """Send both operands of a SEARCH. Return whether a beat of A, and of B, fires in error."""
        searches = Signal()
        m.d.comb += searches.eq(self.work.valid & (self.work.p.operation.op == Op.SEARCH))
        fires, ends, bad = [], [], []
        for operand, to, name in ((self.a, self.rows, "rows"), (self.b, self.queries, "queries")):
            over = Signal(name=f"{name}_over")
            fire = to.valid & to.ready
            m.d.comb += [
                to.valid.eq(operand.valid & searches & ~over),
                to.p.data.eq(operand.p.data),
                to.p.last.eq(operand.p.edge.last),
                to.p.error.eq(operand.p.edge.error),
            ]
            fires.append(fire)
            ends.append(over | (fire & operand.p.edge.last))
            bad.append(fire & operand.p.edge.error)
            with m.If(searches):
                m.d.sync += over.eq(ends[-1] & ~self.work.ready)
        with m.If(searches):
            m.d.comb += [
                self.o.valid.eq(0),
                self.a.ready.eq(fires[0]),
                self.b.ready.eq(fires[1]),
                self.work.ready.eq(ends[0] & ends[1]),
            ]
        return bad[0], bad[1]

    def _is_over(self, operand: Any, run_ends: Value) -> Value:
        """Return whether the beat of the operand is used for the last time."""
        if Mode.REPEAT not in self._configuration.modes:
            return Const(1)
        return ~operand.p.repeat | run_ends

    def _repeat(self, m: Module, sent: Value, run_ends: Signal) -> None:
        """Count the beats of a run of A that repeats. A run of one beat is marked in that beat."""
        a = self.a.p
        # Beats behind the next one, less one: negative at the last one.
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
