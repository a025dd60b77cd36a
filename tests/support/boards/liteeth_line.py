"""Compiles LiteEth's UDP core and a board, opposite each other: ``... liteeth_line FOLDER``.

A process of its own, because quick tests have no LiteX, and its import warns. `liteeth` starts it.
"""

import logging
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

from liteeth.common import icmp_protocol
from liteeth.core import LiteEthUDPIPCore
from liteeth.phy.gmii import LiteEthPHYGMIIRX, LiteEthPHYGMIITX
from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.gen import ClockDomain, ClockDomainsRenamer, Instance, LiteXModule

from bitlane_boards.litex import verilate
from support.ethernet.line import HOST_IP, HOST_MAC, HOST_PORT
from support.ethernet.verilog import board_verilog

_SYS_HZ = 133_000_000
"""LiteEth's clock, above the 125 MHz of a byte a cycle."""

_DOMAINS = ("sys", "eth_tx", "eth_rx")
_STREAM = {"valid": 1, "ready": 1, "last": 1, "error": 1, "data": 8}
_STREAM |= {"length": 16, "address": 32, "port": 16}


def _pads(name: str, widths: dict[str, int]) -> tuple[Any, ...]:
    return name, 0, *(Subsignal(pad, Pins(width)) for pad, width in widths.items())


_PINS = [
    _pads("clocks", dict.fromkeys((*_DOMAINS, "board", "line"), 1) | {"reset": 1}),
    _pads("errors", {"preamble": 32, "fcs": 32}),
    _pads("gmii", {"tx_en": 1, "tx_data": 8, "rx_dv": 1, "rx_data": 8}),
    _pads("rgmii", {"rxc": 1, "rxd": 4, "rx_ctl": 1, "txc": 1, "txd": 4, "tx_ctl": 1}),
    *(_pads(f"{kind}_{side}", _STREAM) for kind in ("udp", "icmp") for side in ("sink", "source")),
]


class _Phy(LiteXModule):
    """The GMII of LiteEth's PHYs for FPGAs, without the cells of a clock."""

    dw = 8

    def __init__(self, pads: Any) -> None:
        self.tx = ClockDomainsRenamer("eth_tx")(LiteEthPHYGMIITX(pads))
        self.rx = ClockDomainsRenamer("eth_rx")(LiteEthPHYGMIIRX(pads))
        self.sink, self.source = self.tx.sink, self.rx.source


class _Line(LiteXModule):
    """LiteEth's core at pins of GMII, and a board at pins of RGMII. The bench connects the two.

    LiteEth has no ping: the port ``icmp`` carries the payload of IPv4, from the header of ICMP on.
    """

    def __init__(self, platform: Any) -> None:
        clocks = platform.request("clocks")
        for name in _DOMAINS:
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.comb += [domain.clk.eq(getattr(clocks, name)), domain.rst.eq(clocks.reset)]
        pins = platform.request("rgmii")
        ports = {f"i_{name}": getattr(pins, name) for name in ("rxc", "rxd", "rx_ctl")}
        ports |= {f"o_{name}": getattr(pins, name) for name in ("txc", "txd", "tx_ctl")}
        ports |= {"i_clk": clocks.board, "i_line_clk": clocks.line, "i_rst": clocks.reset}
        self.specials += Instance("board", **ports)

        self.phy = _Phy(platform.request("gmii"))
        mac = int(HOST_MAC.replace(":", ""), 16)
        self.core = core = LiteEthUDPIPCore(self.phy, mac, HOST_IP, _SYS_HZ, with_icmp=False)
        errors = platform.request("errors")
        counters = core.mac.core.rx_datapath
        self.comb += errors.preamble.eq(counters.preamble_errors.status)
        self.comb += errors.fcs.eq(counters.crc_errors.status)
        udp = core.udp.crossbar.get_port(HOST_PORT)
        sink, source = self._connect(platform, "udp", udp)
        self.comb += [
            udp.sink.src_port.eq(HOST_PORT),
            udp.sink.dst_port.eq(sink.port),
            source.port.eq(udp.source.src_port),
        ]
        icmp = core.ip.crossbar.get_port(icmp_protocol)
        self._connect(platform, "icmp", icmp)
        self.comb += icmp.sink.protocol.eq(icmp_protocol)

    def _connect(self, platform: Any, name: str, port: Any) -> tuple[Any, Any]:
        """Connect ``port`` to pads; return those of LiteEth's transmitter and of its receiver."""
        sink, source = (platform.request(f"{name}_{side}") for side in ("sink", "source"))
        into, out = port.sink, port.source
        self.comb += [
            into.valid.eq(sink.valid),
            sink.ready.eq(into.ready),
            into.last.eq(sink.last),
            into.last_be.eq(sink.last),
            into.data.eq(sink.data),
            into.length.eq(sink.length),
            into.ip_address.eq(sink.address),
            source.valid.eq(out.valid),
            out.ready.eq(source.ready),
            source.last.eq(out.last),
            source.error.eq(out.error),
            source.data.eq(out.data),
            source.length.eq(out.length),
            source.address.eq(out.ip_address),
        ]
        return sink, source


def main(folder: Path) -> None:
    logging.disable(logging.INFO)  # LiteX reports every region.
    platform = SimPlatform("SIM", _PINS)
    line = _Line(platform)
    line.finalize()
    with chdir(folder):
        platform.get_verilog(line, name="soc").write("soc.v")
    (folder / "board.v").write_text(board_verilog(), encoding="utf-8")
    modules = [folder / "soc.v", folder / "board.v"]
    verilate(folder, modules, Path(__file__).with_suffix(".cc"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
