"""The address generator of one stream. It adds strides; it neither counts loops nor has lengths."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Mode
from ..command import StreamFormat, StreamStart, Strides, in_lanes
from ..configuration import Configuration
from .loop_nest import Step

__all__ = ["AddressGenerator", "Run", "StreamSetup"]


class Run(data.StructLayout):
    """A run, or one element of a STRIDED run.

    ``address``: address of its first byte. ``offset``: offset of the output's element in its beat,
    in the form that `command.in_lanes` returns. ``first``, ``last``: it is the first or last
    element of the run. ``end``: it is the last element of the command.
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


class StreamSetup(wiring.Signature):
    """Signature of the setup of a stream, seen from the unit that starts commands.

    Members
    -------
    idle
        No step is outstanding. Registers load ``begin`` in every such cycle.
    begin
        The first address and offset of the next command.
    form
        The format of the current command.
    strides, output_strides
        The strides of this stream and those of the output; the latter only with ``has_offset``.
    """

    def __init__(self, configuration: Configuration, *, has_offset: bool) -> None:
        strides = Out(Strides(configuration.address_width, configuration.loops))
        super().__init__(
            {
                "idle": Out(1),
                "begin": Out(StreamStart(configuration)),
                "form": Out(StreamFormat()),
                "strides": strides,
                **({"output_strides": strides} if has_offset else {}),
            }
        )


class AddressGenerator(wiring.Component):
    """Adds a stride or a jump to the address of a stream with every step.

    Parameters
    ----------
    configuration
        Loops and widths.
    has_offset
        Whether to track the output's offset in its beat as well as the stream's own address.

    Members
    -------
    setup
        Start, format and strides of the stream.
    i
        The steps of this stream.
    o
        One run, or one element of a STRIDED run, for each step.

    Latency: 0 cycles. Throughput: a run, or an element of a STRIDED one, a cycle.
    Bound of the clock: ``advances`` -> jump multiplexer -> address adder.
    """

    def __init__(self, configuration: Configuration, *, has_offset: bool) -> None:
        self._configuration = configuration
        self._has_offset = has_offset
        super().__init__(
            {
                "setup": In(StreamSetup(configuration, has_offset=has_offset)),
                "i": In(stream.Signature(Step(configuration))),
                "o": Out(stream.Signature(Run(configuration))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        setup = self.setup
        width, loops = self._configuration.address_width, self._configuration.loops
        address = Signal(width, reset_less=True)
        offset = Signal(self._configuration.data_bytes_log2, reset_less=True)
        lane_offset = Signal(len(offset) + 3, reset_less=True)
        first = Signal(reset_less=True)
        jump = Signal(width)
        following = Signal(width)
        turned = Signal.like(offset)
        stride = setup.strides.stride if Mode.STRIDED in self._configuration.modes else 0
        with m.Switch(self.i.p.advances):
            for loop in range(loops):
                with m.Case(loop):
                    m.d.comb += jump.eq(setup.strides.jumps[loop - 1] if loop else stride)
                    if self._has_offset:
                        m.d.comb += turned.eq(setup.output_strides.jumps[loop - 1] if loop else 0)
        # The first address passes the adder, so that no logic follows its long carry. The LUT that
        # selects `jump` has an input left to make it 0.
        with m.If(setup.idle):
            m.d.comb += jump.eq(0)
        m.d.comb += [
            # Outside of any condition on ready: the adder must not wait for it.
            following.eq(Mux(setup.idle, setup.begin.address, address) + jump),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            self.o.p.address.eq(address),
            self.o.p.offset.eq(lane_offset),
            self.o.p.first.eq(first),
            self.o.p.last.eq(self.i.p.last),
            self.o.p.end.eq(self.i.p.end),
        ]
        fires = self.o.ready & self.i.valid
        with m.If(setup.idle | fires):
            m.d.sync += address.eq(following)
        with m.If(setup.idle):
            m.d.sync += [
                offset.eq(setup.begin.offset),
                lane_offset.eq(setup.begin.lane_offset),
                first.eq(1),
            ]
        with m.Elif(fires):
            m.d.sync += first.eq(self.i.p.last)
            if self._has_offset:
                moved = (offset + Mux(setup.form.y_dense, turned, 0))[: len(offset)]
                m.d.sync += [offset.eq(moved), lane_offset.eq(in_lanes(moved, setup.form))]
        return m
