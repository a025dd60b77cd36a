"""Colorlight i5 and i9 with their SDRAM: on a network, or on the extension board's serial port."""

from dataclasses import replace

from bitlane_rtl.configuration import Search
from bitlane_rtl.sdram_part import EM638325_6H

from .board import Board, EthernetPort, Family, MemoryKind
from .full_circuit import WHY_FULL, full_on_sdram

__all__ = ["BOARDS"]

COLORLIGHT_I5 = Board(
    name="colorlight-i5",
    title="Colorlight i5 v7.0",
    family=Family.ECP5,
    platform="bitlane_boards.platforms.colorlight_i5:ColorlightI5Platform",
    chip=bytes.fromhex("E2000000 41111043"),  # the command that compares IDCODE
    clock_hz=93_750_000,
    configuration=full_on_sdram(EM638325_6H),
    memory=MemoryKind.SDRAM,
    sdram=EM638325_6H,
    # As in litex-boards: the PHY delays the clock that it receives.
    ethernet=EthernetPort(receive_delay_ps=2000),
    busy_led=0,
    fault_led=None,
    loader=("-b", "colorlight-i5"),
    why={
        "clock": "the PLL makes it of 25 MHz beside 125 MHz: both divide 750 MHz",
        **WHY_FULL,
        "memory": "8 MiB of SDRAM, 32 bits a clock: 2 clocks a beat for all streams together",
        "link": "a gigabit: the first of two PHYs",
    },
)

BOARDS = (
    COLORLIGHT_I5,
    replace(
        COLORLIGHT_I5,
        name="colorlight-i9",
        title="Colorlight i9 v7.2",
        platform="bitlane_boards.platforms.colorlight_i5:ColorlightI9Platform",
        chip=bytes.fromhex("E2000000 41112043"),
        clock_hz=75_000_000,
        configuration=replace(COLORLIGHT_I5.configuration, search=Search(units=24)),
        loader=("-b", "colorlight-i9"),
        why={
            **COLORLIGHT_I5.why,
            "clock": "the PLL makes it beside 125 MHz; the search array's wires leave 89 MHz",
            "operators": "all of them, and a search array of 24 rows of 512 bits",
        },
    ),
    replace(
        COLORLIGHT_I5,
        name="colorlight-i5-uart",
        title="Colorlight i5 v7.0 on muselab's extension board",
        clock_hz=87_500_000,
        baud=115_200,
        ethernet=None,
        usb_ids=((0x0D28, 0x0204),),
        why={
            **COLORLIGHT_I5.why,
            "clock": "a sixth below what placement reaches, and what the PLL makes of 25 MHz",
            "link": "115,200 baud: no faster rate of its debugger is documented",
        },
    ),
)
