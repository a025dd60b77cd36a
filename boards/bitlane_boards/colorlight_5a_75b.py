"""Colorlight 5A-75B, a receiver card for LED panels: clock, PHYs and LED of the Colorlight i5."""

from dataclasses import replace

from bitlane_rtl.sdram_part import W9816G6JH_6_PAIR

from .colorlight_i5 import COLORLIGHT_I5
from .full_circuit import full_on_sdram

__all__ = ["BOARDS"]

BOARDS = (
    replace(
        COLORLIGHT_I5,
        name="colorlight-5a-75b",
        title="Colorlight 5A-75B v7.0",
        platform="amaranth_boards.colorlight_5a75b_r7_0:Colorlight_5A75B_R70Platform",
        configuration=full_on_sdram(W9816G6JH_6_PAIR),
        sdram=W9816G6JH_6_PAIR,
        loader=("-b", "colorlight"),
        why={
            **COLORLIGHT_I5.why,
            "memory": "4 MiB of SDRAM, 32 bits a clock: 2 clocks a beat for all streams together",
        },
    ),
)
