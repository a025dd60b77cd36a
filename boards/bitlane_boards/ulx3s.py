"""ULX3S 85F."""

from dataclasses import replace

from bitlane_rtl.configurations import full

from .board import Board, Family, MemoryKind

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="ulx3s",
        title="Radiona ULX3S 85F",
        family=Family.ECP5,
        platform="amaranth_boards.ulx3s:ULX3S_85F_Platform",
        chip=bytes.fromhex("E2000000 41113043"),  # the command that compares IDCODE
        clock_hz=62_500_000,
        configuration=replace(
            full(),
            address_width=18,
            memory_bytes=1 << 18,
            length_bits=19,
            count_bits=18,
        ),
        memory=MemoryKind.BANKS,
        banks=2,
        busy_led=0,
        fault_led=1,
        high=(("esp32", "gpio0"),),
        usb_ids=((0x0403, 0x6015),),
        loader=("-b", "ulx3s"),
        why={
            "clock": "21 clocks a bit of the link; block RAM all over the die bounds it at 70 MHz",
            "data width": "64 bits: the widest lane in one beat",
            "operators": "all of them, with all runs and loops: there is room",
            "memory": "256 KiB of block RAM in two banks, so that reads and writes overlap",
            "link": "3 Mbaud, the most that the FT231X makes",
        },
    ),
)
