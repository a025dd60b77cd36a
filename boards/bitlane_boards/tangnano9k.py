"""Tang Nano 9K."""

from dataclasses import replace

from bitlane_rtl.configurations import small

from .board import Board, Family, MemoryKind

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="tangnano9k",
        title="Sipeed Tang Nano 9K",
        family=Family.GOWIN,
        platform="amaranth_boards.tang_nano_9k:TangNano9kPlatform",
        chip=f"{6:08b}{0x1100481B:056b}".encode(),  # the command that compares IDCODE, as text
        clock_hz=27_000_000,
        configuration=replace(
            small(),
            address_width=16,
            memory_bytes=1 << 15,
            count_bits=15,
            bursts=4,
            operand_registers=False,
        ),
        memory=MemoryKind.BANKS,
        banks=2,
        busy_led=0,
        fault_led=1,
        usb_ids=((0x0403, 0x6010),),
        usb_interface=1,
        loader=("-b", "tangnano9k"),
        why={
            "clock": "the board's own oscillator: no PLL, and 9 clocks a bit of the link",
            "data width": "32 bits: a 64-bit engine takes more than the 8,640 LUTs",
            "operators": "all but the shifts, two loops, no counters: routed in minutes",
            "memory": "32 KiB in two banks: 16 of the 26 block RAMs",
            "link": "3 Mbaud, which the bridge on the board makes",
        },
    ),
)
