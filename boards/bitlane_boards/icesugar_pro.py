"""iCESugar-Pro, with its SDRAM."""

from dataclasses import replace

from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7
from bitlane_rtl.configurations import full

from .board import Board, Family, MemoryKind

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="icesugar-pro",
        title="Muse Lab iCESugar-Pro",
        family=Family.ECP5,
        platform="amaranth_boards.icesugar_pro:ICESugarProPlatform",
        chip=bytes.fromhex("E2000000 41111043"),  # the command that compares IDCODE
        clock_hz=87_500_000,
        configuration=replace(
            full(), address_width=25, memory_bytes=1 << 25, rows=AS4C16M16SA_7.rows
        ),
        memory=MemoryKind.SDRAM,
        sdram=AS4C16M16SA_7,
        baud=115_200,
        busy_led="g",
        fault_led="r",
        usb_ids=((0x1D50, 0x602B),),
        loader=("-c", "cmsisdap"),
        why={
            "clock": "what the PLL makes of 25 MHz below the 92 that placement reaches",
            "data width": "64 bits: the widest lane in one beat",
            "operators": "all of them, with all runs and loops: there is room",
            "memory": "32 MiB of SDRAM, 16 bits a clock: 4 clocks a beat for all streams together",
            "link": "115,200 baud: no faster rate of its debugger is documented",
        },
    ),
)
