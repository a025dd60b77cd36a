"""The data path with the ports of a plain DMA, for measurements beside other DMA engines.

It must have every feature of such a peer, and handle faults as `Engine` does.
"""

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import Op
from bitlane_rtl.bus import Axi4, Axi4ReadManager, Axi4WriteManager, join_channels
from bitlane_rtl.command import FaultReport
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath import DataPath

__all__ = ["Copier", "Descriptor"]


class Descriptor(data.StructLayout):
    """``extent + 1`` bytes from byte address ``source`` to byte address ``target``."""

    def __init__(self, configuration: Configuration) -> None:
        width = configuration.address_width
        super().__init__({"source": width, "target": width, "extent": configuration.length_bits})


class Copier(wiring.Component):
    """A `DataPath` of dense runs behind a descriptor stream and one AXI4 manager.

    Faults are handled as in `Engine`: the first is latched, nothing is written after it, and
    ``clear`` brings the data path back once the bus is drained. There is neither ring nor register.

    Parameters
    ----------
    configuration
        With one loop, dense runs and the one operation NOT.

    Members
    -------
    i : ``In(stream.Signature(Descriptor(configuration)))``
    m_axi : ``Out(Axi4(address_width, data_width))``
    timeout : ``In(32)``
        See `DataPath`.
    clear : ``In(1)``
        Held until ``fault`` is 0: forget the fault and all descriptors.
    retire : ``Out(1)``
        A descriptor ended well, in this cycle.
    fault : ``Out(1)``; report : ``Out(FaultReport(configuration))``
        The first fault since ``clear``, from registers; undefined while ``fault`` is 0.

    Latency and throughput: those of `DataPath`.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "i": In(stream.Signature(Descriptor(configuration))),
                "m_axi": Out(Axi4(configuration.address_width, configuration.data_width)),
                "timeout": In(32),
                "clear": In(1),
                "retire": Out(1),
                "fault": Out(1),
                "report": Out(FaultReport(configuration)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._configuration
        widths = config.address_width, config.data_width
        data_path = DataPath(config)
        flush = Signal()
        stop = Signal()
        stopped = Signal()
        m.submodules.data_path = ResetInserter(flush)(data_path)
        m.submodules.read = read = Axi4ReadManager(*widths)
        m.submodules.write = write = Axi4WriteManager(*widths)
        wiring.connect(m, data_path.read_a, read.port)
        wiring.connect(m, data_path.write, write.port)
        join_channels(m, read.axi, self.m_axi)
        join_channels(m, write.axi, self.m_axi)
        order, start = self.i.p, data_path.i.p
        m.d.comb += [
            start.a.address.eq(order.source),
            start.a.offset.eq(order.target),
            start.a.lane_offset.eq(start.a.offset),
            start.a.extent.eq(order.extent),
            start.y.address.eq(order.target),
            start.y.offset.eq(order.target),
            start.y.extent.eq(order.extent),
            start.plain.eq(1),
            start.operation.op.eq(Op.NOT),
            data_path.i.valid.eq(self.i.valid),
            self.i.ready.eq(data_path.i.ready),
            data_path.timeout.eq(self.timeout),
            data_path.stop.eq(stop),
            self.retire.eq(data_path.retire & ~self.fault),
        ]
        with m.If(~self.fault):
            m.d.sync += [
                self.fault.eq(data_path.fault),
                self.report.eq(data_path.report),
            ]
        # `Retirement` does this in `Engine`. It would add 11 LUT4 to the 508 of copy-32 on an ECP5,
        # for a count of commands that no peer has.
        m.d.sync += [
            stop.eq(self.fault | data_path.fault | self.clear),
            stopped.eq(stop),
            flush.eq(stopped & self.clear & data_path.drained & ~flush),
        ]
        with m.If(flush):
            m.d.sync += self.fault.eq(0)
        return m
