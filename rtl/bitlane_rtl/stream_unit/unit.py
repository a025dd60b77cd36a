"""The bit unit between streams of packets: it has neither memory nor commands."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..bit_unit import BitUnit
from ..primitives import register
from ..stream_configuration import StreamConfiguration
from ..streams import ForwardRegister, PingPongBuffer, SkidBuffer, Wire
from .assembler import PacketAssembler
from .join import PacketJoin
from .packets import InputBeat, JoinedBeat, OutputBeat, PacketControl, SampledBeat
from .sampler import ControlSampler

__all__ = ["StreamUnit"]


class StreamUnit(wiring.Component):
    """Computes a packet of results for each packet of A, or for each pair of packets of A and B.

    Every packet gives one packet, in order, whatever is wrong with it: see `PacketFlags`.

    - Logic and shifts: a beat for each beat, with the same ``keep`` and ``user``.
    - Counts in their own lane (``out_lane`` is ``lane``): the same.
    - Counts that narrow: the results of ``lane / out_lane`` beats side by side in one, with
      ``user`` of the last of them.
    - Counts with a ``reduction``: a packet of one beat, with ``user`` of the packet's last beat.

    Parameters
    ----------
    configuration : StreamConfiguration

    Latency: ``latency`` cycles from the later handshake on ``a`` and ``b`` to ``valid`` on ``y``.
    Throughput: a beat a cycle on ``a`` and ``b``, with no idle cycle between packets. ``ready`` of
    ``a`` and ``b`` and all of ``y`` depend on registers alone.
    """

    control: Any
    """The operation. Sampled in the cycle of the first handshake of a packet on ``a``."""
    a: Any
    """Beats of A."""
    b: Any
    """Only if an operation has two operands. A packet of an operation with one takes none from
    it."""
    y: Any
    """Beats of the results."""

    def __init__(self, configuration: StreamConfiguration) -> None:
        self.configuration = configuration
        width = configuration.data_width
        self._bit_unit = BitUnit(
            width, configuration.ops, configuration.lanes, sums=bool(configuration.reduces)
        )
        # A cycle for the way from TKEEP over the lanes to the bytes that count. Then ``ready`` has
        # the longest way, and must not reach the enables of all bits of the operands.
        self._registered = bool(configuration.reduces) or configuration.shifts
        super().__init__(
            {
                "control": In(PacketControl(configuration)),
                "a": In(stream.Signature(InputBeat(width, configuration.user_width))),
                **({"b": In(stream.Signature(InputBeat(width, 0)))} if configuration.has_b else {}),
                "y": Out(stream.Signature(OutputBeat(configuration))),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a beat to its result, or from the beat that completes the result."""
        registers = 1 + self._registered + self.configuration.counts
        return registers + self._bit_unit.latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.configuration
        m.submodules.sampler = sampler = ControlSampler(config)
        buffer = PingPongBuffer if self._registered else SkidBuffer
        m.submodules.buffer_a = buffer_a = buffer(SampledBeat(config))
        m.submodules.join = join = PacketJoin(config)
        operands = (ForwardRegister if self._registered else Wire)(JoinedBeat(config))
        m.submodules.operands = operands
        m.submodules.bit_unit = bit_unit = self._bit_unit
        m.submodules.assembler = assembler = PacketAssembler(config)
        wiring.connect(m, wiring.flipped(self.a), sampler.i)
        wiring.connect(m, sampler.o, buffer_a.i)
        wiring.connect(m, buffer_a.o, join.a)
        wiring.connect(m, join.o, operands.i)
        if config.has_b:
            m.submodules.buffer_b = buffer_b = buffer(InputBeat(config.data_width, 0))
            wiring.connect(m, wiring.flipped(self.b), buffer_b.i)
            wiring.connect(m, buffer_b.o, join.b)
        wiring.connect(m, assembler.o, wiring.flipped(self.y))
        # All stages of the bit unit move at once, when its input is ready: so do the fields beside.
        sideband: Any = operands.o.p.sideband
        for stage in range(bit_unit.latency):
            sideband = register(m, bit_unit.i.ready, sideband, f"sideband_{stage + 1}")
        m.d.comb += [
            sampler.control.eq(self.control),
            bit_unit.i.valid.eq(operands.o.valid),
            bit_unit.i.p.eq(operands.o.p.operands),
            operands.o.ready.eq(bit_unit.i.ready),
            assembler.i.valid.eq(bit_unit.o.valid),
            assembler.i.p.result.eq(bit_unit.o.p),
            assembler.i.p.sideband.eq(sideband),
            bit_unit.o.ready.eq(assembler.i.ready),
        ]
        return m
