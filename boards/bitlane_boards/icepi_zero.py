"""Icepi Zero."""

from dataclasses import replace

from bitlane_rtl.sdram_part import AS4C16M16SA_7

from .board import Board, Family, MemoryKind
from .full_circuit import WHY_FULL, full_on_block_ram, full_on_sdram

__all__ = ["BOARDS"]

ICEPI_ZERO = Board(
    name="icepi-zero",
    title="Icepi Zero",
    family=Family.ECP5,
    platform="amaranth_boards.icepi_zero:IcepiZero1_3Platform",
    chip=bytes.fromhex("E2000000 41111043"),  # the command that compares IDCODE
    clock_hz=75_000_000,
    configuration=full_on_block_ram(16),
    memory=MemoryKind.BANKS,
    banks=2,
    usb_ids=((0x0403, 0x6015),),
    loader=("-b", "icepi-zero"),
    why={
        "clock": "25 clocks a bit of the link",
        **WHY_FULL,
        "memory": "64 KiB in two banks: 32 of the 56 block RAMs",
        "link": "3 Mbaud, the most that the FT231X makes",
    },
)

BOARDS = (
    ICEPI_ZERO,
    replace(
        ICEPI_ZERO,
        name="icepi-zero-sdram",
        clock_hz=90_000_000,
        configuration=full_on_sdram(AS4C16M16SA_7),
        memory=MemoryKind.SDRAM,
        banks=1,
        sdram=AS4C16M16SA_7,
        why={
            **ICEPI_ZERO.why,
            "clock": "30 clocks a bit of the link; placement reaches 92 to 100 MHz",
            "memory": "32 MiB of SDRAM, 16 bits a clock: 4 clocks a beat for all streams together",
        },
    ),
)
