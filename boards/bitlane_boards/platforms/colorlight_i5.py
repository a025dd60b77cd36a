"""Colorlight i5 v7.0 and i9 v7.2 on muselab's extension board.

Pins: Colorlight-FPGA-Projects, litex-boards.
"""

import os
import subprocess
from typing import Any

from amaranth.build import Attrs, Clock, Connector, Pins, PinsN, Resource, Subsignal
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import ButtonResources, LEDResources, SDRAMResource, UARTResource

__all__ = ["ColorlightI5Platform", "ColorlightI9Platform"]

_CMOS = Attrs(IO_TYPE="LVCMOS33")


def _rgmii(number: int, tx: tuple[str, str, str], rx: tuple[str, str, str]) -> Resource:
    """Return a Broadcom B50612D with clock, control and data pins of both directions.

    Both chips share reset, MDC and MDIO.
    """
    return Resource(
        "eth_rgmii",
        number,
        Subsignal("rst", PinsN("P4", dir="o")),
        Subsignal("mdc", Pins("N5", dir="o")),
        Subsignal("mdio", Pins("P5", dir="io")),
        Subsignal("tx_clk", Pins(tx[0], dir="o")),
        Subsignal("tx_ctl", Pins(tx[1], dir="o")),
        Subsignal("tx_data", Pins(tx[2], dir="o")),
        Subsignal("rx_clk", Pins(rx[0], dir="i"), Clock(125e6)),
        Subsignal("rx_ctl", Pins(rx[1], dir="i")),
        Subsignal("rx_data", Pins(rx[2], dir="i")),
        _CMOS,
    )


class ColorlightI5Platform(LatticeECP5Platform):
    """The module with an LFE5U-25F, 8 MiB of SDRAM and two Ethernet PHYs."""

    device = "LFE5U-25F"
    package = "BG381"
    speed = "6"
    default_clk = "clk25"  # type: ignore[assignment]

    resources = (  # type: ignore[assignment]
        Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), _CMOS),
        *LEDResources(pins="U16", invert=True, attrs=_CMOS),
        *ButtonResources(pins="K18", invert=True, attrs=Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP")),
        # The extension board's debugger.
        UARTResource(0, rx="H18", tx="J17", attrs=_CMOS),
        # EM638325-6H: CS and DQM are tied low, CKE is tied high.
        SDRAMResource(
            0,
            clk="B9",
            we_n="A10",
            ras_n="B10",
            cas_n="A9",
            ba="B11 C8",
            a="B13 C14 A16 A17 B16 B15 A14 A13 A12 A11 B12",
            dq="D15 E14 E13 D12 E12 D11 C10 B17 B8 A8 C7 A7 A6 B6 A5 B5 "
            "D5 C5 D6 C6 E7 D7 E8 D8 E9 D9 E11 C11 C12 D13 D14 C15",
            attrs=Attrs(IO_TYPE="LVCMOS33", SLEWRATE="FAST"),
        ),
        _rgmii(0, ("G1", "K1", "G2 H1 J1 J3"), ("H2", "P2", "K2 L1 N1 P1")),
        _rgmii(1, ("U19", "P19", "U20 T19 T20 R20"), ("L19", "M20", "P20 N19 N20 M19")),
    )

    connectors = (  # type: ignore[assignment]
        Connector("pmod", 0, "C17 B18 B20 F20 - - A18 A19 B19 D20 - -"),
        Connector("pmod", 1, "D1 C1 C2 E3 - - E2 D2 B1 A3 - -"),
    )

    _loader_board = "colorlight-i5"

    def toolchain_program(self, products: Any, name: str, **options: Any) -> None:
        """Load the bitstream with openFPGALoader."""
        tool = os.environ.get("OPENFPGALOADER", "openFPGALoader")
        with products.extract(f"{name}.bit") as bitstream:
            subprocess.check_call([tool, "-b", self._loader_board, bitstream])


class ColorlightI9Platform(ColorlightI5Platform):
    """The module with an LFE5U-45F in place of the LFE5U-25F, and its LED at another pin."""

    device = "LFE5U-45F"
    resources = (
        *LEDResources(pins="L2", invert=True, attrs=_CMOS),
        *(each for each in ColorlightI5Platform.resources if each.name != "led"),
    )
    _loader_board = "colorlight-i9"
