"""Colorlight 5A-75B, a receiver card for LED panels, with its SDRAM."""

from dataclasses import replace

from bitlane_rtl.bus.sdram.part import W9816G6JH_6_PAIR
from bitlane_rtl.configurations import full

from .board import Board, EthernetPort, Family, MemoryKind

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="colorlight-5a-75b",
        title="Colorlight 5A-75B v7.0",
        family=Family.ECP5,
        platform="amaranth_boards.colorlight_5a75b_r7_0:Colorlight_5A75B_R70Platform",
        chip=bytes.fromhex("E2000000 41111043"),  # the command that compares IDCODE
        clock_hz=93_750_000,
        configuration=replace(
            full(), address_width=22, memory_bytes=1 << 22, rows=W9816G6JH_6_PAIR.rows
        ),
        memory=MemoryKind.SDRAM,
        sdram=W9816G6JH_6_PAIR,
        # As on the Colorlight i5, which has the same PHY.
        ethernet=EthernetPort(receive_delay_ps=2000),
        busy_led=0,
        fault_led=None,
        loader=("-b", "colorlight"),
        why={
            "clock": "the PLL makes it of 25 MHz beside 125 MHz: both divide 750 MHz",
            "data width": "64 bits: the widest lane in one beat",
            "operators": "all of them, with all runs and loops: there is room",
            "memory": "4 MiB of SDRAM, 32 bits a clock: 2 clocks a beat for all streams together",
            "link": "a gigabit: the first of two PHYs",
        },
    ),
)
