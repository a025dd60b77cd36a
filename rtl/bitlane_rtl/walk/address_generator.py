"""Computes the addresses of one stream, step by step. Knows neither loops nor lengths."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode
from ..command import StreamFormat, StreamStart, Strides, in_lanes
from ..configuration import Configuration
from .loop_nest import Step

__all__ = ["AddressGenerator", "Run"]


class Run(data.StructLayout):
    """A run, or one element of a STRIDED run.

    ``address`` of its first byte; ``offset`` of the output, as `command.in_lanes` gives it;
    ``first`` and ``last``: first and last element of the run; ``end``: last of the command.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "address": configuration.address_width,
                "offset": configuration.data_bytes_log2 + 3,
                "first": 1,
                "last": 1,
                "end": 1,
            }
        )


class AddressGenerator(wiring.Component):
    """Adds a stride or a jump to the address with every step.

    Parameters
    ----------
    configuration
        Loops and widths.
    has_offset
        Whether to follow the output's offset in its beat beside the stream's own address.

    Members
    -------
    idle : ``In(1)``
        No step is to come: ``begin`` is taken in, until a command starts.
    begin : ``In(StreamStart(configuration))``
        Where the next command begins.
    form : ``In(StreamFormat())``
        Of the command that is walked.
    track, offsets : ``In(Strides(address_width, loops))``
        The stream's own track and the output's.
    i : ``In(stream.Signature(Step(configuration)))``
    o : ``Out(stream.Signature(Run(configuration)))``

    Latency: 0 cycles. Throughput: a run, or an element of a STRIDED one, a cycle.
    Bound of the clock: which loop goes on -> jump multiplexer -> address adder.
    """

    def __init__(self, configuration: Configuration, *, has_offset: bool) -> None:
        self._configuration = configuration
        self._has_offset = has_offset
        track = Strides(configuration.address_width, configuration.loops)
        super().__init__(
            {
                "idle": In(1),
                "begin": In(StreamStart(configuration)),
                "form": In(StreamFormat()),
                "track": In(track),
                "offsets": In(track),
                "i": In(stream.Signature(Step(configuration))),
                "o": Out(stream.Signature(Run(configuration))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width, loops = self._configuration.address_width, self._configuration.loops
        address = Signal(width, reset_less=True)
        offset = Signal(self._configuration.data_bytes_log2, reset_less=True)
        lane_offset = Signal(len(offset) + 3, reset_less=True)
        first = Signal(reset_less=True)
        jump = Signal(width)
        following = Signal(width)
        turned = Signal.like(offset)
        stride = self.track.stride if Mode.STRIDED in self._configuration.modes else 0
        with m.Switch(self.i.p.goes_on):
            for loop in range(loops):
                with m.Case(loop):
                    m.d.comb += jump.eq(self.track.jumps[loop - 1] if loop else stride)
                    m.d.comb += turned.eq(self.offsets.jumps[loop - 1] if loop else 0)
        # Where a LUT has inputs left for it, what begins is chosen before the adder, so that
        # nothing stands behind its long carry.
        begins = self.idle if loops <= 2 else Const(0)
        with m.If(begins):
            m.d.comb += jump.eq(0)
        m.d.comb += [
            # Outside of any condition on ready: the adder must not wait for it.
            following.eq(Mux(begins, self.begin.address, address) + jump),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            self.o.p.address.eq(address),
            self.o.p.offset.eq(lane_offset),
            self.o.p.first.eq(first),
            self.o.p.last.eq(self.i.p.last),
            self.o.p.end.eq(self.i.p.end),
        ]
        goes = self.o.ready & self.i.valid
        with m.If(begins | goes):
            m.d.sync += address.eq(following)
        with m.If(self.idle):
            if loops > 2:
                m.d.sync += address.eq(self.begin.address)
            m.d.sync += [
                offset.eq(self.begin.offset),
                lane_offset.eq(self.begin.lane_offset),
                first.eq(1),
            ]
        with m.Elif(goes):
            m.d.sync += first.eq(self.i.p.last)
            if self._has_offset:
                moved = (offset + Mux(self.form.y_dense, turned, 0))[: len(offset)]
                m.d.sync += [offset.eq(moved), lane_offset.eq(in_lanes(moved, self.form))]
        return m
