"""iCEBreaker: iCE40 UP5K with 128 KiB of single-port RAM, and an FTDI bridge."""

from dataclasses import replace

from bitlane_rtl.abi import Mode
from bitlane_rtl.configurations import small

from .board import Board, Family, MemoryKind

__all__ = ["BOARDS"]

ICEBREAKER = Board(
    name="icebreaker",
    title="1BitSquared iCEBreaker",
    family=Family.ICE40,
    platform="amaranth_boards.icebreaker:ICEBreakerPlatform",
    chip=b"\x62\x02\xb3",  # a row of a bank is 692 bits
    clock_hz=24_000_000,
    pll_pad=True,
    configuration=replace(
        small(block_ram=True),
        address_width=17,
        memory_bytes=1 << 17,
        modes=frozenset({Mode.DENSE}),
        length_bits=14,
        count_bits=10,
        operand_registers=False,
    ),
    memory=MemoryKind.SPRAM,
    busy_led=1,
    fault_led=0,
    usb_ids=((0x0403, 0x6010),),
    usb_interface=1,
    loader=("-b", "ice40_generic"),
    why={
        "clock": "8 clocks a bit of the link; the UP5K is slow, and placement reaches about 30 MHz",
        "data width": "32 bits: two single-port RAMs of 16 bits side by side",
        "operators": "all but the shifts, dense runs only and two loops, to fit the 5,280 cells",
        "memory": "128 KiB: all four single-port RAMs, so reads and writes take turns",
        "link": "3 Mbaud, 8 clocks a bit at the least; the FT2232H would make 12",
    },
)

BOARDS = (
    ICEBREAKER,
    replace(
        ICEBREAKER,
        name="icebreaker-bram",
        memory=MemoryKind.BLOCK,
        why={
            **ICEBREAKER.why,
            "memory": "8 KiB of block RAM, which a bitstream can be read back with",
        },
        configuration=replace(ICEBREAKER.configuration, memory_bytes=1 << 13),
    ),
)
