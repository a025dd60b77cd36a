"""Walks the nested loops of one stream and gives the address of every run. Reads no memory."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode
from ..configuration import Configuration
from .loops import Loops, Track

__all__ = ["Run", "Start", "Walker"]


class Start(data.StructLayout):
    """What a stream needs to know of a command before it walks.

    ``address`` of the first element; ``offset`` of the output's first element in its beat, 0 if Y
    is STRIDED; ``extent``: bytes of a dense run, less one; ``lane``, ``out_lane``; ``widens``: the
    latter is wider, and ``ratio``: how often it is doubled or halved; ``strided`` and ``repeat``:
    the stream's mode; ``offset_steps``: the loops move ``offset`` (Y is DENSE); ``loops``: loops in
    use, less one.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "address": configuration.address_width,
                "offset": configuration.data_bytes_log2,
                "extent": configuration.length_bits,
                "lane": 2,
                "out_lane": 2,
                "widens": 1,
                "ratio": 2,
                "strided": 1,
                "repeat": 1,
                "offset_steps": 1,
                "loops": 3,
            }
        )


class Run(data.StructLayout):
    """A run, or one element of a STRIDED run, and the fields of its `Start`.

    ``first`` and ``last``: first and last element of the run; ``end``: last of the command.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__({"start": Start(configuration), "first": 1, "last": 1, "end": 1})


class Walker(wiring.Component):
    """Turns the start of a command into its runs.

    Parameters
    ----------
    configuration
        Loops and widths; without loops and STRIDED runs the walker is wires.
    has_offset
        Whether to track the output's offset in its beat beside the stream's own address.

    Members
    -------
    i : ``In(stream.Signature(Start(configuration)))``
    loops : ``In(Loops(configuration))``
        Steady from the start of a command until ``walking`` is 0.
    track, offsets : ``In(Track(address_width, loops))``
        The stream's own track and the output's.
    o : ``Out(stream.Signature(Run(configuration)))``
    walking : ``Out(1)``
        A command is being walked; the loop registers must not change.

    Latency: 1 cycle (0 where there is nothing to walk). Throughput: a run, or an element of a
    STRIDED run, a cycle, and a cycle between commands, which take longer to be decoded.
    Bound of the clock: which loop goes on -> jump multiplexer -> address adder.
    """

    i: stream.Interface
    o: stream.Interface
    loops: Any
    track: Any
    offsets: Any
    walking: Signal

    def __init__(self, configuration: Configuration, *, has_offset: bool) -> None:
        self._configuration = configuration
        self._has_offset = has_offset
        self.walks = configuration.loops > 1 or Mode.STRIDED in configuration.modes
        """Whether there is anything to walk; else this is wires."""
        track = Track(configuration.address_width, configuration.loops)
        super().__init__(
            {
                "i": In(stream.Signature(Start(configuration))),
                "loops": In(Loops(configuration)),
                "track": In(track),
                "offsets": In(track),
                "o": Out(stream.Signature(Run(configuration))),
                "walking": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        strided = Mode.STRIDED in self._configuration.modes
        loops = self._configuration.loops
        if not self.walks:
            m.d.comb += [
                self.o.valid.eq(self.i.valid),
                self.i.ready.eq(self.o.ready),
                self.o.p.start.eq(self.i.p),
                Cat(self.o.p.first, self.o.p.last, self.o.p.end).eq(0b111),
            ]
            return m

        valid = Signal()
        run = Signal(Start(self._configuration), reset_less=True)
        first = Signal(reset_less=True)
        # done[k]: loop k stands at its last iteration; one flag a loop keeps counters off the path.
        done = [Signal(name=f"done_{k}", reset_less=True) for k in range(loops)]
        totals: list[Value] = [Value.cast(self.loops.run)]
        totals += [Value.cast(self.loops.counts[k - 1]) for k in range(1, loops)]
        left = [Signal(len(total), name=f"left_{k}") for k, total in enumerate(totals)]

        end = Signal()
        m.d.comb += [
            end.eq(Cat(done).all()),
            self.o.valid.eq(valid),
            self.o.p.start.eq(run),
            self.o.p.first.eq(first),
            self.o.p.last.eq(done[0]),
            self.o.p.end.eq(end),
            self.i.ready.eq(~valid),
            self.walking.eq(valid),
        ]

        # below[k]: every loop inside loop k stands at its last iteration, so k goes on, or begins
        # anew; `moves` is the highest such k. Both are found a cycle ahead: the address waits for
        # the number, which selects its jump, and `o.ready` comes late to the registers of loop k.
        moves = Signal(range(loops), reset_less=True)
        below: list[Value] = [Const(1)]
        below += [Signal(name=f"below_{k}", reset_less=True) for k in range(1, loops)]
        # nearly[k]: loop k stands at its last iteration but one.
        nearly = [Signal(name=f"nearly_{k}", reset_less=True) for k in range(loops)]
        again: list[Value] = list(self.loops.once)
        at_start = [(self.i.p.loops < k) | again[k] for k in range(loops)]
        at_start[0] = ~self.i.p.strided | again[0] if strided else Const(1)
        again[0] = ~run.strided | again[0] if strided else Const(1)
        following_done = [Signal(name=f"following_done_{k}") for k in range(loops)]
        for k in range(loops):
            ends = Mux(done[k], again[k], nearly[k])
            m.d.comb += following_done[k].eq(Mux(below[k], ends, done[k]))

        step = Signal(self._configuration.address_width)
        following = Signal(self._configuration.address_width)
        # Outside of any condition on ready: the adder must not wait for it.
        m.d.comb += following.eq(run.address + step)
        with m.Switch(moves):
            for k in range(loops):
                with m.Case(k):
                    m.d.comb += step.eq(self.track.jumps[k - 1] if k else self.track.stride)

        # What becomes of the registers at the end of a command does not matter.
        with m.If(self.i.ready):
            m.d.sync += [valid.eq(self.i.valid), run.eq(self.i.p), first.eq(1)]
            m.d.sync += [below[k].eq(Cat(at_start[:k]).all()) for k in range(1, loops)]
            m.d.sync += moves.eq(_first_going_on(at_start))
            for k, total in enumerate(totals):
                m.d.sync += [
                    left[k].eq(total),
                    nearly[k].eq(self.loops.twice[k]),
                    done[k].eq(at_start[k]),
                ]
        with m.Elif(self.o.ready):
            m.d.sync += [valid.eq(~end), run.address.eq(following), first.eq(done[0])]
            m.d.sync += [below[k].eq(Cat(following_done[:k]).all()) for k in range(1, loops)]
            m.d.sync += moves.eq(_first_going_on(following_done))
            for k, total in enumerate(totals):
                m.d.sync += done[k].eq(following_done[k])
                with m.If(below[k]):
                    m.d.sync += [
                        left[k].eq(Mux(done[k], total, left[k] - 1)),
                        nearly[k].eq(Mux(done[k], self.loops.twice[k], left[k] == 2)),
                    ]
                    if k and self._has_offset:
                        offset = run.offset + self.offsets.jumps[k - 1]
                        m.d.sync += run.offset.eq(Mux(run.offset_steps, offset, 0))
        return m


def _first_going_on(done: Sequence[Value]) -> Value:
    """The innermost loop that is not done, or else the outermost."""
    result: Value = Const(len(done) - 1)
    for k in reversed(range(len(done) - 1)):
        result = Mux(done[k], result, k)
    return result
