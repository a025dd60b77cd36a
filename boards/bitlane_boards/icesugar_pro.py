"""iCESugar-Pro, with its SDRAM."""

from bitlane_rtl.sdram_part import AS4C16M16SA_7

from .board import Board, Family, MemoryKind
from .full_circuit import WHY_FULL, full_on_sdram

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="icesugar-pro",
        title="Muse Lab iCESugar-Pro",
        family=Family.ECP5,
        platform="amaranth_boards.icesugar_pro:ICESugarProPlatform",
        chip=bytes.fromhex("E2000000 41111043"),  # the command that compares IDCODE
        clock_hz=87_500_000,
        configuration=full_on_sdram(AS4C16M16SA_7),
        memory=MemoryKind.SDRAM,
        sdram=AS4C16M16SA_7,
        baud=115_200,
        busy_led="g",
        fault_led="r",
        usb_ids=((0x1D50, 0x602B),),
        loader=("-c", "cmsisdap"),
        why={
            "clock": "what the PLL makes of 25 MHz below the 92 that placement reaches",
            **WHY_FULL,
            "memory": "32 MiB of SDRAM, 16 bits a clock: 4 clocks a beat for all streams together",
            "link": "115,200 baud: no faster rate of its debugger is documented",
        },
    ),
)
