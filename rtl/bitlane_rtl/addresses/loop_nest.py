"""The loop nest: one set of counters for all streams of a command. It computes no addresses."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode
from ..command import STREAMS, LoopRegisters, StreamFlags
from ..configuration import Configuration
from ..streams import Stage

__all__ = ["LoopNest", "Step"]


class Step(data.StructLayout):
    """A run of a stream, or an element of a STRIDED run, and the loop that advances after it.

    ``advances``: number of that loop, 0 for the run; undefined with ``end``. ``last``: it is the
    last element of its run. ``end``: it is the last element of the command.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"advances": range(configuration.loops), "last": 1, "end": 1})


class LoopNest(wiring.Component):
    """Counts the loops and sends each stream its steps.

    A loop is done when its count is negative. The innermost loop that is not done advances, and all
    loops inside it restart. A stream that is not STRIDED gets one step for each run, at the run's
    first element.

    Parameters
    ----------
    configuration
        Loops and widths.
    buffer
        The buffer between the loops and each stream. Its ``i.ready`` must come from a register, and
        ``o.valid`` must follow a step in the next cycle, so that ``walking`` covers every step.

    Members
    -------
    start
        Walk a command. Allowed only while ``walking`` is 0.
    plain
        Valid with ``start``: the command is one run without STRIDED streams. ``strided``,
        ``in_use`` and ``loops`` are ignored then.
    used, strided
        Valid with ``start``: the streams that the command has, and those that step by elements.
    in_use
        Valid with ``start``: number of loops in use, less one.
    loops
        Must be stable from ``start`` on while ``walking`` is 1.
    a, b, y
        The steps of each stream.
    running
        A step has not entered its buffer yet. A stream has steps outstanding while ``running`` or
        its ``valid`` is 1.
    walking
        Some stream has not accepted its last step yet.

    Latency: the latency of ``buffer``, plus 1 cycle unless ``plain``. Throughput: a step of every
    stream a cycle. A stream with a full buffer stalls the others, even in a run of which it needs
    no more steps (with ``Configuration.ahead`` 2, short gathered runs lose up to a tenth).
    Bound of the clock: the loops that are done -> the registers of the loop that advances.
    """

    def __init__(self, configuration: Configuration, buffer: Stage) -> None:
        self._configuration = configuration
        self._buffer = buffer
        steps = Out(stream.Signature(Step(configuration)))
        super().__init__(
            {
                "start": In(1),
                "used": In(StreamFlags()),
                "plain": In(1),
                "strided": In(StreamFlags()),
                "in_use": In(3),
                "loops": In(LoopRegisters(configuration)),
                **dict.fromkeys(STREAMS, steps),
                "running": Out(1),
                "walking": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        running, advance = self.running, Signal()
        used: Any = Signal(StreamFlags())
        strided: Any = Signal(StreamFlags())
        # The streams that take the current step.
        wanted: Any = Signal(StreamFlags())
        any_strided = strided.as_value().any()
        done = self._count(m, running, advance, any_strided)
        outer = _innermost(done[1:])
        all_done = Cat(1, done[1:]).all()
        # All buffers must be ready, even those of streams that do not take the step: they empty in
        # any case, and a choice by `wanted` would lengthen the path.
        ready: Value = running
        waiting: Value = running
        for name in STREAMS:
            m.submodules[name] = buffer = self._buffer(Step(self._configuration))
            step = buffer.i.p
            wiring.connect(m, buffer.o, wiring.flipped(getattr(self, name)))
            at_once = self.start & self.plain & self.used[name]
            m.d.comb += [
                buffer.i.valid.eq(Mux(running, advance & wanted[name], at_once)),
                step.last.eq(done[0] | ~strided[name] | ~running),
                step.advances.eq(Mux(step.last, outer, 0)),
                step.end.eq((step.last & all_done) | ~running),
            ]
            ready &= buffer.i.ready
            waiting |= buffer.o.valid
        m.d.comb += [advance.eq(ready), self.walking.eq(waiting)]
        with m.If(~running):
            m.d.sync += [
                running.eq(self.start & ~self.plain),
                strided.eq(self.strided),
                used.eq(self.used),
                wanted.eq(self.used),
            ]
        with m.Elif(advance):
            m.d.sync += running.eq(~(done[0] & all_done))
            for name in STREAMS:
                m.d.sync += wanted[name].eq(used[name] & (done[0] | strided[name]))
        return m

    def _count(
        self, m: Module, running: Signal, advance: Signal, any_strided: Value
    ) -> list[Value]:
        """Count the remaining iterations of each loop, less one. Return which loops are done."""
        totals: list[tuple[int, Value]] = []
        done: list[Value] = []
        if Mode.STRIDED in self._configuration.modes:
            totals.append((0, self.loops.run))
        else:
            done.append(Const(1))
        totals += [(k, self.loops.counts[k - 1]) for k in range(1, self._configuration.loops)]
        for number, total in totals:
            left = Signal(len(total), name=f"left_{number}", reset_less=True)
            # Kept from the third loop on, because synthesis would derive the enable of each loop
            # from that of the loop inside it: with four loops `running` passed five LUTs in a row.
            attributes = {"keep": 1} if number > 1 else {}
            inside_done = Signal(name=f"inside_{number}_done", attrs=attributes)
            m.d.comb += inside_done.eq(Cat(1, done).all())
            with m.If(~running):
                # The registers of unused loops hold values of an earlier command.
                unused = self.in_use < number if number else ~self.strided.as_value().any()
                m.d.sync += left.eq(Cat(total[:-1], total[-1] | unused))
            with m.Elif(advance & inside_done):
                again = total if number else Cat(total[:-1], total[-1] | ~any_strided)
                m.d.sync += left.eq(Mux(left[-1], again, left - 1))
            done.append(left[-1])
        return done


def _innermost(done: list[Value]) -> Value:
    """Return the number, from 1 on, of the innermost loop that is not done, else the outermost."""
    result: Value = Const(len(done))
    for number in reversed(range(1, len(done))):
        result = Mux(done[number - 1], result, number)
    return result
