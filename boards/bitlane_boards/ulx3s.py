"""ULX3S 85F."""

from dataclasses import replace

from bitlane_rtl.configuration import Search
from bitlane_rtl.sdram_part import AS4C16M16SA_7

from .board import Board, Family, MemoryKind
from .full_circuit import WHY_FULL, full_on_block_ram, full_on_sdram

__all__ = ["BOARDS"]

ULX3S = Board(
    name="ulx3s",
    title="Radiona ULX3S 85F",
    family=Family.ECP5,
    platform="amaranth_boards.ulx3s:ULX3S_85F_Platform",
    chip=bytes.fromhex("E2000000 41113043"),  # the command that compares IDCODE
    clock_hz=62_500_000,
    configuration=full_on_block_ram(18),
    memory=MemoryKind.BANKS,
    banks=2,
    busy_led=0,
    fault_led=1,
    drive_high=(("esp32", "gpio0"),),
    usb_ids=((0x0403, 0x6015),),
    loader=("-b", "ulx3s"),
    why={
        "clock": "21 clocks a bit of the link; block RAM all over the die bounds it at 67 MHz",
        **WHY_FULL,
        "memory": "256 KiB of block RAM in two banks, so that reads and writes overlap",
        "link": "3 Mbaud, the most that the FT231X makes",
    },
)

ULX3S_SDRAM = replace(
    ULX3S,
    name="ulx3s-sdram",
    clock_hz=100_000_000,
    configuration=full_on_sdram(AS4C16M16SA_7),
    memory=MemoryKind.SDRAM,
    banks=1,
    sdram=AS4C16M16SA_7,
    why={
        **ULX3S.why,
        "clock": "the most at which the chip's CAS latency is 2; 33 clocks a bit of the link",
        "memory": "32 MiB of SDRAM, 16 bits a clock: 4 clocks a beat for all streams together",
    },
)

BOARDS = (
    ULX3S,
    ULX3S_SDRAM,
    replace(
        ULX3S_SDRAM,
        name="ulx3s-search",
        clock_hz=75_000_000,
        configuration=replace(ULX3S_SDRAM.configuration, length_bits=25, search=Search(units=32)),
        why={
            **ULX3S_SDRAM.why,
            "clock": "25 clocks a bit of the link; a search array all over the die leaves 99 MHz",
            "operators": "all of them, and a search array of 32 rows of 512 bits",
        },
    ),
)
