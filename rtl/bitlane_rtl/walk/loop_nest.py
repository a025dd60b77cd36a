"""Counts the nested loops of a command, once for all its streams. Computes no addresses."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode
from ..command import STREAMS, LoopRegisters, StreamFlags
from ..configuration import Configuration
from ..streams.stage import Stage

__all__ = ["LoopNest", "Step"]


class Step(data.StructLayout):
    """A run of a stream, or an element of a STRIDED one, and which loop goes on behind it.

    ``goes_on``: its number, 0 for the run. ``last``: last element of its run; ``end``: last of the
    command; then ``goes_on`` means nothing.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"goes_on": range(configuration.loops), "last": 1, "end": 1})


class LoopNest(wiring.Component):
    """Counts the loops and tells each stream its steps.

    A loop is done when its count is negative: the innermost that is not done goes on, and all
    inside it begin anew. A stream that is not STRIDED is told of a run at its first element.

    Parameters
    ----------
    configuration
        Loops and widths.
    queue
        What stands between the loops and each stream. Its ``i.ready`` must be a register's, and
        ``o.valid`` must follow a step in the next cycle, so that none is ever out of sight.

    Members
    -------
    start : ``In(1)``
        Walk a command; only while ``walking`` is 0.
    plain : ``In(1)``
        With ``start``: it is one run without STRIDED streams, whatever the members below are.
    used, strided : ``In(3)``
        With ``start``: which of A, B and Y the command has, and which step by elements.
    in_use : ``In(3)``
        With ``start``: loops in use, less one.
    loops : ``In(LoopRegisters(configuration))``
        Steady from ``start`` on while ``walking``.
    a, b, y : ``Out(stream.Signature(Step(configuration)))``
        The streams' steps.
    running : ``Out(1)``
        A step is still to be sent: with ``valid`` of a stream, that is still to come or to go.
    walking : ``Out(1)``
        A step of some stream is still to be taken.

    Latency: that of ``queue``, and 1 cycle more unless ``plain``. Throughput: a step of every
    stream a cycle; the slowest stream holds up the others when its queue is full, also within a
    run of which it needs no more steps (short gathered runs with ``Configuration.ahead`` 2 lose up
    to a tenth by it).
    Bound of the clock: which loops are done -> the registers of the one that goes on.
    """

    def __init__(self, configuration: Configuration, queue: Stage) -> None:
        self._configuration = configuration
        self._queue = queue
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
        # The streams that the current step is for.
        wanted: Any = Signal(StreamFlags())
        any_strided = strided.as_value().any()
        done = self._count(m, running, advance, any_strided)
        outer = _innermost(done[1:])
        all_done = Cat(1, done[1:]).all()
        # The queues of all streams must be ready, also those that the step is not for: they empty
        # in any case, and a choice by `wanted` would lengthen the path.
        ready: Value = running
        waiting: Value = running
        for name in STREAMS:
            m.submodules[name] = queue = self._queue(Step(self._configuration))
            step = queue.i.p
            wiring.connect(m, queue.o, wiring.flipped(getattr(self, name)))
            at_once = self.start & self.plain & self.used[name]
            m.d.comb += [
                queue.i.valid.eq(Mux(running, advance & wanted[name], at_once)),
                step.last.eq(done[0] | ~strided[name] | ~running),
                step.goes_on.eq(Mux(step.last, outer, 0)),
                step.end.eq((step.last & all_done) | ~running),
            ]
            ready &= queue.i.ready
            waiting |= queue.o.valid
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
        """Count each loop's iterations that are left, less one. Return which loops are done."""
        totals: list[tuple[int, Value]] = []
        done: list[Value] = []
        if Mode.STRIDED in self._configuration.modes:
            totals.append((0, self.loops.run))
        else:
            done.append(Const(1))
        totals += [(k, self.loops.counts[k - 1]) for k in range(1, self._configuration.loops)]
        for number, total in totals:
            left = Signal(len(total), name=f"left_{number}", reset_less=True)
            with m.If(~running):
                # The registers of unused loops hold values of an earlier command.
                unused = self.in_use < number if number else ~self.strided.as_value().any()
                m.d.sync += left.eq(Cat(total[:-1], total[-1] | unused))
            with m.Elif(advance & Cat(1, done).all()):
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
